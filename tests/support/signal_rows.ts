/** Literal answers of an upstream as evidence, and the check that each is read and judged as its row says. */
import { assertEquals } from "@std/assert";
import { classify } from "../../lib/core/classify.ts";
import type { Evidence } from "../../lib/core/evidence.ts";
import { readErrorFacts, readErrorValue } from "../../lib/protocol/error_body.ts";
import type { ProviderDescriptor, SignalContext } from "../../lib/providers/provider.ts";

export const NOW = 1_775_000_000_000;
export const NOW_S = NOW / 1_000;

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

/** An SSE event's data, or an error object in the body of a 2xx. */
export function event(data: unknown, headers: Record<string, string> = {}): Evidence {
  return { kind: "in_stream", headers: new Headers(headers), error: readErrorValue(data) };
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

/** One test a row. */
export function testSignalRows(
  descriptor: ProviderDescriptor,
  defaultContext: SignalContext,
  rows: readonly Row[],
): void {
  for (const row of rows) {
    Deno.test(`readSignal() of ${descriptor.kind} and classify() judge ${row.name}`, () => {
      const context = row.context ?? defaultContext;
      const outcome = classify(row.evidence, descriptor.readSignal(row.evidence, context), context);
      const seen: Record<string, unknown> = { ...outcome };
      const more = Object.fromEntries(Object.keys(row.more ?? {}).map((key) => [key, seen[key]]));
      assertEquals(
        { kind: outcome.kind, row: outcome.row, code: outcome.code, ...more },
        { kind: row.kind, row: row.row, code: row.code, ...row.more },
      );
    });
  }
}
