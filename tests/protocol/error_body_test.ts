import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import type { ErrorFacts } from "../../lib/core/evidence.ts";
import {
  ERROR_BODY_LIMIT_BYTES,
  hasErrorObject,
  readErrorFacts,
  readErrorHeaders,
  readErrorValue,
  readFrameHeaders,
} from "../../lib/protocol/error_body.ts";
import { bytesOf } from "./frames.ts";

const NONE: ErrorFacts = {
  form: "json",
  code: null,
  type: null,
  message: null,
  param: null,
  status: null,
  resetsAtMs: null,
  resetsInMs: null,
  detailCode: null,
};

const bodies: { name: string; body: string; want: Partial<ErrorFacts> }[] = [
  {
    name: "shape a with a stated reset",
    body:
      '{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"free",' +
      '"resets_at":1775317531,"resets_in_seconds":602705,"eligible_promo":null}}',
    want: {
      type: "usage_limit_reached",
      message: "The usage limit has been reached",
      resetsAtMs: 1_775_317_531_000,
      resetsInMs: 602_705_000,
    },
  },
  {
    name: "shape a with code and param",
    body:
      '{"error":{"type":"invalid_request_error","code":"Invalid_Value","message":"no","param":"input[0]"}}',
    want: { type: "invalid_request_error", code: "invalid_value", message: "no", param: "input[0]" },
  },
  {
    name: "shape b with a top-level status",
    body: '{"error":{"message":"Encountered invalidated oauth token for user, failing request","type":null,' +
      '"code":"token_revoked","param":null},"status":401}',
    want: {
      code: "token_revoked",
      message: "Encountered invalidated oauth token for user, failing request",
      status: 401,
    },
  },
  { name: "shape c, detail as text", body: '{"detail":"Unauthorized"}', want: { message: "Unauthorized" } },
  {
    name: "shape d, detail with a code",
    body: '{"detail":{"code":"deactivated_workspace"}}',
    want: { code: "deactivated_workspace" },
  },
  {
    name: "shape d in full",
    body: '{"detail":{"message":"m","type":"t","param":null,"code":"c"}}',
    want: { code: "c", type: "t", message: "m" },
  },
  {
    name: "shape e, a bare code",
    body: '{"code":"workspace_access_denied"}',
    want: { code: "workspace_access_denied" },
  },
  {
    name: "shape f, HTML",
    body: " <!DOCTYPE html><title>Attention Required! | Cloudflare</title>",
    want: { form: "html", message: "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>" },
  },
  {
    name: "shape g, plain text",
    body: "upstream connect error",
    want: { form: "text", message: "upstream connect error" },
  },
  { name: "B046 and shape g, empty", body: "", want: { form: "empty" } },
  { name: "only space", body: " \n", want: { form: "empty" } },
  {
    name: "shape h, a WebSocket frame",
    body: '{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"m"},"headers":{}}',
    want: { type: "usage_limit_reached", message: "m", status: 429 },
  },
  {
    name: "shape h with status_code",
    body: '{"type":"error","status_code":400,"error":{"code":"websocket_connection_limit_reached"}}',
    want: { code: "websocket_connection_limit_reached", status: 400 },
  },
  {
    name: "shape h under response.error",
    body: '{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"m"}}}',
    want: { code: "server_error", message: "m" },
  },
  {
    name: "shape h under body.error",
    body: '{"type":"error","body":{"error":{"code":"c"}}}',
    want: { code: "c" },
  },
  {
    name: "form C, flat",
    body: '{"type":"error","code":"server_error","message":"m","param":"p","sequence_number":3}',
    want: { code: "server_error", message: "m", param: "p" },
  },
  { name: "B046 null", body: "null", want: { form: "other_json" } },
  { name: "B046 a JSON string", body: '"slow down"', want: { form: "other_json", message: "slow down" } },
  { name: "B046 error as a sentence", body: '{"error":"slow down"}', want: { message: "slow down" } },
  { name: "B046 error null", body: '{"error":null}', want: { form: "other_json" } },
  { name: "B046 an empty list", body: "[]", want: { form: "other_json" } },
  { name: "a number", body: "7", want: { form: "other_json" } },
  { name: "an empty object", body: "{}", want: { form: "other_json" } },
  { name: "B046 a list of errors", body: '{"errors":[{"message":"x"}]}', want: { message: "x" } },
  {
    name: "an error inside a list",
    body: '[{"error":{"code":429,"message":"m"}}]',
    want: { code: "429", message: "m" },
  },
  {
    name: "a validation list",
    body: '{"detail":[{"loc":["body"],"msg":"m","type":"t"}]}',
    want: { message: "m", type: "t" },
  },
  {
    name: "an OAuth error",
    body: '{"error":"invalid_grant","error_description":"Refresh token not found or invalid"}',
    want: { code: "invalid_grant", message: "Refresh token not found or invalid" },
  },
  {
    name: "Anthropic with details",
    body:
      '{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"credits_required"}},' +
      '"request_id":"req_1"}',
    want: { type: "rate_limit_error", message: "m", detailCode: "credits_required" },
  },
  {
    name: "Anthropic with details null",
    body:
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","details":null},"request_id":null}',
    want: { type: "overloaded_error", message: "Overloaded" },
  },
  {
    name: "Anthropic's edge without a top-level type",
    body: '{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
    want: { type: "request_too_large", message: "Request exceeds the maximum size" },
  },
  {
    name: "z.ai with a code as text",
    body: '{"error":{"code":"1308","message":"Usage limit reached for 5 hour."}}',
    want: { code: "1308", message: "Usage limit reached for 5 hour." },
  },
  {
    name: "z.ai with a code as number",
    body: '{"error":{"code":1302,"message":"m"}}',
    want: { code: "1302", message: "m" },
  },
  {
    name: "z.ai with the code in brackets only",
    body:
      '{"type":"error","error":{"type":"rate_limit_error","message":"[1302][Rate limit reached][20260912]"}}',
    want: { code: "1302", type: "rate_limit_error", message: "[1302][Rate limit reached][20260912]" },
  },
  {
    name: "z.ai with the code as type",
    body: '{"type":"error","error":{"type":"1308","message":"m"}}',
    want: { code: "1308", type: "1308", message: "m" },
  },
  {
    name: "z.ai with success false",
    body: '{"code":1113,"msg":"no balance","success":false}',
    want: { code: "1113", message: "no balance" },
  },
  {
    name: "OpenAI",
    body:
      '{"error":{"message":"Incorrect API key provided: SENT-key.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}',
    want: {
      code: "invalid_api_key",
      type: "invalid_request_error",
      message: "Incorrect API key provided: SENT-key.",
    },
  },
  {
    name: "resets_at in ms",
    body: '{"error":{"type":"t","resets_at":1775317531123}}',
    want: { type: "t", resetsAtMs: 1_775_317_531_123 },
  },
  {
    name: "resets_at as text",
    body: '{"error":{"type":"t","resets_at":"1775317531"}}',
    want: { type: "t", resetsAtMs: 1_775_317_531_000 },
  },
  {
    name: "resets_at as RFC 3339",
    body: '{"error":{"type":"t","resets_at":"2026-04-04T15:45:31Z"}}',
    want: { type: "t", resetsAtMs: Date.UTC(2026, 3, 4, 15, 45, 31) },
  },
  {
    name: "resets_at without a zone",
    body: '{"error":{"type":"t","resets_at":"2026-04-04T15:45:31"}}',
    want: { type: "t" },
  },
  {
    name: "times that say nothing",
    body: '{"error":{"type":"t","resets_at":0,"resets_in_seconds":-5}}',
    want: { type: "t" },
  },
  {
    name: "times without end",
    body: '{"error":{"type":"t","resets_at":1e300,"resets_in_seconds":1e308}}',
    want: { type: "t", resetsAtMs: 8.64e15, resetsInMs: 8.64e15 },
  },
  {
    name: "fields of the wrong kind",
    body: '{"error":{"type":7,"code":{},"message":["m"],"param":1,"details":"x"},"status":"failed"}',
    want: {},
  },
];
for (const c of bodies) {
  Deno.test(`readErrorFacts() reads ${c.name}`, () => {
    assertEquals(readErrorFacts(bytesOf(c.body), "application/json"), { ...NONE, ...c.want });
  });
}

