/** Failures in each protocol's words. */
import { assertEquals } from "@std/assert";
import { readErrorValue } from "../../../lib/protocol/error_body.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import {
  hubErrorOfMessages,
  messagesErrorOf,
  readResponseError,
  translateErrorBody,
} from "../../../lib/protocol/translate/failure_words.ts";
import type { TranslatedProtocol } from "../../../lib/protocol/translate/translator.ts";

const events: { name: string; event: JsonObject; want: JsonObject }[] = [
  {
    name: "response.failed",
    event: { type: "response.failed", response: { error: { code: "server_error", message: "m" } } },
    want: { code: "server_error", message: "m" },
  },
  {
    name: "a nested error event",
    event: { type: "error", error: { type: "service_unavailable_error", code: "slow_down", message: "m" } },
    want: { code: "slow_down", message: "m" },
  },
  {
    name: "a nested error event without a code",
    event: { type: "error", error: { type: "usage_limit_reached", message: "m" } },
    want: { code: "usage_limit_reached", message: "m" },
  },
  {
    name: "a flat error event",
    event: { type: "error", code: "server_error", message: "m" },
    want: { code: "server_error", message: "m" },
  },
  {
    name: "a flat error event that says nothing",
    event: { type: "error" },
    want: { code: "server_error", message: "The upstream reported a failure without a message" },
  },
];
for (const c of events) {
  Deno.test(`readResponseError() reads ${c.name}`, () =>
    assertEquals({ ...readResponseError(c.event) }, c.want));
}

const pairs: [anthropic: string, message: string, code: string, back: string][] = [
  ["overloaded_error", "Overloaded", "server_is_overloaded", "overloaded_error"],
  ["rate_limit_error", "slow", "rate_limit_exceeded", "rate_limit_error"],
  ["invalid_request_error", "bad", "invalid_prompt", "invalid_request_error"],
  ["invalid_request_error", "prompt is too long: 9 > 8", "context_length_exceeded", "invalid_request_error"],
  ["api_error", "boom", "server_error", "api_error"],
  ["zz_error", "boom", "server_error", "api_error"],
];
for (const [type, message, code, back] of pairs) {
  Deno.test(`an Anthropic ${type} (${message}) is ${code} to Codex, and ${back} again`, () => {
    const error = hubErrorOfMessages(type, message);
    assertEquals([error.code, messagesErrorOf(error).type], [code, back]);
  });
}

Deno.test("messagesErrorOf() words a full context as Claude Code looks for it", () => {
  const error = messagesErrorOf({ code: "context_length_exceeded", message: "Your input is too long" });
  assertEquals(error.message, "prompt is too long: Your input is too long");
});

const bodies: {
  name: string;
  client: TranslatedProtocol;
  status: number;
  body: unknown;
  want: JsonObject;
}[] = [
  {
    name: "Codex's detail text",
    client: "chat",
    status: 400,
    body: { detail: "Unsupported parameter: x" },
    want: {
      error: { message: "Unsupported parameter: x", type: "invalid_request_error", code: null, param: null },
    },
  },
  {
    name: "a platform error",
    client: "messages",
    status: 400,
    body: { error: { message: "bad", type: "invalid_request_error", code: "invalid_value", param: "p" } },
    want: { type: "error", error: { type: "invalid_request_error", message: "bad" }, request_id: "req-1" },
  },
  {
    name: "a full context of OpenAI",
    client: "messages",
    status: 400,
    body: { error: { message: "too long", type: "invalid_request_error", code: "context_length_exceeded" } },
    want: {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: too long" },
      request_id: "req-1",
    },
  },
  {
    name: "a full context of Anthropic",
    client: "responses",
    status: 400,
    body: { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } },
    want: {
      error: {
        message: "prompt is too long: 9 > 8",
        type: "invalid_request_error",
        code: "context_length_exceeded",
        param: null,
      },
    },
  },
  {
    name: "an unknown model of Anthropic",
    client: "chat",
    status: 404,
    body: { type: "error", error: { type: "not_found_error", message: "model: x" } },
    want: { error: { message: "model: x", type: "not_found_error", code: "not_found_error", param: null } },
  },
  {
    name: "a request throttle",
    client: "chat",
    status: 429,
    body: { type: "error", error: { type: "rate_limit_error", message: "Error" } },
    want: { error: { message: "Error", type: "rate_limit_error", code: "rate_limit_error", param: null } },
  },
  {
    name: "nothing at all",
    client: "messages",
    status: 418,
    body: {},
    want: {
      type: "error",
      error: { type: "api_error", message: "The upstream refused the request" },
      request_id: "req-1",
    },
  },
];
for (const c of bodies) {
  Deno.test(`translateErrorBody() tells a ${c.client} client of ${c.name}`, () => {
    assertEquals(translateErrorBody(c.client, readErrorValue(c.body), c.status, "req-1"), c.want);
  });
}
