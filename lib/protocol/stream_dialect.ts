/**
 * How the relay understands the events of one protocol, without rewriting them.
 *
 * One instance per protocol (`responses.ts`, `chat.ts`, `messages.ts`), stateless: the relay keeps the state.
 */
import type { ErrorFacts } from "../core/evidence.ts";
import type { QuotaReading } from "../core/records.ts";
import type { SseFrame } from "./sse.ts";

/**
 * - `comment`: no data (comments, `id:`/`retry:` only).
 * - `lifecycle`: carries no output and may be held before commit (ruling 5).
 * - `output`: text, reasoning, tool calls, and every event nobody knows.
 * - `success`: the terminal that makes the answer complete (completed, incomplete, message_stop, [DONE]).
 * - `failure`: an error terminal.
 * - `padding`: legal noise such as `data: null`.
 * - `malformed`: data that is not JSON.
 */
export type EventClass = "comment" | "lifecycle" | "output" | "success" | "failure" | "padding" | "malformed";

export interface TokenUsage {
  /** All of them, also those read from or written to a cache. */
  readonly inputTokens: number;
  /** The part of `inputTokens` read from a cache. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** The part of `outputTokens` spent on reasoning. */
  readonly reasoningTokens: number;
}

export interface EventFacts {
  readonly class: EventClass;
  /** The `type` of the event where the protocol has one. */
  readonly type: string | null;
  readonly failure: ErrorFacts | null;
  readonly usage: TokenUsage | null;
  /** A quota notice inside the stream (`codex.rate_limits`); observed time is filled by the caller. */
  readonly quota: Omit<QuotaReading, "observedAtMs" | "source"> | null;
  /** Response id, where the event carries it. */
  readonly responseId: string | null;
  /** Chat only: a finish_reason was given, so a clean end without `[DONE]` is complete too. */
  readonly finishes?: true;
  /**
   * Nobody knows this event: it counts as output, but may as well be an end of some kind. Recovery withholds nothing
   * it cannot judge.
   */
  readonly unknown?: true;
}

export interface StreamDialect {
  readonly protocol: "responses" | "chat" | "messages";
  /** Cheap for output events: looks at the type only, parses JSON for lifecycle, terminal and unknown ones. */
  readEvent(frame: SseFrame): EventFacts;
}
