/** Chat completions as a client protocol. */
import { writeChatAnswer } from "./chat_client_answer.ts";
import { CHAT_FIELD_NAMES, readChatRequest } from "./chat_client_request.ts";
import { ChatStreamWriter } from "./chat_client_stream.ts";
import { isObject } from "./json.ts";
import type { ClientSide } from "./sides.ts";

export const CHAT_CLIENT: ClientSide = {
  protocol: "chat",
  fieldNames: CHAT_FIELD_NAMES,
  readRequest: readChatRequest,
  remember: (body) => ({
    streaming: body.stream === true,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    takesReasoning: true,
    echo: {},
  }),
  writeAnswer: writeChatAnswer,
  startStream: (context) => new ChatStreamWriter(context),
};
