/**
 * Failures said in each protocol's own words.
 *
 * The hub's words are Responses error codes; what a code means for health is decided in `core/classify.ts`, not here.
 */
import type { ErrorFacts } from "../../core/evidence.ts";
import type { HubError } from "./hub_writer.ts";
import { readErrorValue } from "../error_body.ts";
import { entryOf, isObject, type JsonObject, readText } from "./json.ts";
import type { TranslatedProtocol } from "./translator.ts";

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
  return { type: entryOf(MESSAGES_TYPES, code) ?? "api_error", message };
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

/**
 * An upstream's refusal of the request itself, said in the protocol of a client that speaks another one.
 *
 * For request-scoped answers alone: they keep the upstream's own words (design.md 6).
 *
 * @param requestId  our id of the request; Anthropic bodies carry it.
 */
export function translateErrorBody(
  client: TranslatedProtocol,
  facts: ErrorFacts,
  status: number,
  requestId: string,
): JsonObject {
  const message = facts.message ?? "The upstream refused the request";
  const hub = facts.type === null ? null : hubErrorOfMessages(facts.type, message);
  if (client === "messages") {
    const known = messagesErrorOf({ code: facts.code ?? "", message });
    const isKnown = facts.code !== null &&
      (entryOf(MESSAGES_TYPES, facts.code) !== null || facts.code === "context_length_exceeded");
    const error = isKnown ? known : { type: MESSAGES_STATUS_TYPES[status] ?? "api_error", message };
    return { type: "error", error, request_id: requestId };
  }
  // Anthropic names a type alone; a full context must get the code that OpenAI's clients look for.
  const code = facts.code ?? (hub?.code === "context_length_exceeded" ? hub.code : facts.type);
  const type = status === 429 ? "rate_limit_error" : facts.type ?? chatTypeOf(code ?? "invalid_request");
  return { error: { message, type, code, param: facts.param } };
}

/** Anthropic's types by status (wire-facts 6.1). */
const MESSAGES_STATUS_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "invalid_request_error",
  413: "request_too_large",
  422: "invalid_request_error",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};