Deno.test("readErrorFacts() believes a content type of text/html", () => {
  assertEquals(readErrorFacts(bytesOf("Sorry"), "text/html; charset=UTF-8").form, "html");
  assertEquals(readErrorFacts(bytesOf("Sorry"), null).form, "text");
});

Deno.test("readErrorFacts() B046 reads no more than 64 KiB", () => {
  const facts = readErrorFacts(bytesOf("x".repeat(1 << 20)), "text/plain");
  assertEquals([facts.form, facts.message?.length], ["text", ERROR_BODY_LIMIT_BYTES]);
});

Deno.test("readErrorFacts() B046 takes bytes that are no text", () => {
  assertEquals(readErrorFacts(new Uint8Array([0xff, 0xfe, 0x00]), null).form, "text");
});

Deno.test("readErrorFacts() never throws and gives safe shapes, for any JSON and any bytes", () => {
  const check = (facts: ErrorFacts) => {
    assert(facts.code === null || facts.code === facts.code.toLowerCase());
    assert(facts.status === null || (facts.status >= 100 && facts.status <= 599));
    for (const ms of [facts.resetsAtMs, facts.resetsInMs]) {
      assert(ms === null || (Number.isInteger(ms) && ms > 0));
    }
  };
  const key = fc.constantFrom(
    "error",
    "detail",
    "code",
    "type",
    "message",
    "response",
    "body",
    "errors",
    "resets_at",
    "status",
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.dictionary(key, tie("tree")),
      fc.array(tie("tree")),
    ),
  }));
  fc.assert(fc.property(tree!, (value) => {
    check(readErrorValue(value));
    check(readErrorFacts(bytesOf(JSON.stringify(value) ?? ""), null));
    hasErrorObject(value);
    readFrameHeaders(value).get("x");
  }));
  fc.assert(fc.property(fc.uint8Array(), (bytes) => check(readErrorFacts(bytes, null))));
});

