/** How a request to an OpenAI-compatible host is made: chat everywhere, Responses on the platform itself. */
import type { ClientProtocol } from "../core/domain.ts";
import type { HeaderLookup } from "../core/evidence.ts";
import { HeaderFields } from "../core/header_fields.ts";
import type { Credential } from "../ports.ts";
import { setHeader } from "../protocol/headers.ts";
import { targetOf } from "../protocol/translate/targets.ts";
import { fitContent, keepHeaders, type KeptHeaders, keptSearch } from "./outgoing_headers.ts";
import type { OutgoingRequest, ProviderSettings } from "./provider.ts";

/** The `api-key` of hosts that ask for none. */
const NO_KEY = "none";

/**
 * Chat is what every such host speaks. The platform has Responses too, which is the hub of translation: clients of
 * Messages lose least on that way.
 */
export function openAiProtocol(client: ClientProtocol, settings: ProviderSettings): ClientProtocol {
  if (client === "raw" || client === "chat") return client;
  return targetOf("openai", settings.baseUrl) === "platform" ? "responses" : "chat";
}

export function openAiUrl(request: OutgoingRequest, settings: ProviderSettings): string {
  const path = request.protocol === "responses" ? "/responses" : "/chat/completions";
  return settings.baseUrl + path + keptSearch(request);
}

const KEPT: KeptHeaders = {
  names: new Set([
    "accept",
    "content-type",
    "user-agent",
    "openai-beta",
    "x-client-request-id",
    "traceparent",
    "tracestate",
  ]),
  prefixes: [],
};

export function openAiHeaders(
  request: OutgoingRequest,
  _settings: ProviderSettings,
  credential: Credential,
): HeaderFields {
  const headers = keepHeaders(request.clientHeaders, KEPT);
  fitContent(headers, request);
  setCredential(headers, credential);
  return headers;
}

/** Headers of our own reads: the list of models. */
export function openAiPageHeaders(_settings: ProviderSettings, credential: Credential): HeaderFields {
  const headers = HeaderFields.from({ accept: "application/json" });
  setCredential(headers, credential);
  return headers;
}

function setCredential(headers: HeaderFields, credential: Credential): void {
  const token = credential.kind === "api_key" ? credential.apiKey : credential.tokens.accessToken;
  if (token !== NO_KEY) setHeader(headers, "authorization", `Bearer ${token}`);
}

/** Whose key it was is none of the client's business. */
export function openAiAnswerHeaders(headers: HeaderFields): HeaderFields {
  headers.delete("openai-organization");
  headers.delete("openai-project");
  return headers;
}

/** Limits are the organisation's, per model; keys of all its projects draw on them. */
export function openAiSharedLimitKey(headers: HeaderLookup): string | null {
  const id = headers.get("openai-organization")?.trim() ?? "";
  return /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : null;
}
