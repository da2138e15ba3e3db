import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { ClientProtocol } from "../../lib/core/domain.ts";
import type { FinalAnswer } from "../../lib/core/final_error.ts";
import { type LocalKind, type RenderedAnswer, renderFinal, renderLocal } from "../../lib/protocol/answer.ts";
import { readErrorFacts } from "../../lib/protocol/error_body.ts";
import { bytesOf } from "./frames.ts";

const NOW = Date.UTC(2026, 8, 1, 12, 0, 0);
const PROTOCOLS: ClientProtocol[] = ["responses", "chat", "messages", "raw"];
const OPENAI: ClientProtocol[] = ["responses", "chat", "raw"];

function answer(part: Partial<FinalAnswer>): FinalAnswer {
  return {
    status: 429,
    code: "rate_limited",
    retryAtMs: null,
    nextRetryAtMs: null,
    rule: "all_quota",
    limit: "quota",
    undispatched: false,
    ...part,
  };
}

function final(protocol: ClientProtocol, part: Partial<FinalAnswer>): RenderedAnswer {
  return renderFinal(protocol, answer(part), { requestId: "req_1", nowMs: NOW });
}

function errorOf(rendered: RenderedAnswer): Record<string, unknown> {
  return JSON.parse(rendered.body).error;
}

function header(rendered: RenderedAnswer, name: string): string | null {
  return new Headers(rendered.headers).get(name);
}

const codes: { part: Partial<FinalAnswer>; openai: string; anthropic: string; message: string }[] = [
  {
    part: { status: 404, code: "model_not_found", rule: "all_excluded" },
    openai: "invalid_request_error",
    anthropic: "not_found_error",
    message: "No account can serve this model",
  },
  {
    part: { status: 503, code: "auth_unavailable", rule: "all_dead" },
    openai: "server_error",
    anthropic: "api_error",
    message: "No account is available: each one is missing, disabled, signed out or without credit",
  },
  {
    part: { status: 429, code: "rate_limited", limit: "rate" },
    openai: "rate_limit_error",
    anthropic: "rate_limit_error",
    message: "All accounts are rate limited",
  },
  {
    part: { status: 502, code: "upstream_unavailable", rule: "transient" },
    openai: "server_error",
    anthropic: "api_error",
    message: "The upstream is unavailable at the moment",
  },
  {
    part: { status: 408, code: "stream_incomplete", rule: "incomplete" },
    openai: "server_error",
    anthropic: "timeout_error",
    message: "The answer of the upstream ended before it was complete",
  },
];
/** Codex stops for good at a 429 of any other type, whatever limit it was. */
function typeOf(c: typeof codes[number], protocol: ClientProtocol): string {
  return c.part.status === 429 && protocol === "responses" ? "usage_limit_reached" : c.openai;
}
for (const c of codes) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`renderFinal() words ${c.part.code} for ${protocol}`, () => {
      const rendered = final(protocol, c.part);
      assertEquals(rendered.status, c.part.status);
      assertEquals([header(rendered, "content-type"), header(rendered, "x-request-id")], [
        "application/json",
        "req_1",
      ]);
      assertEquals([header(rendered, "retry-after"), header(rendered, "x-should-retry")], [null, null]);
      assertEquals(
        JSON.parse(rendered.body),
        protocol === "messages"
          ? {
            type: "error",
            error: { type: c.anthropic, message: c.message, code: c.part.code },
            request_id: "req_1",
          }
          : { error: { message: c.message, type: typeOf(c, protocol), code: c.part.code, param: null } },
      );
      assertEquals(header(rendered, "request-id"), protocol === "messages" ? "req_1" : null);
    });
  }
}

const waits: { ms: number; seconds: number }[] = [
  { ms: -1, seconds: 1 },
  { ms: 0, seconds: 1 },
  { ms: 1, seconds: 1 },
  { ms: 1000, seconds: 1 },
  { ms: 1001, seconds: 2 },
  { ms: 18_600, seconds: 19 },
  { ms: 60_000, seconds: 60 },
  { ms: 60_001, seconds: 61 },
  { ms: 342_000_000, seconds: 342_000 },
];
for (const { ms, seconds } of waits) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`renderFinal() says Retry-After ${seconds} for a wait of ${ms} ms to ${protocol}`, () => {
      const rendered = final(protocol, { retryAtMs: NOW + ms });
      assertEquals(header(rendered, "retry-after"), String(seconds));
      const givesUp = protocol === "messages" && seconds > 60;
      assertEquals(header(rendered, "x-should-retry"), givesUp ? "false" : null);
    });
  }
}

Deno.test("renderFinal() gives Codex type and integer reset of a quota, others the plain type", () => {
  for (const protocol of PROTOCOLS) {
    const error = errorOf(final(protocol, { retryAtMs: NOW + 90_500 }));
    const isCodex = protocol === "responses";
    assertEquals(error["type"], isCodex ? "usage_limit_reached" : "rate_limit_error");
    assertEquals(error["resets_at"], isCodex ? NOW / 1000 + 91 : undefined);
    assertEquals(error["resets_in_seconds"], isCodex ? 91 : undefined);
    assertEquals(
      error["message"],
      "All accounts have exhausted their quota (earliest reset 2026-09-01T12:01:30.500Z)",
    );
  }
});

Deno.test("renderFinal() leaves the reset out when no time is known, and gives an outage the plain type", () => {
  const timeless = errorOf(final("responses", {}));
  assertEquals([timeless["type"], "resets_at" in timeless], ["usage_limit_reached", false]);
  const outage = errorOf(final("responses", { status: 502, code: "upstream_unavailable", limit: null }));
  assertEquals([outage["type"], "resets_at" in outage], ["server_error", false]);
});

