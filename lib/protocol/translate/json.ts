/**
 * Small readers for JSON of unknown shape, and the way a translated part remembers where it came from.
 *
 * Nothing here knows a protocol.
 */

/** A JSON object as parsed: nothing is known of its values until somebody looks. */
export type JsonObject = { [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @returns the value if it is a string, else `null`. */
export function readText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** @returns the value if it is a finite number, else `null`. */
export function readNumber(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** @returns the value if it is a list, else an empty one. */
export function readList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** @returns the parsed object, or `null` for every other text (also for lists and bare values). */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** The entry of a fixed table; words from outside such as `constructor` find nothing. */
export function entryOf<T>(table: Readonly<Record<string, T>>, key: string): T | null {
  return Object.hasOwn(table, key) ? table[key]! : null;
}

/** The object without the members that are `undefined`, which JSON cannot say. */
export function defined<T extends JsonObject>(object: T): T {
  for (const key of Object.keys(object)) if (object[key] === undefined) delete object[key];
  return object;
}

/**
 * Where a hub part stood in the client's body, e.g. `messages[3].content[1]`.
 *
 * A symbol key never reaches the wire (`JSON.stringify` skips it) and lets a later stage refuse a part by the name
 * the client knows it by.
 */
const ORIGIN = Symbol("origin");

export function withOrigin<T extends object>(part: T, path: string): T {
  return Object.defineProperty(part, ORIGIN, { value: path });
}

/** @returns the remembered path, or `fallback` where the part came from a Responses client and needs none. */
export function originOf(part: object, fallback: string): string {
  const origin = (part as { [ORIGIN]?: string })[ORIGIN];
  return origin ?? fallback;
}
