/**
 * From an upstream's words to a signal: dictionaries of codes, types and phrases, and how they are looked up.
 *
 * A dictionary holds our own literals only, so a word that was found is safe to keep as a code; the upstream's
 * text never leaves this file. What the words are is in `error_words.ts` and in the descriptors.
 */
import type { Signal } from "./classify.ts";
import type { ErrorFacts } from "./evidence.ts";
import type { StatedTime } from "./outcome.ts";

type RequestFault = Extract<Signal, { kind: "request_fault" }>;

export type Meaning =
  | {
    readonly kind: "request_fault";
    readonly row: RequestFault["row"];
    readonly state?: RequestFault["state"];
  }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "credential_dead" }
  /** The login is good, the account is refused for now: an hour, in memory. */
  | { readonly kind: "account_pause" }
  | { readonly kind: "credits" }
  /** Credits are gone, but the answer may name a window that brings quota back earlier. */
  | { readonly kind: "credits_unless_timed" }
  | { readonly kind: "model" }
  | { readonly kind: "limit"; readonly shape: "rate" | "quota" }
  /** Refused for the moment, and nobody's quota: the account rests a few seconds, the provider gets no strike. */
  | { readonly kind: "throttle" }
  | { readonly kind: "overloaded" }
  | { readonly kind: "edge_block" }
  | { readonly kind: "provider_reported" }
  | { readonly kind: "transient" };

export interface Phrase {
  readonly pattern: RegExp;
  readonly code: string;
  readonly meaning: Meaning;
  /** Statuses at which the text counts (null: none is stated); absent: those that do not contradict its meaning. */
  readonly at?: readonly (number | null)[];
}

export interface Dictionary {
  readonly codes: ReadonlyMap<string, Meaning>;
  /** Only types that mean one thing at any status; `invalid_request_error` also comes with a dead token. */
  readonly types: ReadonlyMap<string, Meaning>;
  /** Tried in order, after code and type. */
  readonly phrases: readonly Phrase[];
}

export interface Found {
  readonly code: string;
  readonly meaning: Meaning;
}

/** How long `account_pause` lasts (design.md ruling 20). */
export const ACCOUNT_PAUSE_MS = 3_600_000;

/** Phrases stand at the beginning of what a person is told; a page of text is not searched through. */
const SEARCHED_CHARS = 2_000;

/**
 * Looks an error up: detail code, code, type, then the text.
 *
 * @param status  HTTP status, or the one stated in a stream; null when nothing states one.
 * @returns `null` when no word is known: the status alone decides.
 * Source: wire-facts 9.5 rule 1; design.md ruling 19 (codes win over a 401, types and texts do not).
 */
export function findMeaning(error: ErrorFacts, status: number | null, dictionary: Dictionary): Found | null {
  for (const word of [error.detailCode, error.code]) {
    const found = lookUp(word, status, dictionary.codes);
    if (found !== null) return found;
  }
  const typed = lookUp(error.type, status, dictionary.types);
  if (typed !== null) return typed;
  if (error.message === null || error.form === "html") return null;
  const text = error.message.slice(0, SEARCHED_CHARS);
  for (const { pattern, code, meaning, at } of dictionary.phrases) {
    const applies = at === undefined ? phraseAppliesAt(meaning, status) : at.includes(status);
    if (applies && pattern.test(text)) return { code, meaning };
  }
  return null;
}

/** Spelling of a code as dictionaries hold it: hyphens and blanks equal underscores, case does not matter. */
export function normalizeCode(word: string): string {
  return word.trim().toLowerCase().replace(/[\s-]+/g, "_");
}

export function extendDictionary(base: Dictionary, more: Partial<Dictionary>): Dictionary {
  return {
    codes: new Map([...base.codes, ...more.codes ?? []]),
    types: new Map([...base.types, ...more.types ?? []]),
    // The special case is tried before the general one.
    phrases: [...more.phrases ?? [], ...base.phrases],
  };
}

export interface SignalDetails {
  readonly nowMs: number;
  /** False when the request names no model: then none can be excluded. */
  readonly namesModel: boolean;
  readonly limiter: "account" | "model";
  readonly stated: StatedTime | null;
}

export function signalOf({ code, meaning }: Found, details: SignalDetails): Signal {
  const { stated, limiter } = details;
  switch (meaning.kind) {
    case "request_fault":
      return { kind: "request_fault", row: meaning.row, code, state: meaning.state ?? "none" };
    case "unauthorized":
    case "credential_dead":
    case "credits":
    case "edge_block":
    case "provider_reported":
      return { kind: meaning.kind, code };
    case "account_pause":
      return { kind: "account_pause", code, untilMs: details.nowMs + ACCOUNT_PAUSE_MS };
    case "credits_unless_timed":
      return stated === null
        ? { kind: "credits", code }
        : { kind: "limited", shape: "quota", limiter, code, stated };
    case "model":
      return details.namesModel
        ? { kind: "model_unsupported", code }
        : { kind: "request_fault", row: 2, code, state: "none" };
    case "limit":
      return { kind: "limited", shape: meaning.shape, limiter, code, stated };
    case "throttle":
    case "overloaded":
    case "transient":
      return { kind: meaning.kind, code, stated };
    default:
      return meaning satisfies never;
  }
}

function lookUp(
  word: string | null,
  status: number | null,
  words: ReadonlyMap<string, Meaning>,
): Found | null {
  if (word === null) return null;
  const code = normalizeCode(word);
  const meaning = words.get(code) ?? imageFault(code);
  if (meaning === undefined || (meaning.kind === "model" && !MODEL_STATUSES.has(status))) return null;
  return { code: words.has(code) ? code : "invalid_image", meaning };
}

/** The platform has a code for each way in which an image can be wrong, and adds more. */
function imageFault(code: string): Meaning | undefined {
  return /^(?:invalid_image|image)_[a-z_]{1,48}$/.test(code) ? { kind: "request_fault", row: 2 } : undefined;
}

/** Where a missing model is the model's fault; with a 5xx or a 429 it is a passing state (state-machine-facts 2A.5). */
const MODEL_STATUSES: ReadonlySet<number | null> = new Set([400, 403, 404, 422, null]);
const REQUEST_STATUSES: ReadonlySet<number | null> = new Set([400, 403, 404, 409, 413, 422, null]);
const ACCOUNT_STATUSES: ReadonlySet<number | null> = new Set([400, 401, 402, 403, 429, null]);

/** Texts are weaker than codes: they count only where the status does not contradict them. */
function phraseAppliesAt(meaning: Meaning, status: number | null): boolean {
  switch (meaning.kind) {
    case "request_fault":
      return REQUEST_STATUSES.has(status);
    case "model":
      return MODEL_STATUSES.has(status);
    case "unauthorized":
    case "credential_dead":
    case "account_pause":
    case "credits":
    case "credits_unless_timed":
    case "edge_block":
      return ACCOUNT_STATUSES.has(status);
    case "limit":
    case "throttle":
      return status === 429 || status === null;
    case "overloaded":
    case "provider_reported":
    case "transient":
      return status === null || status === 429 || status >= 500;
    default:
      return meaning satisfies never;
  }
}
