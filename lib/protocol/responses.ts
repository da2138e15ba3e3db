/**
 * The events of a Responses stream, Codex's private ones included (wire-facts 2.1 and 2.2).
 *
 * Allow-list: only what is known to carry no output may be held back; an unknown event counts as output.
 */
import { hasErrorObject, readErrorValue } from "./error_body.ts";
import {
  type JsonObject,
  parseMember,
  plainFacts,
  readEventData,
  readEventType,
  readObject,
  readString,
  scanEventData,
} from "./event_data.ts";
import { readRateLimitsEvent } from "./codex_quota.ts";
import { findMember, findNested, readStringValue } from "./json_scan.ts";
import { readResponsesUsage } from "./token_usage.ts";
import type { SseFrame } from "./sse.ts";
import type { EventClass, EventFacts, StreamDialect } from "./stream_dialect.ts";

const CLASSES: ReadonlyMap<string, EventClass> = new Map([
  ["keepalive", "lifecycle"],
  ["codex.keepalive", "lifecycle"],
  ["codex.response.metadata", "lifecycle"],
  ["codex.rate_limits", "lifecycle"],
  ["response.created", "lifecycle"],
  ["response.queued", "lifecycle"],
  ["response.in_progress", "lifecycle"],
  ["responsesapi.websocket_timing", "lifecycle"],
  ["response.completed", "success"],
  ["response.done", "success"],
  ["response.incomplete", "success"],
  ["response.failed", "failure"],
  ["error", "failure"],
]);

export const responsesDialect: StreamDialect = { protocol: "responses", readEvent };

function readEvent(frame: SseFrame): EventFacts {
  const type = readEventType(frame, isKnown);
  if (type === null) return readWhole(frame);
  const eventClass = CLASSES.get(type) ?? "output";
  if (type === "response.created" || eventClass === "success") return readEnvelope(frame, type, eventClass);
  if (type === "codex.rate_limits" || eventClass === "failure") return readWhole(frame);
  return plainFacts(eventClass, type);
}

function isKnown(type: string): boolean {
  return type.startsWith("response.") || CLASSES.has(type);
}

/** Events around a response object that may hold megabytes, of which an id and the usage are wanted. */
function readEnvelope(frame: SseFrame, type: string, eventClass: EventClass): EventFacts {
  const data = scanEventData(frame);
  if (data === null) return plainFacts("malformed", type);
  const { bytes, members } = data;
  const response = findMember(members, "response");
  const facts = plainFacts(eventClass, type);
  const responseId = readStringValue(bytes, findNested(bytes, response, "id"));
  const status = readStringValue(bytes, findNested(bytes, response, "status"));
  // `response.done` closes a failed response as well.
  if (eventClass === "success" && status === "failed") return readWhole(frame);
  const usage = readResponsesUsage(parseMember(bytes, findNested(bytes, response, "usage")));
  return { ...facts, responseId, usage };
}

function readWhole(frame: SseFrame): EventFacts {
  const data = readEventData(frame);
  // `[DONE]` ends chat streams; some hosts append it here, where it says nothing.
  if (data.kind === "done") return plainFacts("padding", null);
  if (data.kind !== "object") return plainFacts(data.kind, null);
  return readResponsesEvent(data.json, frame.event);
}

/**
 * Facts of one parsed event: the data of an SSE frame, or a text frame of a WebSocket.
 *
 * @param name  the type where the event itself states none.
 */
export function readResponsesEvent(json: JsonObject, name: string | null): EventFacts {
  const type = readString(json["type"]) ?? name;
  const response = readObject(json["response"]);
  const eventClass = CLASSES.get(type ?? "") ?? "output";
  const isFailure = eventClass === "failure" ||
    (eventClass === "success" && response?.["status"] === "failed") ||
    (json["type"] === undefined && hasErrorObject(json));
  if (isFailure) return readFailure(json, type, response);
  return {
    ...plainFacts(eventClass, type),
    usage: readResponsesUsage(response?.["usage"]),
    quota: type === "codex.rate_limits" ? readRateLimitsEvent(json) : null,
    responseId: readString(response?.["id"]),
  };
}

/** Forms A, B and C of wire-facts 2.2, and the WebSocket error frame with its status. */
function readFailure(json: JsonObject, type: string | null, response: JsonObject | null): EventFacts {
  return {
    ...plainFacts("failure", type),
    failure: readErrorValue(json),
    usage: readResponsesUsage(response?.["usage"]),
    responseId: readString(response?.["id"]),
  };
}
