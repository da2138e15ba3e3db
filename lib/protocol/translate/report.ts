/**
 * What a request translation has to say besides its result: one refusal at most, and notes.
 *
 * Translators go on after a refusal with whatever they have; the caller looks at the end. That keeps every reader a
 * plain function instead of one that returns a union at each level.
 */
import { isObject, type JsonObject } from "./json.ts";

export interface Refusal {
  /** The part by the client's own name for it, e.g. `messages[3].content[1].type "zz_new"`. */
  readonly part: string;
  readonly reason: string;
}

/** What happens to one field of a request that crosses protocols. */
export type FieldRule =
  /** Carried; `as` names the counterpart for the documents. */
  | { readonly kind: "carried"; readonly as: string }
  /** A hint on cost, style or bookkeeping: left out with a note, the answer's meaning stays. */
  | { readonly kind: "hint"; readonly why: string }
  /** Left out when it says what is the default anyway; refused otherwise. */
  | { readonly kind: "default_only"; readonly defaults: readonly unknown[]; readonly why: string }
  | { readonly kind: "refused"; readonly why: string };

export type FieldRules = Readonly<Record<string, FieldRule>>;

/** Notes kept of one request. */
const NOTE_LIMIT = 100;
/** Longest word of a client repeated to it or to the log. */
const WORD_LIMIT = 80;

/** A word from outside as it may stand in a sentence of ours. */
export function quoted(word: unknown): string {
  return typeof word === "string" ? JSON.stringify(word.slice(0, WORD_LIMIT)) : typeof word;
}

export class TranslationReport {
  /** Hub field -> the client's name of it, where the two differ. */
  readonly #fieldNames: Readonly<Record<string, string>>;
  readonly #notes = new Set<string>();
  #refusal: Refusal | null = null;

  constructor(fieldNames: Readonly<Record<string, string>> = {}) {
    this.#fieldNames = fieldNames;
  }

  get refusal(): Refusal | null {
    return this.#refusal;
  }

  get notes(): string[] {
    return [...this.#notes];
  }

  /** Refuses the request; the first refusal stands. */
  refuse(part: string, reason: string): void {
    this.#refusal ??= { part, reason };
  }

  /** Refuses a part whose `type` nobody knows or nothing can carry. */
  refuseType(path: string, type: unknown, reason: string): void {
    this.refuse(`${path}.type ${quoted(type)}`, reason);
  }

  /** Says once that something was changed or left out; a request with more to say than the log wants is cut. */
  note(text: string): void {
    if (this.#notes.size < NOTE_LIMIT) this.#notes.add(text);
  }

  /** The client's name of a top-level hub field. */
  field(hubName: string): string {
    return this.#fieldNames[hubName] ?? hubName;
  }

  /**
   * Applies the rules to every top-level field: hints are noted, unknown and impossible ones refused by name.
   * `null` counts as absent in all three protocols.
   */
  applyRules(body: JsonObject, rules: FieldRules, target: string): void {
    for (const key of Object.keys(body)) {
      const value = body[key];
      if (value === null || value === undefined) continue;
      const rule = Object.hasOwn(rules, key) ? rules[key]! : null;
      if (rule === null) this.refuse(this.field(key).slice(0, WORD_LIMIT), `${target} has no such field`);
      else if (rule.kind === "hint") this.note(`${this.field(key)} left out: ${rule.why}`);
      else if (rule.kind === "refused") this.refuse(this.field(key), rule.why);
      else if (rule.kind === "default_only" && !rule.defaults.some((one) => sameJson(one, value))) {
        this.refuse(this.field(key), rule.why);
      }
    }
  }

  /** Notes members of a known part that have no counterpart, so that they do not vanish unseen. */
  noteExtras(part: JsonObject, known: ReadonlySet<string>, path: string): void {
    for (const key of Object.keys(part)) {
      const value = part[key];
      if (value === null || value === undefined || known.has(key)) continue;
      this.note(`${path}.${key.slice(0, WORD_LIMIT)} left out: no counterpart`);
    }
  }
}

/** Equality of two JSON values; key order of objects does not matter. */
function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((one, i) => sameJson(one, right[i]));
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}
