/**
 * The JSON types a client's fields must have, as tables that are checked in one pass before anything is read.
 *
 * Readers take what they understand and leave the rest. Without this pass a field of the wrong type would be left too,
 * and the upstream be asked something the client never said. Words nobody knows (a `type`, a `role`) and members
 * nobody knows are the readers' affair. Nothing here knows a protocol.
 */
import { entryOf, isObject, type JsonObject } from "./json.ts";
import type { TranslationReport } from "./report.ts";

/** Refuses the value, by its place, if it is not what it must be. */
export type Shape = (value: unknown, path: string, report: TranslationReport) => void;

export const TEXT = must("a text", (value) => typeof value === "string");
/** JSON can say numbers that are none any more once they are read, such as 1e999. */
export const NUMBER = must("a number", Number.isFinite);
export const FLAG = must("true or false", (value) => typeof value === "boolean");
export const OBJECT = must("an object", isObject);
const LIST = must("a list", Array.isArray);
const TEXT_OR_LIST = must("a text or a list", (value) => typeof value === "string" || Array.isArray(value));
const TEXT_OR_OBJECT = must("a text or an object", (value) => typeof value === "string" || isObject(value));

/** May be absent; `null` counts as absent in all three protocols. */
export function optional(shape: Shape): Shape {
  return (value, path, report) => {
    if (value !== null && value !== undefined) shape(value, path, report);
  };
}

export function listOf(item: Shape): Shape {
  return (value, path, report) => {
    LIST(value, path, report);
    if (Array.isArray(value)) value.forEach((one, index) => item(one, `${path}[${index}]`, report));
  };
}

export function textOrListOf(item: Shape): Shape {
  const list = listOf(item);
  return (value, path, report) => {
    TEXT_OR_LIST(value, path, report);
    if (Array.isArray(value)) list(value, path, report);
  };
}

export function textOrObject(object: Shape): Shape {
  return (value, path, report) => {
    TEXT_OR_OBJECT(value, path, report);
    if (isObject(value)) object(value, path, report);
  };
}

/** An object with these members; a required one that is missing is refused by its name. Others are not looked at. */
export function objectOf(members: Readonly<Record<string, Shape>>): Shape {
  const entries = Object.entries(members);
  return (value, path, report) => {
    if (!isObject(value)) return OBJECT(value, path, report);
    for (const [key, shape] of entries) shape(value[key], path === "" ? key : `${path}.${key}`, report);
  };
}

/** An object whose `type` says which shape it has. Types without a shape are left to whoever reads them. */
export function byType(shapes: Readonly<Record<string, Shape>>): Shape {
  return chosenBy((value) => typeof value.type === "string" ? entryOf(shapes, value.type) : null);
}

/** An object of the shape that somebody chooses by a look at it; `null` asks for nothing more than an object. */
export function chosenBy(choose: (value: JsonObject) => Shape | null): Shape {
  return (value, path, report) => {
    if (!isObject(value)) return OBJECT(value, path, report);
    choose(value)?.(value, path, report);
  };
}

/** An object that fits the shape and has one of the members at least; the first is named when all are missing. */
export function withOneOf(keys: readonly [string, ...string[]], shape: Shape): Shape {
  return (value, path, report) => {
    shape(value, path, report);
    if (!isObject(value) || keys.some((key) => value[key] !== null && value[key] !== undefined)) return;
    TEXT(undefined, `${path}.${keys[0]}`, report);
  };
}

function must(what: string, fits: (value: unknown) => boolean): Shape {
  return (value, path, report) => {
    if (!fits(value)) report.refuse(path, `must be ${what}`);
  };
}
