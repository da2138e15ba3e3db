/**
 * The events of a Responses stream, Codex's private ones included (wire-facts 2.1 and 2.2).
 *
 * Allow-list: only what is known to carry no output may be held back; every other event counts as output, and one
 * of a family nobody knows is marked so.
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
  unknownFacts,
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
  // The bulk of every stream, found at the first look.
  ["response.output_text.delta", "output"],
  ["response.reasoning_summary_text.delta", "output"],
  ["response.function_call_arguments.delta", "output"],
]);

/** The word after `response.` in every event that carries output, whatever its last word. */
const OUTPUT_FAMILIES: ReadonlySet<string> = new Set([
  "apply_patch_call_operation_diff",
  "audio",
  "code_interpreter_call",
  "code_interpreter_call_code",
  "compaction",
  "content_part",
  "custom_tool_call_input",
  "file_search_call",
  "function_call_arguments",
  "image_generation_call",
  "local_shell_call",
  "mcp_call",
  "mcp_call_arguments",
  "mcp_list_tools",
  "output_item",
  "output_text",
  "reasoning",
  "reasoning_summary",
  "reasoning_summary_part",
  "reasoning_summary_text",
  "reasoning_text",
  "refusal",
  "shell_call_command",
  "shell_call_output_content",
  "steer",
  "web_search_call",
]);
const PREFIX = "response.";

export const responsesDialect: StreamDialect = { protocol: "responses", readEvent };

function readEvent(frame: SseFrame): EventFacts {
  const type = readEventType(frame, isKnown);
  if (type === null) return readWhole(frame);
  const eventClass = classOf(type);
  if (eventClass === null) return unknownFacts(type);
  if (type === "response.created" || eventClass === "success") return readEnvelope(frame, type, eventClass);
  if (type === "codex.rate_limits" || eventClass === "failure") return readWhole(frame);
  return plainFacts(eventClass, type);
}

function isKnown(type: string): boolean {
  return type.startsWith(PREFIX) || CLASSES.has(type);
}

/** @returns `null` for an event nobody knows. */
function classOf(type: string): EventClass | null {
  const known = CLASSES.get(type);
  if (known !== undefined) return known;
  if (!type.startsWith(PREFIX)) return null;
  const end = type.indexOf(".", PREFIX.length);
  return end > 0 && OUTPUT_FAMILIES.has(type.slice(PREFIX.length, end)) ? "output" : null;
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
  const eventClass = classOf(type ?? "");
  const isFailure = eventClass === "failure" ||
    (eventClass === "success" && response?.["status"] === "failed") ||
    (json["type"] === undefined && hasErrorObject(json));
  if (isFailure) return readFailure(json, type, response);
  return {
    ...(eventClass === null ? unknownFacts(type) : plainFacts(eventClass, type)),
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
