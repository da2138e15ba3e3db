/**
 * Reads what an upstream says went wrong, from every shape an error has been seen in; never throws.
 *
 * Only reads: what the words mean is the provider descriptors' part, and nothing read here is shown to a client.
 * Sources: wire-facts 1.1 (Codex, shapes a-h), 6.1 and 6.2 (Anthropic), 7.2 (z.ai), 8.1 (OpenAI).
 */
import type { ErrorFacts, HeaderLookup } from "../core/evidence.ts";

/** Callers read at most this much of an error body (ruling 10); longer text is cut here once more. */
export const ERROR_BODY_LIMIT_BYTES = 65_536;

/** Stated times above this are ms already: as seconds they would lie 30,000 years ahead. */
const SECONDS_LIMIT = 1e12;
/** The last moment a date can name; keeps absurd values finite. */
const LAST_MOMENT_MS = 8.64e15;
const CODE_LIMIT = 128;
/** What can be a code rather than a sentence. */
const CODE_WORD = /^[A-Za-z0-9_.:/-]+$/;
/** z.ai: `[1302][text][request id]`. */
const BRACKET_CODE = /^\s*\[([0-9]{3,5})\]\s*\[/;
const ZONED_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

const DECODER = new TextDecoder();

type JsonObject = { readonly [key: string]: unknown };

const NOTHING: ErrorFacts = {
  form: "empty",
  code: null,
  type: null,
  message: null,
  param: null,
  status: null,
  resetsAtMs: null,
  resetsInMs: null,
  detailCode: null,
};

/** Facts of a whole error body. For HTML and plain text `message` is that text. */
export function readErrorFacts(bytes: Uint8Array, contentType: string | null): ErrorFacts {
  const text = DECODER.decode(bytes.subarray(0, ERROR_BODY_LIMIT_BYTES)).trim();
  if (text === "") return NOTHING;
  if (text.startsWith("<") || /\btext\/html\b/i.test(contentType ?? "")) {
    return { ...NOTHING, form: "html", message: text };
  }
  const json = parseJson(text);
  return json === undefined ? { ...NOTHING, form: "text", message: text } : readErrorValue(json);
}

/** Facts of a parsed body, a stream event's data or a WebSocket frame. */
export function readErrorValue(json: unknown): ErrorFacts {
  if (typeof json === "string") return { ...NOTHING, form: "other_json", message: readText(json) };
  const body = Array.isArray(json) ? readObject(json[0]) : readObject(json);
  if (body === null) return { ...NOTHING, form: "other_json" };
  const error = findError(body);
  const detail = readObject(body["detail"]) ?? readObject(firstOf(body["detail"]));
  const message = readText(error?.["message"]) ?? readText(error?.["msg"]) ??
    readText(detail?.["message"]) ?? readText(detail?.["msg"]) ??
    readSentence(body["error"]) ?? readText(body["detail"]) ??
    readText(body["error_description"]) ?? readText(body["message"]) ?? readText(body["msg"]);
  const type = readText(error?.["type"]) ?? readText(detail?.["type"]) ??
    (error === null ? readBareType(body["type"]) : null);
  const code = readCode(error?.["code"]) ?? readCode(detail?.["code"]) ??
    readCodeWord(body["error"]) ?? readCode(body["code"]) ??
    BRACKET_CODE.exec(message ?? "")?.[1] ?? (/^\d{3,5}$/.test(type ?? "") ? type : null);
  const holder = error ?? detail ?? body;
  const found = code !== null || message !== null || type !== null || error !== null || detail !== null;
  return {
    form: found ? "json" : "other_json",
    code,
    type,
    message,
    param: readText(holder["param"]),
    status: readStatus(body) ?? readStatus(holder),
    resetsAtMs: readMoment(holder["resets_at"]) ?? readMoment(body["resets_at"]),
    resetsInMs: readSeconds(holder["resets_in_seconds"]) ?? readSeconds(body["resets_in_seconds"]),
    detailCode: readCode(readObject(holder["details"])?.["error_code"]),
  };
}

/**
 * Whether a value that came with a success status is an error after all: z.ai and others answer 200 with an
 * error object. `{"error": null}` is none.
 */
export function hasErrorObject(json: unknown): boolean {
  const body = readObject(json);
  if (body === null) return false;
  if (body["type"] === "error" || findError(body) !== null) return true;
  if (typeof body["error"] === "string" && body["error"] !== "") return true;
  return body["success"] === false && readCode(body["code"]) !== null;
}

/**
 * Facts from the headers an auth failure may carry beside its body: `x-error-json` (base64 of an error body)
 * and `x-openai-authorization-error` (text). `null` when there is neither.
 */
export function readErrorHeaders(headers: HeaderLookup): ErrorFacts | null {
  const json = parseJson(decodeBase64(headers.get("x-error-json") ?? ""));
  if (json !== undefined) return readErrorValue(json);
  const text = readText(headers.get("x-openai-authorization-error"));
  return text === null ? null : { ...NOTHING, form: "text", code: readCodeWord(text), message: text };
}

/** The `headers` object of a WebSocket error frame; its values may be strings, numbers or booleans. */
export function readFrameHeaders(json: unknown): HeaderLookup {
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(readObject(readObject(json)?.["headers"]) ?? {})) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      values.set(name.toLowerCase(), String(value));
    }
  }
  return { get: (name) => values.get(name.toLowerCase()) ?? null };
}

