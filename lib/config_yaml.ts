/**
 * YAML text -> plain values, with a place for what is not YAML and for keys that are there twice.
 */
// The std modules on npm carry no types: this is the edge where their results are narrowed.
import { parse as parseUntyped, stringify as stringifyUntyped } from "@std/yaml";

interface ParseOptions {
  readonly schema: "core";
  readonly allowDuplicateKeys: boolean;
}
const parseYaml = parseUntyped as (text: string, options: ParseOptions) => unknown;
const stringifyYaml = stringifyUntyped as (value: unknown, options: { lineWidth: number }) => string;

/** Room for thousands of accounts; the parser needs time for every character and more for every line. */
export const CONFIG_TEXT_LIMIT_CHARACTERS = 524_288;
export const CONFIG_TEXT_LIMIT_LINES = 30_000;
/** Nothing of ours is deeper than six levels; the parser recurses once a level. */
export const CONFIG_NESTING_LIMIT = 200;
const TOO_DEEP = `is nested deeper than ${CONFIG_NESTING_LIMIT} levels`;
/** Each repeated key costs one more reading of the text: what all readings together may read. */
const READING_BUDGET_CHARACTERS = 1_048_576;
const DUPLICATE_LIMIT = 20;
/** How far before the parser's position a repeated key is looked for. */
const LOOK_BACK_CHARACTERS = 2_000;

export interface DuplicateKey {
  /** The key under which the second value is found in the result; null where it could not be told apart. */
  readonly marker: string | null;
  readonly key: string;
  readonly line: number;
}

export type YamlReading =
  | { readonly ok: true; readonly value: unknown; readonly duplicates: readonly DuplicateKey[] }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads one document by YAML's core schema: no dates, no tags, no merge keys.
 *
 * A repeated key does not end the reading: its later value is kept under a marker that cannot be in the text,
 * so that whoever walks the result can say where it is and goes on to everything else that is wrong.
 *
 * @returns `problem` with line and column, in our own words: the parser's message would quote the text.
 */
export function readYaml(text: string): YamlReading {
  const refusal = refuseSize(text);
  if (refusal !== null) return { ok: false, problem: refusal };
  let source = text.replace(/^\ufeff/, "");
  const duplicates: DuplicateKey[] = [];
  const mark = unusedMark(source);
  let allowDuplicateKeys = false;
  let budget = READING_BUDGET_CHARACTERS;
  let unmarked: string | null = null;
  let markedUntil = -1;
  for (;;) {
    budget -= source.length;
    try {
      const value = parseYaml(source, { schema: "core", allowDuplicateKeys });
      return { ok: true, value, duplicates };
    } catch (error) {
      // Levels made by indentation are not counted before; they can still exhaust the stack.
      if (error instanceof RangeError) return { ok: false, problem: TOO_DEEP };
      const failure = readFailure(error, source, mark);
      if (!failure.duplicate) {
        return { ok: false, problem: `line ${failure.line}, column ${failure.column}: ${failure.reason}` };
      }
      if (unmarked !== null && failure.offset <= markedUntil) {
        // The same failure at the same place: a word in a value was renamed, not the key.
        source = unmarked;
        duplicates.pop();
        budget = 0;
      }
      const found = budget > 0 && duplicates.length < DUPLICATE_LIMIT
        ? findKey(source, failure.offset)
        : null;
      if (found === null) {
        duplicates.push({ marker: null, key: "", line: failure.line });
        allowDuplicateKeys = true;
        continue;
      }
      const marker = `${mark}${duplicates.length}-`;
      unmarked = source;
      source = source.slice(0, found.offset) + marker + source.slice(found.offset);
      duplicates.push({ marker: marker + found.key, key: found.key, line: lineAt(source, found.offset) });
      markedUntil = failure.offset + marker.length;
    }
  }
}

/** The value as YAML in block form; long texts stay on one line. */
export function writeYaml(value: unknown): string {
  return stringifyYaml(value, { lineWidth: -1 });
}

function refuseSize(text: string): string | null {
  if (text.length > CONFIG_TEXT_LIMIT_CHARACTERS) {
    return `is longer than ${CONFIG_TEXT_LIMIT_CHARACTERS} characters`;
  }
  if (text.split(/\r\n|\n|\r/, CONFIG_TEXT_LIMIT_LINES + 1).length > CONFIG_TEXT_LIMIT_LINES) {
    return `is longer than ${CONFIG_TEXT_LIMIT_LINES} lines`;
  }
  return nestsTooDeep(text) ? TOO_DEEP : null;
}