Deno.test("renderFinal() calls a rate limit by its name, and tells Codex its time as that of a quota", () => {
  for (const protocol of PROTOCOLS) {
    const rate = errorOf(final(protocol, { retryAtMs: NOW + 5_000, limit: "rate" }));
    assertEquals(rate["message"], "All accounts are rate limited; try again in 5s");
    assertEquals(rate["resets_at"], protocol === "responses" ? NOW / 1000 + 5 : undefined);
  }
});

for (const protocol of PROTOCOLS) {
  Deno.test(`renderFinal() says in the agreed words that nothing was dispatched, to ${protocol}`, () => {
    for (const limit of ["rate", "quota"] as const) {
      const timed = errorOf(final(protocol, { undispatched: true, retryAtMs: NOW + 1500, limit }));
      assertEquals(
        timed["message"],
        "All accounts have exhausted their quota (cached quota state, no upstream attempt; " +
          "earliest reset 2026-09-01T12:00:01.500Z)",
      );
      const timeless = errorOf(final(protocol, { undispatched: true, limit }));
      assertEquals(
        timeless["message"],
        "All accounts have exhausted their quota (cached quota state, no upstream attempt)",
      );
    }
    const other = errorOf(final(protocol, { status: 503, code: "auth_unavailable", undispatched: true }));
    assert(String(other["message"]).endsWith("(cached state, no upstream attempt)"));
  });
}

Deno.test("renderFinal() gives the next moment in ISO form, also on 502, never to Anthropic clients", () => {
  const part: Partial<FinalAnswer> = { status: 502, code: "upstream_unavailable", nextRetryAtMs: NOW + 250 };
  for (const protocol of OPENAI) {
    const rendered = final(protocol, part);
    assertEquals(errorOf(rendered)["next_retry_at"], "2026-09-01T12:00:00.250Z");
    assertEquals(header(rendered, "retry-after"), null);
  }
  assertEquals("next_retry_at" in errorOf(final("messages", part)), false);
});

Deno.test("renderFinal() is well formed for any moment", () => {
  const moment = fc.option(fc.double({ noNaN: true, min: -1e20, max: 1e20 }), { nil: null });
  fc.assert(
    fc.property(
      moment,
      moment,
      fc.constantFrom("rate" as const, "quota" as const),
      fc.constantFrom(...PROTOCOLS),
      (retryAtMs, nextRetryAtMs, limit, protocol) => {
        const rendered = final(protocol, { retryAtMs, nextRetryAtMs, limit });
        const facts = readErrorFacts(bytesOf(rendered.body), "application/json");
        assertEquals(facts.code, "rate_limited");
        if (retryAtMs !== null) assert(/^[1-9][0-9]*$/.test(header(rendered, "retry-after")!));
        const resetsAt = errorOf(rendered)["resets_at"];
        assert(resetsAt === undefined || Number.isInteger(resetsAt));
      },
    ),
  );
});

const locals: { kind: LocalKind; status: number; code: string; openai: string; anthropic: string }[] = [
  {
    kind: "invalid_api_key",
    status: 401,
    code: "invalid_api_key",
    openai: "authentication_error",
    anthropic: "authentication_error",
  },
  {
    kind: "key_disabled",
    status: 403,
    code: "key_disabled",
    openai: "permission_error",
    anthropic: "permission_error",
  },
  {
    kind: "request_too_large",
    status: 413,
    code: "request_too_large",
    openai: "invalid_request_error",
    anthropic: "request_too_large",
  },
  {
    kind: "request_timeout",
    status: 408,
    code: "request_timeout",
    openai: "server_error",
    anthropic: "timeout_error",
  },
  {
    kind: "not_found",
    status: 404,
    code: "not_found",
    openai: "invalid_request_error",
    anthropic: "not_found_error",
  },
  {
    kind: "shutting_down",
    status: 503,
    code: "shutting_down",
    openai: "server_error",
    anthropic: "api_error",
  },
  {
    kind: "invalid_request",
    status: 400,
    code: "invalid_request",
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
  },
  {
    kind: "unsupported_encoding",
    status: 415,
    code: "unsupported_encoding",
    openai: "invalid_request_error",
    anthropic: "invalid_request_error",
  },
  {
    kind: "overloaded_local",
    status: 503,
    code: "overloaded",
    openai: "server_error",
    anthropic: "api_error",
  },
];
for (const c of locals) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`renderLocal() words ${c.kind} for ${protocol}`, () => {
      const rendered = renderLocal(protocol, c.kind, { requestId: "req_1", nowMs: NOW });
      const error = errorOf(rendered);
      assertEquals(rendered.status, c.status);
      assertEquals([error["code"], error["type"]], [
        c.code,
        protocol === "messages" ? c.anthropic : c.openai,
      ]);
      assert(String(error["message"]).length > 10);
      assertEquals(header(rendered, "x-request-id"), "req_1");
      assertEquals(header(rendered, "retry-after"), c.status === 503 ? "1" : null);
      assertEquals(header(rendered, "www-authenticate"), c.status === 401 ? "Bearer" : null);
    });
  }
}

Deno.test("renderLocal() takes a more exact sentence of ours", () => {
  for (const protocol of PROTOCOLS) {
    const rendered = renderLocal(
      protocol,
      "invalid_request",
      { requestId: "req_1", nowMs: NOW },
      'The field "model" must be a string',
    );
    assertEquals(errorOf(rendered)["message"], 'The field "model" must be a string');
  }
});
