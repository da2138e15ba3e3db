/**
 * Input of management calls: a small JSON body or a query, checked by a schema, every mistake named at once.
 *
 * What was sent is never repeated in an answer, since a key may have slipped into it; names of fields are.
 */
import type { z } from "zod";
import type { ByteSource } from "../ports.ts";
import { type BodyPace, TOO_SLOW } from "./body_pace.ts";
import { concat } from "./request_body.ts";
import type { ClientRequest } from "./client_request.ts";

export const INPUT_LIMIT_BYTES = 16_384;
/** A name longer than this is not a name. */
const SHOWN_NAME_LENGTH = 40;

export type Input<T> =
  | { readonly ok: true; readonly value: T }
  | {
    readonly ok: false;
    readonly status: 400 | 413 | 415;
    readonly code: "invalid_request" | "request_too_large" | "unsupported_encoding";
    /** Our words, one mistake after the other. */
    readonly message: string;
  };

/** Reads at most 16 KiB, whatever length the caller declares. An absent body is an empty object. */
export async function readJsonInput<T>(request: ClientRequest, schema: z.ZodType<T>): Promise<Input<T>> {
  const coding = request.headers.get("content-encoding") ?? "identity";
  if (coding !== "identity") {
    return refused(415, "unsupported_encoding", "The body must be sent without content coding");
  }
  const bytes = await readBounded(request.body, INPUT_LIMIT_BYTES);
  if (bytes === "too_large") {
    return refused(413, "request_too_large", `The body must not exceed ${INPUT_LIMIT_BYTES} bytes`);
  }
  if (bytes === "aborted") return refused(400, "invalid_request", "The body ended before it was complete");
  let json: unknown = {};
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.trim() !== "") json = JSON.parse(text);
  } catch {
    return refused(400, "invalid_request", "The body is not JSON");
  }
  return checkInput(json, schema, "The body");
}

/** Reads the query of a call; a name that comes twice is a mistake, because either could be meant. */
export function readQueryInput<T>(search: string, schema: z.ZodType<T>): Input<T> {
  const query = new URLSearchParams(search);
  const values = new Map<string, string>();
  for (const [name, value] of query) {
    if (values.has(name)) {
      return refused(400, "invalid_request", `${shownName(name)} must be given at most once`);
    }
    values.set(name, value);
  }
  return checkInput(Object.fromEntries(values), schema, "The query");
}

function checkInput<T>(value: unknown, schema: z.ZodType<T>, what: string): Input<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const mistakes = parsed.error.issues.flatMap((issue) => describeMistakes(issue, what));
  return refused(400, "invalid_request", [...new Set(mistakes)].join("; "));
}

function describeMistakes(issue: z.core.$ZodIssue, what: string): string[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${shownName(key)} is not known here`);
  }
  if (issue.path.length === 0) return [`${what} ${issue.message}`];
  return [`${shownName(issue.path.join("."))} ${issue.message}`];
}

function shownName(name: string): string {
  return JSON.stringify(name.length > SHOWN_NAME_LENGTH ? `${name.slice(0, SHOWN_NAME_LENGTH)}…` : name);
}

function refused(
  status: 400 | 413 | 415,
  code: "invalid_request" | "request_too_large" | "unsupported_encoding",
  message: string,
): Input<never> {
  return { ok: false, status, code, message };
}

/**
 * Reads a small body, whatever length the caller declares.
 *
 * @param pace  for callers without a key: nobody else may hold a connection open by sending nothing.
 */
export async function readBounded(
  source: ByteSource | null,
  limitBytes: number,
  pace: BodyPace | null = null,
): Promise<Uint8Array<ArrayBuffer> | "too_large" | "aborted"> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let total = 0;
  try {
    while (source !== null) {
      const part = pace === null ? await source.read() : await pace.wait(source.read());
      if (part === null) break;
      if (part === TOO_SLOW || total + part.length > limitBytes) {
        source.cancel();
        return part === TOO_SLOW ? "aborted" : "too_large";
      }
      total += part.length;
      chunks.push(part);
    }
  } catch {
    return "aborted";
  }
  return concat(chunks, total);
}
