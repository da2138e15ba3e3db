/**
 * Failures said in each protocol's own words.
 *
 * The hub's words are Responses error codes; what a code means for health is decided in `core/classify.ts`, not here.
 */
import type { ErrorFacts } from "../../core/evidence.ts";
import type { HubError } from "./hub_writer.ts";
import { readErrorValue } from "../error_body.ts";
import { isObject, type JsonObject, readText } from "./json.ts";
import type { ClientFailure, TranslatedProtocol } from "./translator.ts";

/** Ends the client's stream honestly when the upstream's cannot be read. */
export const UNREADABLE: HubError = {
  code: "server_error",
  message: "The upstream sent an answer that cannot be read",
};

/** The error of a `response.failed`, of a flat `error` event and of one with an `error` object (wire-facts 2.2). */
export function readResponseError(event: JsonObject): HubError {
  const response = isObject(event.response) ? event.response : {};
  const error = isObject(response.error) ? response.error : isObject(event.error) ? event.error : event;
  return {
    // The flat form's own `type` is "error" and says nothing.
    code: readText(error.code) ?? (error === event ? null : readText(error.type)) ?? "server_error",
    message: readText(error.message) ?? "The upstream reported a failure without a message",
  };
}

/** Error facts of a failure told in the hub's words. */
export function factsOf(error: HubError): ErrorFacts {
  return readErrorValue({ error });
}

/** The Responses code for an Anthropic error, so that Codex reacts to it as to its own (wire-facts 2.3). */
export function hubErrorOfMessages(type: string | null, message: string): HubError {
  if (/prompt is too long/i.test(message)) return { code: "context_length_exceeded", message };
  switch (type) {
    case "overloaded_error":
      return { code: "server_is_overloaded", message };
    case "rate_limit_error":
      return { code: "rate_limit_exceeded", message };
    case "invalid_request_error":
    case "request_too_large":
      return { code: "invalid_prompt", message };
    default:
      return { code: "server_error", message };
  }
}

/** The Anthropic error of a code; a full context is worded as Claude Code looks for it. */
export function messagesErrorOf(error: HubError): { type: string; message: string } {
  const { code, message } = error;
  if (code === "context_length_exceeded") {
    return { type: "invalid_request_error", message: `prompt is too long: ${message}` };
  }
  return { type: MESSAGES_TYPES[code] ?? "api_error", message };
}

const MESSAGES_TYPES: Readonly<Record<string, string>> = {
  server_is_overloaded: "overloaded_error",
  slow_down: "overloaded_error",
  overloaded_error: "overloaded_error",
  rate_limit_exceeded: "rate_limit_error",
  rate_limit_error: "rate_limit_error",
  rate_limited: "rate_limit_error",
  usage_limit_reached: "rate_limit_error",
  insufficient_quota: "rate_limit_error",
  invalid_prompt: "invalid_request_error",
  invalid_request: "invalid_request_error",
  cyber_policy: "invalid_request_error",
  bio_policy: "invalid_request_error",
  content_policy_violation: "invalid_request_error",
  request_too_large: "request_too_large",
  model_not_found: "not_found_error",
  invalid_api_key: "authentication_error",
};

/** The `error.type` a chat client gets with a code. */
function chatTypeOf(code: string): string {
  switch (messagesErrorOf({ code, message: "" }).type) {
    case "invalid_request_error":
    case "request_too_large":
    case "not_found_error":
      return "invalid_request_error";
    case "rate_limit_error":
      return "rate_limit_error";
    case "authentication_error":
      return "authentication_error";
    default:
      return "server_error";
  }
}

/** The error object of chat and Responses bodies. */
export function openAiError(error: HubError): JsonObject {
  return { message: error.message, type: chatTypeOf(error.code), code: error.code, param: null };
}

/** A whole error body in the client's protocol (design.md 6), for answers that never became a stream. */
export function errorBody(
  client: TranslatedProtocol,
  failure: ClientFailure,
  requestId: string | null,
): JsonObject {
  if (client !== "messages") return { error: openAiError(failure) };
  return { type: "error", error: messagesErrorOf(failure), request_id: requestId };
}
