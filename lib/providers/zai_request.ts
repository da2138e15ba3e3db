/** How a request to z.ai is made: two endpoints, one key (wire-facts 7.1). */
import type { ClientProtocol } from "../core/domain.ts";
import { HeaderFields } from "../core/header_fields.ts";
import type { Credential } from "../ports.ts";
import { setHeader } from "../protocol/headers.ts";
import { fitContent, keepHeaders, type KeptHeaders, keptSearch, setDefault } from "./outgoing_headers.ts";
import type { OutgoingRequest, ProviderSettings } from "./provider.ts";

const ANTHROPIC_VERSION = "2023-06-01";

/** Each of its two endpoints speaks to the clients made for it; the others are translated to chat. */
export function zaiProtocol(client: ClientProtocol): ClientProtocol {
  return client === "responses" ? "chat" : client;
}

/** The base is the host alone. A plan's key at the other plan's address is refused with code 1113. */
export function zaiUrl(request: OutgoingRequest, settings: ProviderSettings): string {
  const search = keptSearch(request);
  if (request.protocol === "messages") {
    const path = request.route.name === "count_tokens" ? request.upstreamPath : "/v1/messages";
    return `${settings.baseUrl}/api/anthropic${path}${search}`;
  }
  const plan = settings.plan === "coding" ? "/api/coding/paas/v4" : "/api/paas/v4";
  return `${settings.baseUrl}${plan}/chat/completions${search}`;
}

/** Only the coding plan has windows to show. */
export function zaiUsageUrl(settings: ProviderSettings): string | null {
  return settings.plan === "coding" ? `${settings.baseUrl}/api/monitor/usage/quota/limit` : null;
}

const KEPT: KeptHeaders = {
  names: new Set([
    "accept",
    "accept-language",
    "content-type",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "traceparent",
    "tracestate",
  ]),
  prefixes: [],
};

export function zaiHeaders(
  request: OutgoingRequest,
  _settings: ProviderSettings,
  credential: Credential,
): HeaderFields {
  const headers = keepHeaders(request.clientHeaders, KEPT);
  if (request.protocol === "messages") setDefault(headers, "anthropic-version", ANTHROPIC_VERSION);
  fitContent(headers, request);
  setCredential(headers, credential);
  return headers;
}

/** Headers of our own reads: the quota page. */
export function zaiPageHeaders(_settings: ProviderSettings, credential: Credential): HeaderFields {
  const headers = HeaderFields.from({ accept: "application/json" });
  setCredential(headers, credential);
  return headers;
}

function setCredential(headers: HeaderFields, credential: Credential): void {
  const token = credential.kind === "api_key" ? credential.apiKey : credential.tokens.accessToken;
  setHeader(headers, "authorization", `Bearer ${token}`);
}
