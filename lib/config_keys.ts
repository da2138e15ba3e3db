/**
 * Questions about the keys of the configuration: which there are at a place, what is known of one.
 */
import { z } from "zod";
import { type KeyFacts, readFacts } from "./config_kinds.ts";
import { CONFIG_SCHEMA } from "./config_schema.ts";

/**
 * JSON Schema (2020-12) of the file, for editors; `docs/config.schema.json` is its printed form.
 *
 * It knows shapes and ranges; rules over several keys are told by `config check` alone.
 */
export function configJsonSchema(): unknown {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Holdfast configuration",
    ...z.toJSONSchema(CONFIG_SCHEMA, { io: "input" }),
  };
}

export type KeyPath = readonly (string | number)[];

/** @returns the schema at a place of the file, without its default; `null` where no key is known. */
export function schemaAt(path: KeyPath): z.ZodType | null {
  let node: z.ZodType = CONFIG_SCHEMA;
  for (const step of path) {
    const next = childOf(unwrap(node), step);
    if (next === null) return null;
    node = next;
  }
  return unwrap(node);
}

export function factsAt(path: KeyPath): KeyFacts | null {
  const node = schemaAt(path);
  return node === null ? null : readFacts(node);
}

/** True where the key may be left out. */
export function isOptionalAt(path: KeyPath): boolean {
  const parent = schemaAt(path.slice(0, -1));
  const key = path.at(-1);
  if (!(parent instanceof z.ZodObject) || key === undefined) return false;
  const node = childOf(parent, key);
  return node !== null && unwrap(node) !== node;
}

/** Known keys at a place of the file, in the order of the schema; empty for values. */
export function keysAt(path: KeyPath): readonly string[] {
  const node = schemaAt(path);
  return node instanceof z.ZodObject ? Object.keys(node.shape) : [];
}

export interface KnownKey {
  /** `[]` stands for any entry of a list. */
  readonly path: string;
  /** Null for mappings. */
  readonly facts: KeyFacts | null;
}

/** Every key there is, in the order of the schema, a mapping before what is in it. */
export function allKeys(): readonly KnownKey[] {
  const keys: KnownKey[] = [];
  const walk = (shape: z.ZodObject, prefix: string) => {
    for (const [key, child] of Object.entries(shape.shape)) {
      const node = unwrap(child as z.ZodType);
      const path = prefix + key;
      keys.push({ path, facts: readFacts(node) });
      const inner = node instanceof z.ZodArray ? unwrap(node.element as z.ZodType) : node;
      if (inner instanceof z.ZodObject) walk(inner, node === inner ? `${path}.` : `${path}[].`);
    }
  };
  walk(CONFIG_SCHEMA, "");
  return keys;
}

function childOf(node: z.ZodType, step: string | number): z.ZodType | null {
  if (node instanceof z.ZodArray && typeof step === "number") return node.element as z.ZodType;
  if (node instanceof z.ZodObject && typeof step === "string" && Object.hasOwn(node.shape, step)) {
    return node.shape[step] as z.ZodType;
  }
  return null;
}

function unwrap(node: z.ZodType): z.ZodType {
  let inner = node;
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodOptional) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}