/** The object that holds the error, wherever it hangs; `null` when there is none. */
function findError(body: JsonObject): JsonObject | null {
  return readObject(body["error"]) ?? readObject(readObject(body["response"])?.["error"]) ??
    readObject(readObject(body["body"])?.["error"]) ?? readObject(firstOf(body["errors"]));
}

/** @returns the parsed value, or `undefined` (no JSON value) when the text is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decodeBase64(text: string): string {
  try {
    const binary = atob(text.trim().replaceAll("-", "+").replaceAll("_", "/"));
    return DECODER.decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
  } catch {
    return "";
  }
}

function readObject(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : null;
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function readText(value: unknown): string | null {
  if (typeof value !== "string") return null;
  const text = value.trim();
  return text === "" ? null : text.slice(0, ERROR_BODY_LIMIT_BYTES);
}

function readCode(value: unknown): string | null {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  const text = readText(value);
  return text === null ? null : text.slice(0, CODE_LIMIT).toLowerCase();
}

/** The `type` of an event or envelope is no error type. */
function readBareType(value: unknown): string | null {
  const type = readText(value);
  return type === "error" || type?.startsWith("response.") ? null : type;
}

/** `"error": "invalid_grant"` is a code, `"error": "slow down"` a sentence. */
function readCodeWord(value: unknown): string | null {
  const text = readText(value);
  return text !== null && text.length <= CODE_LIMIT && CODE_WORD.test(text) ? text.toLowerCase() : null;
}

function readSentence(value: unknown): string | null {
  return readCodeWord(value) === null ? readText(value) : null;
}

function readStatus(holder: JsonObject): number | null {
  for (const value of [holder["status"], holder["status_code"]]) {
    if (typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599) return value;
  }
  return null;
}

function readNumber(value: unknown): number | null {
  if (typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value.trim())) return Number(value);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Unix seconds, ms when that large, or an RFC 3339 text with its zone. */
function readMoment(value: unknown): number | null {
  if (typeof value === "string" && ZONED_TIME.test(value.trim())) {
    const ms = Date.parse(value.trim());
    return Number.isNaN(ms) ? null : ms;
  }
  const number = readNumber(value);
  if (number === null || number <= 0) return null;
  return Math.min(Math.ceil(number > SECONDS_LIMIT ? number : number * 1000), LAST_MOMENT_MS);
}

function readSeconds(value: unknown): number | null {
  const number = readNumber(value);
  return number === null || number <= 0 ? null : Math.min(Math.ceil(number * 1000), LAST_MOMENT_MS);
}
