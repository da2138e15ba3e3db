/** Anthropic messages as a client protocol. */
import { isObject } from "./json.ts";
import { writeMessagesAnswer } from "./messages_client_answer.ts";
import { MESSAGES_FIELD_NAMES, readMessagesRequest } from "./messages_client_request.ts";
import { MessagesStreamWriter } from "./messages_client_stream.ts";
import type { ClientSide } from "./sides.ts";

export const MESSAGES_CLIENT: ClientSide = {
  protocol: "messages",
  fieldNames: MESSAGES_FIELD_NAMES,
  readRequest: readMessagesRequest,
  remember: (body) => ({
    streaming: body.stream === true,
    includeUsage: true,
    // A client that did not turn thinking on looks for text in the first block.
    takesReasoning: isObject(body.thinking) && body.thinking.type !== "disabled",
    echo: {},
  }),
  writeAnswer: writeMessagesAnswer,
  startStream: (context) => new MessagesStreamWriter(context),
};
