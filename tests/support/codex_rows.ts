/** Literal answers of Codex as evidence. */
import type { Evidence } from "../../lib/core/evidence.ts";
import { readErrorValue, readFrameHeaders } from "../../lib/protocol/error_body.ts";
import { CODEX } from "../../lib/providers/codex.ts";
import type { SignalContext } from "../../lib/providers/provider.ts";
import { NOW, NOW_S, type Row, testSignalRows } from "./signal_rows.ts";

export { event, fault, http, NOW, NOW_S, type Row, until } from "./signal_rows.ts";

export const CONTEXT: SignalContext = { nowMs: NOW, model: "gpt-5.1-codex" };

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
  testSignalRows(CODEX, CONTEXT, rows);
}
