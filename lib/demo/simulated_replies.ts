/**
 * The words scripts are written in.
 *
 * `ok("A")`, `failure(429, { … })`, `stream([created(), delta("Hel"), rst()])`: field cases, "Replies" and "Frames".
 */
import { wholeAnswer } from "./simulated_answers.ts";
import { type Answer, type Encoding, json, type Reply } from "./simulated_reply.ts";
import type { Step } from "./simulated_steps.ts";

export * from "./simulated_reply.ts";
export * from "./simulated_steps.ts";
export { messageStart, responsesTurn } from "./simulated_answers.ts";

/** 200 and a complete answer with this text, in the protocol of the call; on a WebSocket every turn is answered. */
export function ok(text: string, headers: Record<string, string> = {}): Reply {
  return { kind: "dynamic", make: (question) => wholeAnswer(question, text, headers) };
}

export interface FailureWords {
  readonly type?: string | null;
  readonly code?: string | number | null;
  readonly message?: string;
  readonly headers?: Record<string, string>;
  /** More fields inside `error`, for instance `resets_in_seconds`. */
  readonly extra?: Record<string, unknown>;
}

/** That status with a JSON error body; calls on `/messages` get Anthropic's envelope. */
export function failure(status: number, words: FailureWords = {}): Reply {
  const { type = null, code = null, message = `simulated ${status}`, headers = {}, extra = {} } = words;
  const error = { message, type, code, ...extra };
  return {
    kind: "dynamic",
    make: (question) =>
      json(question.path.endsWith("/messages") ? { type: "error", error } : { error }, status, headers),
  };
}

/** The request is read, then the connection is closed without a word: how a stale keep-alive connection dies. */
export function hangUp(): Reply {
  return { kind: "no_head", end: "fin", partialHead: "" };
}

/** As `hangUp`, by a reset; `partialHead` goes out first. */
export function reset(partialHead = ""): Reply {
  return { kind: "no_head", end: "rst", partialHead };
}

/** The request is read and never answered. */
export function silence(): Reply {
  return { kind: "no_head", end: "hold", partialHead: "" };
}

/** Accepts a WebSocket; without a closing step it stays open until the client leaves. */
export function accept(
  steps: Iterable<Step>,
  options: { readonly headers?: Record<string, string>; readonly protocol?: string } = {},
): Reply {
  return { kind: "accept", headers: options.headers ?? {}, protocol: options.protocol ?? null, steps };
}

/** Packs the body; `label` overrides what the header says about it. */
export function encoded(reply: Reply, encoding: Encoding | null, label?: string | null): Reply {
  return mapAnswer(reply, (answer) => ({
    ...answer,
    encoding,
    ...(label === undefined ? {} : { label }),
  }));
}

/** Sends the body in small pieces, `everyMs` apart. */
export function dripping(reply: Reply, bytesAtATime: number, everyMs = 0): Reply {
  return mapAnswer(reply, (answer) => ({ ...answer, pieces: { bytes: bytesAtATime, everyMs } }));
}

function mapAnswer(reply: Reply, change: (answer: Answer) => Answer): Reply {
  switch (reply.kind) {
    case "answer":
      return change(reply);
    case "dynamic":
      return { kind: "dynamic", make: (question) => mapAnswer(reply.make(question), change) };
    default:
      return reply;
  }
}
