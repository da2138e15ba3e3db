/**
 * What one scripted attempt amounts to, worked out from the script alone: no code under test is asked.
 */
import type { AttemptScript, Frame } from "./attempt_script.ts";
import type { FailureMeaning } from "./wire_events.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * `incomplete`: recoverable, and nobody's fault. `hopeless`: a passing failure that is not made again on its account.
 * `repeat`: an idle connection died; asked again at once, for free.
 */
export type Verdict = "success" | "recoverable" | "incomplete" | "hopeless" | "repeat" | FailureMeaning;

export interface StreamReading {
  readonly verdict: Verdict;
  /** Whole frames that a client of the same protocol may be shown, up to and without a failing one. */
  readonly kept: readonly Frame[];
  /** Bytes that came after them and are a whole event but for their blank line; empty for none. */
  readonly unclosed: Bytes;
  readonly failing: Frame | null;
  /** How many bytes must have come before this was clear; Infinity where only the end tells. */
  readonly clearAtBytes: number;
  /** How many bytes must have come before an event nobody knows was seen; null for none before the end. */
  readonly unknownAtBytes: number | null;
}

const NOTHING = new Uint8Array();

export function readScriptedStream(script: Extract<AttemptScript, { kind: "stream" }>): StreamReading {
  const kept: Frame[] = [];
  let at = 0;
  let sawEvent = false;
  let finished = false;
  let unknownAtBytes: number | null = null;
  let unclosed: Bytes = NOTHING;
  const reading = (verdict: Verdict, failing: Frame | null, clearAtBytes: number): StreamReading => ({
    verdict,
    kept,
    unclosed,
    failing,
    clearAtBytes,
    unknownAtBytes,
  });
  for (const frame of script.frames) {
    const end = at + frame.bytes.length;
    const rest = script.bytes.subarray(at);
    const isWhole = end <= script.bytes.length || isWholeButForLf(frame.bytes, rest);
    if (!isWhole) {
      if (script.end !== "close" || !isWholeEvent(frame, rest)) break;
      unclosed = rest.slice();
    }
    const { role, meaning } = frame.event;
    at = Math.min(end, script.bytes.length);
    const clearAt = isWhole ? at - lineEndSlack(frame.bytes) : Infinity;
    switch (role) {
      case "padding":
        unclosed = NOTHING;
        continue;
      case "malformed":
        unclosed = NOTHING;
        return reading("recoverable", null, clearAt);
      case "failure":
        unclosed = NOTHING;
        sawEvent = true;
        return reading(meaning!, frame, clearAt);
      case "terminal":
        if (isWhole) kept.push(frame);
        return reading("success", null, clearAt);
      case "comment":
        if (isWhole) kept.push(frame);
        break;
      case "unknown":
        unknownAtBytes ??= isWhole ? at : Infinity;
        sawEvent = true;
        if (isWhole) kept.push(frame);
        break;
      case "finish":
        finished = true;
        sawEvent = true;
        if (isWhole) kept.push(frame);
        break;
      case "lifecycle":
      case "output":
        sawEvent = true;
        if (isWhole) kept.push(frame);
        break;
      default:
        return role satisfies never;
    }
    if (!isWhole) break;
  }
  if (script.end === "hang") return reading("hopeless", null, Infinity);
  if (script.end === "reset") return reading("recoverable", null, Infinity);
  if (!sawEvent) return reading("recoverable", null, Infinity);
  return reading(finished ? "success" : "incomplete", null, Infinity);
}

const CR = 0x0d;
const LF = 0x0a;

/** A frame of CRLF lines is an event once the CR of its blank line is there. */
function isWholeButForLf(frame: Bytes, rest: Bytes): boolean {
  return lineEndSlack(frame) === 1 && rest.length === frame.length - 1;
}

function lineEndSlack(frame: Bytes): number {
  return frame.at(-1) === LF && frame.at(-2) === CR ? 1 : 0;
}

/** Its data line is all there; what is missing is a line end or the blank line. */
function isWholeEvent(frame: Frame, rest: Bytes): boolean {
  const { data } = frame.event;
  if (data === null) return false;
  const text = new TextDecoder().decode(rest);
  return text.replace(/[\r\n]+$/, "").endsWith(data);
}

/** What the attempt amounts to, whatever kind it is. */
export function predict(script: AttemptScript): Verdict {
  switch (script.kind) {
    case "no_head":
      return script.pooled ? "repeat" : "recoverable";
    case "silence":
      return "hopeless";
    case "refusal":
      return verdictOfStatus(script.status);
    case "stream":
      return readScriptedStream(script).verdict;
    case "document":
      if (script.end === "hang") return "hopeless";
      if (script.end === "reset") return "recoverable";
      if (!script.isWhole || script.says === "page") return "recoverable";
      return script.says === "error" ? script.meaning! : "success";
  }
}

function verdictOfStatus(status: number): Verdict {
  switch (status) {
    case 401:
      return "unauthorized";
    case 402:
    case 429:
      return "refused";
    case 400:
    case 413:
    case 422:
      return "fault";
    default:
      return "recoverable";
  }
}
