/**
 * The chunks of a chat completions stream, OpenAI's and what compatible hosts make of it.
 *
 * Complete is `[DONE]`, or a clean end after a chunk with a finish_reason (`finishes`): several hosts never send
 * the marker. z.ai reports broken generations as finish_reason, not as an error (wire-facts 7.2).
 */
import { hasErrorObject, readErrorValue } from "./error_body.ts";
import {
  type JsonObject,
  plainFacts,
  readEventData,
  readObject,
  readString,
  unknownFacts,
} from "./event_data.ts";
import { readChatUsage } from "./token_usage.ts";
import type { SseFrame } from "./sse.ts";
import type { EventFacts, StreamDialect } from "./stream_dialect.ts";

/** A finish_reason that means the answer failed. */
const FAILED_FINISHES: ReadonlySet<string> = new Set(["network_error", "sensitive", "error"]);
/** Text inside JSON strings cannot match these: its quotes are escaped there. */
const TEXT_DELTA = /"delta": ?\{(?:"role": ?"assistant", ?)?"(?:content|reasoning_content)": ?"[^"]/;
const UNFINISHED = /"finish_reason": ?null/;
const NEEDS_PARSING = /"(?:usage|error|finish_reason)": ?[{"]/;

export const chatDialect: StreamDialect = { protocol: "chat", readEvent };

function readEvent(frame: SseFrame): EventFacts {
  const text = frame.data();
  if (text !== null && isPlainText(text)) return plainFacts("output", null);
  return readWhole(frame);
}

/** The bulk of a stream: a chunk with text and nothing else. Anything unusual is parsed. */
function isPlainText(text: string): boolean {
  return text.startsWith("{") && text.endsWith("}") && UNFINISHED.test(text) && TEXT_DELTA.test(text) &&
    !NEEDS_PARSING.test(text);
}

function readWhole(frame: SseFrame): EventFacts {
  const data = readEventData(frame);
  if (data.kind === "done") return plainFacts("success", null);
  if (data.kind !== "object") return plainFacts(data.kind, null);
  const { json } = data;
  const responseId = readString(json["id"]);
  const usage = readChatUsage(json["usage"]);
  if (frame.event === "error" || hasErrorObject(json)) {
    return { ...plainFacts("failure", null), failure: readErrorValue(json), usage, responseId };
  }
  if (!Array.isArray(json["choices"])) {
    // Usage alone carries no output; anything else here is an event nobody knows.
    return { ...(usage === null ? unknownFacts(null) : plainFacts("lifecycle", null)), usage, responseId };
  }
  const choices = json["choices"].map(readObject).filter((choice) => choice !== null);
  const finish = choices.map(finishOf).find((reason) => reason !== null) ?? null;
  if (finish !== null && FAILED_FINISHES.has(finish)) {
    return {
      ...plainFacts("failure", null),
      failure: readErrorValue({ error: { code: finish } }),
      usage,
      responseId,
    };
  }
  const hasOutput = finish !== null || choices.some(carriesOutput);
  const facts = { ...plainFacts(hasOutput ? "output" : "lifecycle", null), usage, responseId };
  return finish === null ? facts : { ...facts, finishes: true };
}

function finishOf(choice: JsonObject): string | null {
  return readString(choice["finish_reason"]) || null;
}

/** A role and empty values are no output; every other field of a delta is, known or not. */
function carriesOutput(choice: JsonObject): boolean {
  const delta = readObject(choice["delta"]) ?? readObject(choice["message"]) ?? {};
  const text = readString(choice["text"]) ?? "";
  return text !== "" || Object.entries(delta).some(([key, value]) => key !== "role" && !isEmpty(value));
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}
