/**
 * Whether a JSON schema is of the kind OpenAI calls strict: every object closed, every property required.
 */
import { isObject, type JsonObject, readList } from "./json.ts";

/** Deeper schemas are taken for lax rather than walked further. */
const DEPTH_LIMIT = 64;

export function isStrictSchema(schema: JsonObject, depth = 0): boolean {
  if (depth > DEPTH_LIMIT) return false;
  const properties = isObject(schema.properties) ? schema.properties : {};
  const names = Object.keys(properties);
  if (schema.type === "object" || names.length > 0) {
    const required = readList(schema.required);
    if (schema.additionalProperties !== false || !names.every((name) => required.includes(name))) {
      return false;
    }
  }
  const below = [
    ...Object.values(properties),
    ...readList(schema.anyOf),
    ...Object.values(isObject(schema.$defs) ? schema.$defs : {}),
    ...Object.values(isObject(schema.definitions) ? schema.definitions : {}),
    ...(schema.items === undefined ? [] : [schema.items]),
  ];
  return below.every((one) => isObject(one) && isStrictSchema(one, depth + 1));
}
