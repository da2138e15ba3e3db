/** The dialect of each protocol that streams. */
import type { ClientProtocol } from "../core/domain.ts";
import { chatDialect } from "./chat.ts";
import { messagesDialect } from "./messages.ts";
import { responsesDialect } from "./responses.ts";
import type { StreamDialect } from "./stream_dialect.ts";

/** Raw routes that stream speak Responses events, where they speak any. */
export function dialectOf(protocol: ClientProtocol): StreamDialect {
  switch (protocol) {
    case "chat":
      return chatDialect;
    case "messages":
      return messagesDialect;
    case "responses":
    case "raw":
      return responsesDialect;
  }
}
