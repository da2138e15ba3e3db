/** Literal answers of Codex as evidence, and the check that one is read and judged as its row says. */
import { assertEquals } from "@std/assert";
import { classify } from "../../lib/core/classify.ts";
import type { Evidence } from "../../lib/core/evidence.ts";
import { readErrorFacts, readErrorValue, readFrameHeaders } from "../../lib/protocol/error_body.ts";
import { CODEX } from "../../lib/providers/codex.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";

export const NOW = 1_775_000_000_000;
export const NOW_S = NOW / 1_000;
export const CONTEXT: SignalContext = { nowMs: NOW, model: "gpt-5.1-codex" };

export function http(status: number, body: unknown, headers: Record<string, string> = {}): Evidence {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const contentType = headers["content-type"] ?? "application/json";
  return {
    kind: "http",
    status,
    headers: new Headers(headers),
    error: readErrorFacts(new TextEncoder().encode(text), contentType),
  };
}

/** An SSE event's data. */
export function event(data: unknown, headers: Record<string, string> = {}): Evidence {
  return { kind: "in_stream", headers: new Headers(headers), error: readErrorValue(data) };
}

/** A WebSocket frame, which brings its own headers. */
export function frame(data: unknown): Evidence {
  return { kind: "in_stream", headers: readFrameHeaders(data), error: readErrorValue(data) };
}

/** Form A of wire-facts 2.2. */
export function failed(code: string, message = "…", more: Record<string, unknown> = {}): unknown {
  return {
    type: "response.failed",
    sequence_number: 3,
    response: {
      id: "resp_1",
      object: "response",
      created_at: NOW_S,
      status: "failed",
      background: false,
      error: { code, message, ...more },
      usage: null,
      user: null,
      metadata: {},
    },
  };
}

export interface Row {
  name: string;
  evidence: Evidence;
  context?: SignalContext;
  kind: string;
  row: number;
  code: string;
  /** Further fields of the outcome. */
  more?: Record<string, unknown>;
}

/** A request fault as a row wants it. */
export function fault(row: number, code: string, state = "none"): Omit<Row, "name" | "evidence"> {
  return { kind: "request_fault", row, code, more: { scope: "request", state } };
}

export function until(seconds: number, source: string): { untilMs: number; source: string } {
  return { untilMs: NOW + Math.round(seconds * 1_000), source };
}

/** The four headers of two windows, each `[used percent, reset at]`. */
export function windows(primary: [string, string], secondary: [string, string]): Record<string, string> {
  return {
    "x-codex-primary-used-percent": primary[0],
    "x-codex-primary-reset-at": primary[1],
    "x-codex-secondary-used-percent": secondary[0],
    "x-codex-secondary-reset-at": secondary[1],
  };
}

/** One test a row. */
export function testRows(rows: readonly Row[]): void {
  for (const row of rows) {
    Deno.test(`readSignal() of codex and classify() judge ${row.name}`, () => {
      const context = row.context ?? CONTEXT;
      const outcome = classify(row.evidence, CODEX.readSignal(row.evidence, context), context);
      const seen: Record<string, unknown> = { ...outcome };
      const more = Object.fromEntries(Object.keys(row.more ?? {}).map((key) => [key, seen[key]]));
      assertEquals(
        { kind: outcome.kind, row: outcome.row, code: outcome.code, ...more },
        { kind: row.kind, row: row.row, code: row.code, ...row.more },
      );
    });
  }
}
