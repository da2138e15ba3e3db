/** Failures inside a stream or a socket (wire-facts 2.2, 2.3, 5.7), read and judged. */
import {
  event,
  failed,
  fault,
  frame,
  http,
  NOW_S,
  type Row,
  testRows,
  until,
} from "../support/codex_rows.ts";

const forms: Row[] = [
  {
    name: "2.2 A, response.failed",
    evidence: event(failed("rate_limit_exceeded", "Rate limit reached. Please try again in 11s.")),
    kind: "limited",
    row: 20,
    code: "rate_limit_exceeded",
    more: { status: 429, stated: until(11, "message") },
  },
  {
    name: "2.2 B, nested error event",
    evidence: event({
      type: "error",
      sequence_number: 2,
      error: {
        type: "service_unavailable_error",
        code: "server_is_overloaded",
        message: "Our servers are currently overloaded. Please try again later.",
        param: null,
      },
    }),
    kind: "transient",
    row: 36,
    code: "server_is_overloaded",
    more: { cause: "overloaded", recoverable: true, strike: true },
  },
  {
    name: "2.2 C, flat error event",
    evidence: event({
      type: "error",
      code: "server_error",
      message: "The server had an error",
      param: null,
      sequence_number: 4,
    }),
    kind: "transient",
    row: 36,
    code: "server_error",
    more: { cause: "stream_failure", status: 502 },
  },
  {
    name: "2.2 D, no terminal event",
    evidence: { kind: "incomplete" },
    kind: "incomplete",
    row: 40,
    code: "stream_incomplete",
  },
  {
    name: "2.2 D, reset in the stream",
    evidence: { kind: "transport", cause: "reset_in_body", pooled: false },
    kind: "transient",
    row: 33,
    code: "body_reset",
  },
  {
    name: "2.2 F, quota in a stream",
    evidence: event(
      failed("usage_limit_reached", "The usage limit has been reached", { resets_at: NOW_S + 77 }),
    ),
    kind: "limited",
    row: 20,
    code: "usage_limit_reached",
    more: { shape: "quota", stated: until(77, "body") },
  },
];

const streamCode = (code: string, kind: string, row: number, more?: Record<string, unknown>): Row => ({
  name: `2.3, ${code}`,
  evidence: event(failed(code)),
  kind,
  row,
  code,
  ...(more === undefined ? {} : { more }),
});
const streamFault = (code: string, row: number, state = "none"): Row =>
  streamCode(code, "request_fault", row, { scope: "request", state });
const streamCodes: Row[] = [
  streamCode("rate_limit_exceeded", "limited", 21, { shape: "rate", stated: null }),
  streamCode("usage_limit_reached", "limited", 22, { shape: "quota", stated: null }),
  streamCode("insufficient_quota", "credits", 10),
  streamCode("usage_not_included", "credits", 10),
  streamCode("server_is_overloaded", "transient", 36, { cause: "overloaded" }),
  streamCode("slow_down", "transient", 36, { cause: "overloaded" }),
  streamCode("server_error", "transient", 36, { cause: "stream_failure" }),
  { ...streamCode("never_seen_before", "transient", 36), code: "upstream_error" },
  streamFault("context_length_exceeded", 3),
  streamFault("invalid_prompt", 4),
  streamFault("cyber_policy", 4),
  streamFault("bio_policy", 4),
  streamFault("misalignment_policy_violation", 4),
  streamFault("content_policy_violation", 4),
  streamFault("previous_response_not_found", 4, "previous_response"),
  streamFault("invalid_encrypted_content", 4, "foreign_state"),
  streamFault("websocket_connection_limit_reached", 4),
  streamFault("data_residency_mismatch", 2),
  streamFault("vector_store_timeout", 2),
  streamFault("invalid_image", 2),
  { ...streamFault("invalid_image_format", 2), code: "invalid_image" },
  { ...streamFault("image_too_large", 2), code: "invalid_image" },
  { ...streamFault("image_parse_error", 2), code: "invalid_image" },
  streamFault("image_content_policy_violation", 4),
  streamFault("failed_to_download_image", 2),
  streamCode("model_not_found", "model_unsupported", 16),
  streamCode("workspace_access_denied", "account_pause", 11),
  streamCode("access_program_not_enabled", "account_pause", 11),
  streamCode("budget_reached", "credits", 10),
  streamFault("session_budget_exceeded", 4),
  streamFault("inference_hook_denied", 4),
  streamFault("websocket_message_too_large", 5),
];

const sockets: Row[] = [
  {
    name: "5.7, connection limit: reconnect, cool nothing",
    evidence: frame({
      type: "error",
      status: 400,
      error: {
        type: "invalid_request_error",
        code: "websocket_connection_limit_reached",
        message:
          "Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.",
      },
      headers: { "X-Codex-Primary-Used-Percent": "100", "X-Codex-Primary-Reset-At": String(NOW_S + 9) },
    }),
    ...fault(4, "websocket_connection_limit_reached"),
  },
  {
    name: "5.7, a refused handshake is an ordinary answer",
    evidence: http(402, `{"detail":{"code":"deactivated_workspace"}}`),
    kind: "account_pause",
    row: 10,
    code: "deactivated_workspace",
  },
  {
    name: "5.7, error frame with an unknown code falls to its status",
    evidence: frame({ type: "error", status: 500, error: { code: "odd" } }),
    kind: "transient",
    row: 36,
    code: "upstream_error",
    more: { status: 500 },
  },
];

testRows([...forms, ...streamCodes, ...sockets]);
