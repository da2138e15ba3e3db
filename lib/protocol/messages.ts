/**
 * The events of an Anthropic Messages stream (wire-facts 6.7).
 *
 * The answer is complete at `message_stop` alone: an end without it is a cut.
 */
import { hasErrorObject, readErrorValue } from "./error_body.ts";
import {
  type JsonObject,
  plainFacts,
  readEventData,
  readEventType,
  readObject,
  readString,
  unknownFacts,
} from "./event_data.ts";
import { readMessagesUsage } from "./token_usage.ts";
import type { SseFrame } from "./sse.ts";
import type { EventClass, EventFacts, StreamDialect } from "./stream_dialect.ts";

const CLASSES: ReadonlyMap<string, EventClass> = new Map([
  ["message_start", "lifecycle"],
  ["ping", "lifecycle"],
  ["content_block_start", "output"],
  ["content_block_delta", "output"],
  ["content_block_stop", "output"],
  ["message_delta", "output"],
  ["message_stop", "success"],
  ["error", "failure"],
]);
/** Events read for more than their class. */
const READ_WHOLE: ReadonlySet<string> = new Set(["message_start", "message_delta", "error"]);

export const messagesDialect: StreamDialect = { protocol: "messages", readEvent };

function readEvent(frame: SseFrame): EventFacts {
  const type = readEventType(frame, (name) => CLASSES.has(name));
  if (type === null || READ_WHOLE.has(type)) return readWhole(frame);
  const eventClass = CLASSES.get(type);
  return eventClass === undefined ? unknownFacts(type) : plainFacts(eventClass, type);
}

function readWhole(frame: SseFrame): EventFacts {
  const data = readEventData(frame);
  if (data.kind === "done") return plainFacts("padding", null);
  if (data.kind !== "object") return plainFacts(data.kind, null);
  const { json } = data;
  const type = readString(json["type"]) ?? frame.event;
  if (type === "error" || (json["type"] === undefined && hasErrorObject(json))) {
    return { ...plainFacts("failure", type), failure: readErrorValue(json) };
  }
  const message = readObject(json["message"]);
  const usage = readMessagesUsage(json["usage"] ?? message?.["usage"]);
  if (stopReasonOf(json) === "error") {
    // A failed turn dressed as a normal end (field case B120): its usage is real, its answer is not.
    return {
      ...plainFacts("failure", type),
      failure: readErrorValue({ error: { code: "stop_reason_error" } }),
      usage,
    };
  }
  const eventClass = CLASSES.get(type ?? "");
  return {
    ...(eventClass === undefined ? unknownFacts(type) : plainFacts(eventClass, type)),
    usage,
    responseId: readString(message?.["id"]),
  };
}

function stopReasonOf(json: JsonObject): string | null {
  return readString(readObject(json["delta"])?.["stop_reason"]);
}
