/** Chat completions as an upstream protocol. */
import { ChatStreamReader, readChatAnswer } from "./chat_upstream_answer.ts";
import { writeChatRequest } from "./chat_upstream_request.ts";
import type { UpstreamSide } from "./sides.ts";

export const CHAT_UPSTREAM: UpstreamSide = {
  protocol: "chat",
  writeRequest: writeChatRequest,
  readAnswer: readChatAnswer,
  startStream: (context) => new ChatStreamReader(context),
};