Deno.test("readErrorFacts() takes a depth bomb", () => {
  assertEquals(readErrorFacts(bytesOf("[".repeat(60_000)), null).form, "text");
  assertEquals(readErrorFacts(bytesOf("[".repeat(30_000) + "]".repeat(30_000)), null).form, "other_json");
});

const objects: [string, boolean][] = [
  ['{"error":{"message":"no credit"}}', true],
  ['{"error":"slow down"}', true],
  ['{"type":"error","code":"x"}', true],
  ['{"errors":[{"message":"x"}]}', true],
  ['{"code":1302,"msg":"busy","success":false}', true],
  ['{"response":{"error":{"code":"x"}}}', true],
  ['{"error":null,"choices":[]}', false],
  ['{"error":"","choices":[]}', false],
  ['{"id":"resp_1","error":null,"status":"completed"}', false],
  ['{"success":false}', false],
  ['{"code":200,"msg":"ok","success":true}', false],
  ["null", false],
  ["[]", false],
  ['"error"', false],
];
for (const [text, want] of objects) {
  Deno.test(`hasErrorObject() is ${want} for ${text}`, () => {
    assertEquals(hasErrorObject(JSON.parse(text)), want);
  });
}

const headerCases: { name: string; headers: Record<string, string>; want: Partial<ErrorFacts> | null }[] = [
  {
    name: "x-error-json",
    headers: { "x-error-json": btoa('{"error":{"code":"token_revoked","message":"m"}}') },
    want: { code: "token_revoked", message: "m" },
  },
  {
    name: "x-error-json in the URL alphabet without padding",
    headers: {
      "x-error-json": btoa('{"error":{"code":"a>?"}}').replaceAll("+", "-").replaceAll("/", "_").replace(
        /=+$/,
        "",
      ),
    },
    want: { code: "a>?" },
  },
  {
    name: "x-openai-authorization-error as a word",
    headers: { "x-openai-authorization-error": "Missing_Scope" },
    want: { form: "text", code: "missing_scope", message: "Missing_Scope" },
  },
  {
    name: "x-openai-authorization-error as a sentence, beside a broken x-error-json",
    headers: { "x-openai-authorization-error": "not allowed here", "x-error-json": "%%%" },
    want: { form: "text", message: "not allowed here" },
  },
  { name: "neither", headers: {}, want: null },
  { name: "base64 of something else", headers: { "x-error-json": btoa("hello") }, want: null },
];
for (const c of headerCases) {
  Deno.test(`readErrorHeaders() reads ${c.name}`, () => {
    const want = c.want === null ? null : { ...NONE, ...c.want };
    assertEquals(readErrorHeaders(new Headers(c.headers)), want);
  });
}

Deno.test("readFrameHeaders() reads values of every kind under any case", () => {
  const headers = readFrameHeaders({
    headers: {
      "X-Codex-Primary-Used-Percent": "100",
      "x-number": 3,
      "X-True": true,
      "x-null": null,
      "x-list": [],
    },
  });
  const read = ["x-codex-primary-used-percent", "X-NUMBER", "x-true", "x-null", "x-list", "none"].map((n) =>
    headers.get(n)
  );
  assertEquals(read, ["100", "3", "true", null, null, null]);
  assertEquals(readFrameHeaders(null).get("a"), null);
});
