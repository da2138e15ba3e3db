/** Short ways to write evidence literals. */
import type { ErrorFacts, Evidence } from "../../lib/core/evidence.ts";

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

/** Facts of a JSON error with these fields; `form` may be overridden. */
export function facts(fields: Partial<ErrorFacts> = {}): ErrorFacts {
  return { ...NOTHING, form: Object.keys(fields).length === 0 ? "other_json" : "json", ...fields };
}

export function html(message: string): ErrorFacts {
  return { ...NOTHING, form: "html", message };
}

export function plainText(message: string): ErrorFacts {
  return { ...NOTHING, form: "text", message };
}

export const EMPTY_BODY: ErrorFacts = NOTHING;

export function answer(
  status: number,
  error: ErrorFacts = facts(),
  headers: Record<string, string> = {},
): Extract<Evidence, { kind: "http" }> {
  return { kind: "http", status, headers: new Headers(headers), error };
}

export function inStream(
  error: ErrorFacts,
  headers: Record<string, string> = {},
): Extract<Evidence, { kind: "in_stream" }> {
  return { kind: "in_stream", error, headers: new Headers(headers) };
}
