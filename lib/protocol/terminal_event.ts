/**
 * When a stream is an answer: what its end means, given the events that came before (ruling 21, rows 33-43).
 *
 * One small value folded over the events of any dialect; the relay, the aggregator and recovery share it.
 */
import type { ErrorFacts, Evidence, HeaderLookup } from "../core/evidence.ts";
import type { EventFacts } from "./stream_dialect.ts";

export interface StreamProgress {
  /** A data event was seen; comments, padding and the bare `[DONE]` are none. */
  readonly sawEvent: boolean;
  /** A chat finish_reason was seen: a clean end is complete without `[DONE]`. */
  readonly finished: boolean;
  /** The first thing that decided the stream; nothing after a failure changes it. */
  readonly end: "success" | "failure" | "malformed" | null;
  readonly failure: ErrorFacts | null;
  /** Safe word for `malformed`, else null. */
  readonly detail: string | null;
}

export const STREAM_START: StreamProgress = {
  sawEvent: false,
  finished: false,
  end: null,
  failure: null,
  detail: null,
};

/** @returns the next value; the same one when the event changes nothing. */
export function observeEvent(progress: StreamProgress, facts: EventFacts): StreamProgress {
  if (progress.end === "failure" || progress.end === "malformed") return progress;
  switch (facts.class) {
    case "comment":
    case "padding":
      return progress;
    case "malformed":
      return malformedStream(progress, "bad_event_data");
    case "lifecycle":
      // Late quota notices and usage chunks harm nobody after the terminal.
      return progress.sawEvent || progress.end !== null ? progress : { ...progress, sawEvent: true };
    case "output":
      if (progress.end !== null) return malformedStream(progress, "data_after_terminal");
      if (progress.sawEvent && (progress.finished || !facts.finishes)) return progress;
      return { ...progress, sawEvent: true, finished: progress.finished || facts.finishes === true };
    case "success":
      // Hosts repeat the bare `[DONE]` (field case B074); a second terminal with a name is another answer.
      if (progress.end !== null) {
        return facts.type === null ? progress : malformedStream(progress, "data_after_terminal");
      }
      return { ...progress, sawEvent: progress.sawEvent || facts.type !== null, end: "success" };
    case "failure":
      if (progress.end !== null) return malformedStream(progress, "data_after_terminal");
      return { ...progress, sawEvent: true, end: "failure", failure: facts.failure };
    default:
      return facts.class satisfies never;
  }
}

/** Marks a stream whose bytes broke the protocol, e.g. an oversized frame. */
export function malformedStream(progress: StreamProgress, detail: string): StreamProgress {
  return { ...progress, end: "malformed", detail };
}

/**
 * What a clean end of the stream is evidence of. A broken connection is not judged here.
 *
 * @param headers  of the answer the stream came with.
 */
export function judgeStreamEnd(progress: StreamProgress, headers: HeaderLookup): Evidence {
  if (progress.end === "malformed") return { kind: "malformed", detail: progress.detail ?? "bad_event_data" };
  if (progress.failure !== null) return { kind: "in_stream", error: progress.failure, headers };
  if (!progress.sawEvent) return { kind: "malformed", detail: "no_event" };
  return progress.end === "success" || progress.finished ? { kind: "success" } : { kind: "incomplete" };
}