/**
 * True when brackets or block indicators open more levels than we allow. Counts brackets inside quotes too:
 * no honest file comes near the limit, and a cheap bound before the parser is what matters.
 */
function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let indicators = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "[":
      case "{":
        depth++;
        break;
      case "]":
      case "}":
        depth = Math.max(0, depth - 1);
        break;
      case "-":
      case "?":
      case ":":
        // Block levels on one line: "- - - a".
        indicators++;
        break;
      case " ":
      case "\t":
        break;
      default:
        indicators = 0;
    }
    if (depth > CONFIG_NESTING_LIMIT || indicators > CONFIG_NESTING_LIMIT) return true;
  }
  return false;
}

// ---------------------------------------------------------------- what the parser's errors say

interface Failure {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
  readonly duplicate: boolean;
  readonly reason: string;
}

/** A piece of the parser's words, which may quote the text, and our own. First match wins. */
const REASONS: readonly (readonly [string, string])[] = [
  ["duplicated key", "a key is given more than once"],
  ["indentation", "the indentation does not fit"],
  ["nexpected end of", "a quote or bracket is not closed"],
  ["missing comma", "a comma or closing bracket is missing"],
  ["alias", "an alias (*) fits no anchor (&); put the text in quotes if it is none"],
  ["anchor", "an anchor (&) has no name; put the text in quotes if it is none"],
  ["more than 1 document", "there is a second document"],
  ["non-printable", "there is a character that cannot be printed"],
  ["tag", "tags (!) are not used here; put the text in quotes if it is none"],
  ["directive", "directives (%) are not used here; put the text in quotes if it is none"],
  ["explicit mapping pair", "there is no key where one has to be, or a text with a colon needs quotes"],
  ["implicit", "a colon is missing after a key"],
  ["document separator", "there is something where a key has to be, or a text needs quotes"],
  ["escape", "an escape in quotes is not known"],
  ["hexadecimal", "an escape in quotes is not known"],
  ["inside keys", "a list cannot be a key"],
];

function readFailure(error: unknown, source: string, mark: string): Failure {
  const fields = error !== null && typeof error === "object" ? error as Record<string, unknown> : {};
  const message = error instanceof Error ? error.message : "";
  const said = message.split(" at line ")[0]!;
  // The parser's own line and column are off after keys whose value spans lines; its offset is right.
  const offset = typeof fields["offset"] === "number" ? Math.min(fields["offset"], source.length) : 0;
  const lineStart = Math.max(source.lastIndexOf("\n", offset - 1), source.lastIndexOf("\r", offset - 1)) + 1;
  const before = source.slice(offset === 0 ? 0 : lineStart, offset);
  return {
    offset,
    line: lineAt(source, offset),
    column: before.replaceAll(new RegExp(`${mark}\\d+-`, "g"), "").length + 1,
    duplicate: said.includes("duplicated key"),
    reason: REASONS.find(([piece]) => said.includes(piece))?.[1] ?? "this is not YAML",
  };
}

function lineAt(source: string, offset: number): number {
  return source.slice(0, offset).split(/\r\n|\n|\r/).length;
}

// ---------------------------------------------------------------- keys that are there twice

function unusedMark(source: string): string {
  let mark = "repeated-";
  while (source.includes(mark)) mark = `${mark}again-`;
  return mark;
}

/**
 * Where the repeated key is written. The parser stops at the key in block style, behind its value in braces.
 *
 * @returns `null` for a key that is neither a plain word nor a quoted one.
 */
function findKey(source: string, offset: number): { offset: number; key: string } | null {
  return readKey(source, offset) ?? readKey(source, startOfPair(source, offset));
}

function readKey(source: string, offset: number): { offset: number; key: string } | null {
  const found = /^\s*(["']?)([A-Za-z0-9_.-]+)\1\s*:/.exec(source.slice(offset, offset + 200));
  if (found === null) return null;
  return { offset: offset + found[0].indexOf(found[2]!), key: found[2]! };
}

/** Back over the value to the brace or comma before the pair. A bracket in quotes may mislead it: harmless. */
function startOfPair(source: string, offset: number): number {
  let depth = 0;
  for (let at = offset - 1; at >= Math.max(0, offset - LOOK_BACK_CHARACTERS); at--) {
    const character = source[at]!;
    if (depth === 0 && (character === "," || character === "{")) return at + 1;
    if (character === "}" || character === "]") depth++;
    if (character === "{" || character === "[") depth--;
  }
  return offset;
}
