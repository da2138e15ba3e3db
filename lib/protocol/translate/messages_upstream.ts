/** Anthropic messages as an upstream protocol. */
import { MessagesStreamReader, readMessagesAnswer } from "./messages_upstream_answer.ts";
import { writeMessagesRequest } from "./messages_upstream_request.ts";
import type { UpstreamSide } from "./sides.ts";

export const MESSAGES_UPSTREAM: UpstreamSide = {
  protocol: "messages",
  writeRequest: writeMessagesRequest,
  readAnswer: readMessagesAnswer,
  startStream: (context) => new MessagesStreamReader(context),
};
