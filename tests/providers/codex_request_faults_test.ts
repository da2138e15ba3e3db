/** Failures of wire-facts 1.3 with their literal bodies, read and judged. */
import { assertEquals } from "@std/assert";
import { classify } from "../../lib/core/classify.ts";
import type { Evidence } from "../../lib/core/evidence.ts";
import { CODEX } from "../../lib/providers/codex.ts";
import { CONTEXT, fault, frame, http, NOW, type Row, testRows } from "../support/codex_rows.ts";

const MODEL_TEXT = "The 'gpt-5.1-codex' model is not supported when using Codex with a ChatGPT account.";

const requestFaults: Row[] = [
  {
    name: "1.3, model not supported over HTTP",
    evidence: http(400, { detail: MODEL_TEXT }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_supported",
    more: { scope: "model", status: 400 },
  },
  {
    name: "1.3, model not supported over WebSocket",
    evidence: frame({
      type: "error",
      status: 400,
      error: { type: "invalid_request_error", message: MODEL_TEXT },
    }),
    kind: "model_unsupported",
    row: 16,
    code: "model_not_supported",
  },
  {
    name: "1.3, the same text with an empty name",
    evidence: http(400, {
      detail: "The '' model is not supported when using Codex with a ChatGPT account.",
    }),
    ...fault(2, "model_missing"),
  },
  {
    name: "1.3, the same text when the request named no model",
    evidence: http(400, { detail: MODEL_TEXT }),
    context: { nowMs: NOW, model: null },
    ...fault(2, "model_not_supported"),
  },
  ...["model_not_found", "model_not_supported"].map((code): Row => ({
    name: `1.3, ${code}`,
    evidence: http(400, { error: { code } }),
    kind: "model_unsupported",
    row: 16,
    code,
  })),
  {
    name: "1.3, 404 in an incident",
    evidence: http(404, `{"detail":"Not Found"}`),
    ...fault(17, "not_found"),
  },
  {
    name: "1.3, an item that was not stored",
    evidence: http(
      404,
      "Item with id 'rs_68a' not found. Items are not persisted when `store` is set to false. Try again with …",
    ),
    ...fault(17, "item_not_found"),
  },
  ...["max_output_tokens", "stream_options"].map((name): Row => ({
    name: `1.3, unsupported parameter ${name}`,
    evidence: http(400, { detail: `Unsupported parameter: ${name}` }),
    ...fault(2, "unsupported_parameter"),
  })),
  {
    name: "1.3, stream must be true",
    evidence: http(400, `{"detail":"Stream must be set to true"}`),
    ...fault(2, "transport_fields_invalid"),
  },
  {
    name: "1.3, store must be false",
    evidence: http(400, `{"detail":"Store must be set to false"}`),
    ...fault(2, "transport_fields_invalid"),
  },
  {
    name: "1.3, instructions",
    evidence: http(400, `{"detail":"Instructions are not valid"}`),
    ...fault(2, "instructions_invalid"),
  },
  ...["function call", "custom tool call", "apply patch call", "tool search call"].map((call): Row => ({
    name: `1.3, no output for a ${call}`,
    evidence: http(400, {
      error: {
        message: `No tool output found for ${call} call_x.`,
        type: "invalid_request_error",
        param: "input",
        code: null,
      },
    }),
    ...fault(2, "tool_output_missing"),
  })),
  {
    name: "1.3, unknown parameter",
    evidence: http(400, { error: { message: "Unknown parameter: 'input[3].status'.", code: null } }),
    ...fault(2, "unknown_parameter"),
  },
  ...["string_above_max_length", "invalid_value", "unsupported_value"].map((code): Row => ({
    name: `1.3, ${code}`,
    evidence: http(400, { error: { code, param: "input[0].image_url", type: "invalid_request_error" } }),
    ...fault(2, code),
  })),
  {
    name: "1.3, context_length_exceeded",
    evidence: http(400, {
      error: {
        code: "context_length_exceeded",
        message:
          "Your input exceeds the context window of this model. Please adjust your input and try again.",
      },
    }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "1.3, the context window in words",
    evidence: http(400, { detail: "Your input exceeds the context window of this model." }),
    ...fault(3, "context_length_exceeded"),
  },
  {
    name: "1.3, previous_response_not_found",
    evidence: http(400, {
      error: {
        code: "previous_response_not_found",
        message: "Previous response with id 'resp_x' not found.",
        param: "previous_response_id",
      },
    }),
    ...fault(4, "previous_response_not_found", "previous_response"),
  },
  {
    name: "1.3, previous response in words",
    evidence: http(404, { error: { message: "Previous response with id 'resp_x' not found." } }),
    ...fault(4, "previous_response_not_found", "previous_response"),
  },
  {
    name: "1.3, invalid previous_response_id",
    evidence: http(400, { error: { message: "Invalid `previous_response_id`: resp_x" } }),
    ...fault(4, "previous_response_not_found", "previous_response"),
  },
  {
    name: "1.3, invalid_encrypted_content",
    evidence: http(400, {
      error: {
        code: "invalid_encrypted_content",
        message: "The encrypted content for item rs_1 could not be verified.",
      },
    }),
    ...fault(4, "invalid_encrypted_content", "foreign_state"),
  },
  {
    name: "1.3, cyber_policy",
    evidence: http(400, { error: { code: "cyber_policy", type: "invalid_request" } }),
    ...fault(4, "cyber_policy"),
  },
  ...[
    "invalid_prompt",
    "bio_policy",
    "misalignment_policy_violation",
    "content_policy_violation",
    "content_filter",
  ]
    .map((code): Row => ({
      name: `1.3, ${code}`,
      evidence: http(400, { error: { code } }),
      ...fault(4, code),
    })),
  { name: "1.3, 413", evidence: http(413, ""), ...fault(5, "request_too_large") },
  {
    name: "1.3, 426 on the upgrade",
    evidence: http(426, ""),
    ...fault(2, "upgrade_required"),
  },
];

testRows([...requestFaults]);

Deno.test("readSignal() of codex is silent about what is no failure answer", () => {
  const silent: Evidence[] = [
    { kind: "success" },
    { kind: "incomplete" },
    { kind: "client_cancelled" },
    { kind: "malformed", detail: "no_event" },
    { kind: "transport", cause: "dns", pooled: false },
  ];
  for (const evidence of silent) assertEquals(CODEX.readSignal(evidence, CONTEXT), null);
});

Deno.test("readSignal() of codex never takes a 401 for a request fault by its type or its text", () => {
  const evidence = http(401, {
    error: { type: "invalid_request_error", message: "Unsupported parameter: x" },
  });
  assertEquals(CODEX.readSignal(evidence, CONTEXT), null);
  assertEquals(classify(evidence, null, CONTEXT).kind, "unauthorized");
});
