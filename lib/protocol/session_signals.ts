/**
 * The signals by which turns of one conversation are recognised (wire-facts 5.3), most trusted first.
 */
import type { HeaderLookup } from "../core/evidence.ts";

export interface SessionSignal {
  readonly kind:
    | "claude_session"
    | "metadata"
    | "header"
    | "body_session"
    | "prompt_cache"
    | "conversation"
    | "turn_state"
    | "file"
    | "call";
  readonly value: string;
}

export interface SignalFields {
  readonly sessionId: string | null;
  readonly promptCacheKey: string | null;
  readonly conversationId: string | null;
  readonly metadataUserId: string | null;
}

const MAX_SIGNAL_BYTES = 512;
// deno-lint-ignore no-control-regex
const CONTROL = /[\u0000-\u001f\u007f\ufffd]/;

/** Raw values: hash them at once, never log them. Values that are empty, too long or hold control characters are no signal. */
export function readSessionSignals(headers: HeaderLookup, fields: SignalFields | null): SessionSignal[] {
  const signals: SessionSignal[] = [];
  const add = (kind: SessionSignal["kind"], value: string | null): void => {
    if (value !== null && isUsable(value)) signals.push({ kind, value });
  };
  const claude = headers.get("x-claude-code-session-id");
  if (claude !== null) {
    const agent = headers.get("x-claude-code-agent-id");
    add("claude_session", agent === null ? claude : `${claude}/${agent}`);
  }
  if (fields !== null) add("metadata", readMetadataSession(fields.metadataUserId));
  add("header", agreeing(headers.get("session-id"), headers.get("session_id")));
  add("header", headers.get("x-session-id"));
  add("header", headers.get("x-session-affinity"));
  if (fields !== null) {
    add("body_session", fields.sessionId);
    add("prompt_cache", fields.promptCacheKey);
    add("conversation", fields.conversationId);
  }
  add("conversation", headers.get("conversation_id"));
  return signals;
}

/** Claude Code puts the session into `metadata.user_id`: a `_session_<uuid>` suffix or a JSON string. */
export function readMetadataSession(userId: string | null): string | null {
  if (userId === null) return null;
  const at = userId.lastIndexOf("_session_");
  if (at >= 0) return userId.slice(at + "_session_".length) || null;
  if (!userId.startsWith("{")) return null;
  try {
    const json: unknown = JSON.parse(userId);
    const session = typeof json === "object" && json !== null && "session_id" in json
      ? json.session_id
      : null;
    return typeof session === "string" ? session : null;
  } catch {
    return null;
  }
}

/** Two spellings of one header: conflicting values drop the signal. */
function agreeing(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b;
  return a === b ? a : null;
}

function isUsable(value: string): boolean {
  return value !== "" && value.length <= MAX_SIGNAL_BYTES && !CONTROL.test(value);
}
