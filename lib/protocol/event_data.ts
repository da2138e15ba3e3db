/** What the dialects share: telling padding from data, and the facts of events that say nothing further. */
import type { EventClass, EventFacts } from "./stream_dialect.ts";
import type { SseFrame } from "./sse.ts";
import { type JsonMember, scanTopLevel } from "./json_scan.ts";

export type JsonObject = { readonly [key: string]: unknown };

export type EventData =
  | { readonly kind: "comment" | "done" | "padding" | "malformed" }
  | { readonly kind: "object"; readonly json: JsonObject };

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Parses the data. Values that are JSON but no object (`null`, `0`, `[]`) are padding (field case B068). */
export function readEventData(frame: SseFrame): EventData {
  const text = frame.data();
  if (text === null) return { kind: "comment" };
  const trimmed = text.trim();
  if (trimmed === "[DONE]") return { kind: "done" };
  if (trimmed === "") return { kind: "padding" };
  try {
    const json: unknown = JSON.parse(trimmed);
    const object = readObject(json);
    return object === null ? { kind: "padding" } : { kind: "object", json: object };
  } catch {
    return { kind: "malformed" };
  }
}

/**
 * The type of an event without parsing it: `type` where it leads the data, else an `event:` line of a known
 * name in front of an object. `null`: parse.
 */
export function readEventType(frame: SseFrame, isKnown: (name: string) => boolean): string | null {
  const hint = frame.typeHint();
  if (hint !== null) return hint;
  const data = frame.dataBytes();
  if (data === null || data[0] !== 0x7b || data.at(-1) !== 0x7d) return null;
  const name = frame.event;
  return name !== null && isKnown(name) ? name : null;
}

/** Top-level members of the data, for events whose few interesting fields lie in much text; `null`: not an object. */
export function scanEventData(frame: SseFrame): { bytes: Uint8Array; members: JsonMember[] } | null {
  const bytes = frame.dataBytes() ?? ENCODER.encode(frame.data() ?? "");
  const scan = scanTopLevel(bytes);
  return scan.ok ? { bytes, members: scan.members } : null;
}

/** @returns the parsed value, or `null` when the member is absent or not JSON inside. */
export function parseMember(bytes: Uint8Array, member: JsonMember | null): unknown {
  if (member === null) return null;
  try {
    return JSON.parse(DECODER.decode(bytes.subarray(member.valueStart, member.valueEnd)));
  } catch {
    return null;
  }
}

/** One object for each class and type: a stream has thousands of events and few kinds. */
const PLAIN_FACTS = new Map<string, EventFacts>();
const PLAIN_FACTS_LIMIT = 512;

/** Facts of an event that carries nothing but its class. */
export function plainFacts(eventClass: EventClass, type: string | null): EventFacts {
  const key = `${eventClass} ${type ?? ""}`;
  const known = PLAIN_FACTS.get(key);
  if (known !== undefined) return known;
  const facts: EventFacts = Object.freeze({
    class: eventClass,
    type,
    failure: null,
    usage: null,
    quota: null,
    responseId: null,
  });
  if (PLAIN_FACTS.size < PLAIN_FACTS_LIMIT) PLAIN_FACTS.set(key, facts);
  return facts;
}

/** Facts of an event nobody knows: output, as far as anybody can tell. */
export function unknownFacts(type: string | null): EventFacts {
  return { ...plainFacts("output", type), unknown: true };
}

export function readObject(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : null;
}

export function readString(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
