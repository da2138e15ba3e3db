/**
 * The kinds of values a configuration key can have: what each lets through, and the words for what it does not.
 */
import { z } from "zod";
import { MODEL_KEY_LIMIT_BYTES } from "./core/domain.ts";

/** What people are told of a key beside its shape. */
export interface KeyFacts {
  /** `seconds`, `bytes` …; empty where the value has none. */
  readonly unit: string;
  /** `0..3600`, `round-robin, fill-first`, or a word for what is allowed. */
  readonly range: string;
  /** The value is never shown. */
  readonly secret: boolean;
}

/** A registry of our own, so that the JSON Schema holds standard words only. */
const FACTS = z.registry<KeyFacts>();

export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** Visible ASCII and spaces between: what may stand in a header. */
const HEADER_PATTERN = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;
// deno-lint-ignore no-control-regex -- control characters are what it refuses
const NAME_PATTERN = /^[^\s\x00-\x1f\x7f]+$/;
export const LONGEST_TEXT = 4_096;
const LONGEST_HEADER = 512;

/** What is known of a value beside its shape; null for mappings. */
export function readFacts(node: z.ZodType): KeyFacts | null {
  return FACTS.get(node) ?? null;
}

/** Every failure of a value says the whole rule, whichever part of it was broken. */
export function must(rule: string): () => string {
  return () => `must ${rule}`;
}

function withFacts<T extends z.ZodType>(node: T, facts: Partial<KeyFacts>): T {
  FACTS.add(node, { unit: "", range: "", secret: false, ...facts });
  return node;
}

export function whole(min: number, max: number, unit: string, fallback: number) {
  const error = must(`be ${min}..${max}${unit === "" ? "" : ` ${unit}`}`);
  const node = z.int({ error }).min(min, { error }).max(max, { error });
  return withFacts(node, { unit, range: `${min}..${max}` }).default(fallback);
}

export function flag(fallback: boolean) {
  return withFacts(z.boolean({ error: must("be true or false") }), { range: "true, false" }).default(
    fallback,
  );
}

export function choice<const T extends readonly [string, ...string[]]>(words: T) {
  const range = words.join(", ");
  return withFacts(z.enum(words, { error: must(`be one of ${range}`) }), { range });
}

export function text(rule: { is: string; pattern?: RegExp; max?: number; mayBeEmpty?: boolean }) {
  const error = must(`be ${rule.is}`);
  let node = z.string({ error: must("be text") });
  if (rule.mayBeEmpty !== true) node = node.min(1, { error });
  if (rule.max !== undefined) {
    node = node.max(rule.max, { error: must(`be at most ${rule.max} characters`) });
  }
  if (rule.pattern !== undefined) node = node.regex(rule.pattern, { error });
  return withFacts(node, { range: rule.mayBeEmpty === true ? `${rule.is}, or empty` : rule.is });
}

export function model() {
  const error = must(`be 1..${MODEL_KEY_LIMIT_BYTES} bytes without spaces`);
  const node = z.string({ error: must("be text") }).regex(NAME_PATTERN, { error })
    .refine((name) => new TextEncoder().encode(name).length <= MODEL_KEY_LIMIT_BYTES, { error });
  return withFacts(node, { range: `1..${MODEL_KEY_LIMIT_BYTES} bytes` });
}

export function providerReference() {
  return text({ is: "the id of a provider, or codex", max: 64 }).describe("Id of a provider, or codex");
}

export function url(fallback: string) {
  return text({ is: "https URL (http on loopback)", max: LONGEST_TEXT }).default(fallback);
}

export function header(fallback: string) {
  const error = must("be visible ASCII text on one line");
  const node = z.string({ error: must("be text") }).max(LONGEST_HEADER, { error })
    .regex(HEADER_PATTERN, { error });
  return withFacts(node, { range: `0..${LONGEST_HEADER} characters` }).default(fallback);
}

/** The emptiness and the characters of a key are checked once `env:NAME` has been read. */
export function secret(range = "a key or env:NAME") {
  const node = z.string({ error: must("be text") }).max(LONGEST_TEXT, {
    error: must(`be at most ${LONGEST_TEXT} characters`),
  });
  return withFacts(node, { range, secret: true });
}

export function list<T extends z.ZodType>(element: T, max: number, min = 0) {
  const error = must(min === 0 ? "be a list" : `be a list of at least ${min}`);
  const node = z.array(element, { error }).min(min, { error }).max(max, {
    error: must(`be a list of at most ${max}`),
  });
  return withFacts(node, { range: `${min}..${max} entries` });
}

export function section<T extends z.ZodRawShape>(shape: T) {
  return z.strictObject(shape, { error: must("be a mapping") }).prefault({} as never);
}
