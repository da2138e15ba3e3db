/** How a request to Anthropic is made: its URL and its headers; the body goes as it is (wire-facts 6.8). */
import { HeaderFields } from "../core/header_fields.ts";
import type { Credential } from "../ports.ts";
import { setHeader } from "../protocol/headers.ts";
import { readRefusal, UNIFIED_PREFIX } from "./claude_limits.ts";
import { fitContent, keepHeaders, type KeptHeaders, keptSearch, setDefault } from "./outgoing_headers.ts";
import type { OutgoingRequest, ProviderSettings } from "./provider.ts";

const API_VERSION = "2023-06-01";
/** Without it an access token is refused. */
const OAUTH_BETA = "oauth-2025-04-20";
/** `claude setup-token` prints such an access token, and people configure it as a key. */
const ACCESS_TOKEN_PREFIX = "sk-ant-oat";

// ---------------------------------------------------------------- url

/** Logins are served at `?beta=true`, as the client they were made for asks; keys as the caller asks. */
export function claudeUrl(
  request: OutgoingRequest,
  settings: ProviderSettings,
  credential: Credential,
): string {
  const path = request.route.name === "count_tokens" ? request.upstreamPath : "/v1/messages";
  const search = keptSearch(request);
  const url = settings.baseUrl + path;
  if (accessTokenOf(credential) === null || /[?&]beta=/.test(search)) return url + search;
  return search.length > 1 ? `${url}${search}&beta=true` : `${url}?beta=true`;
}

/** Only a login that was made with the scope for it can read its page; a setup token cannot. */
export function claudeUsageUrl(settings: ProviderSettings, credential: Credential): string | null {
  return credential.kind === "oauth" ? `${settings.baseUrl}/api/oauth/usage` : null;
}

// ---------------------------------------------------------------- headers

const KEPT: KeptHeaders = {
  names: new Set([
    "accept",
    "content-type",
    "user-agent",
    "x-app",
    "x-client-request-id",
    "traceparent",
    "tracestate",
  ]),
  prefixes: ["anthropic-", "x-anthropic-", "x-claude-code-", "x-claude-remote-"],
};

/**
 * The Claude Code identity that logins ask for is the client's own to send: nothing is made up here, and a client
 * that has none is told so by the upstream.
 */
export function claudeHeaders(
  request: OutgoingRequest,
  _settings: ProviderSettings,
  credential: Credential,
): HeaderFields {
  const headers = keepHeaders(request.clientHeaders, KEPT);
  setDefault(headers, "anthropic-version", API_VERSION);
  fitContent(headers, request);
  setCredential(headers, credential);
  return headers;
}

/** Headers of our own reads: usage page, list of models. */
export function claudePageHeaders(_settings: ProviderSettings, credential: Credential): HeaderFields {
  const headers = HeaderFields.from({ accept: "application/json", "anthropic-version": API_VERSION });
  setCredential(headers, credential);
  return headers;
}

function setCredential(headers: HeaderFields, credential: Credential): void {
  const token = accessTokenOf(credential);
  // The beta says how this hop authenticates, so the client's word on it does not count.
  const betas = (headers.get("anthropic-beta") ?? "").split(",").map((beta) => beta.trim())
    .filter((beta) => beta !== "" && beta !== OAUTH_BETA);
  if (token !== null) betas.push(OAUTH_BETA);
  headers.delete("anthropic-beta");
  if (betas.length > 0) setHeader(headers, "anthropic-beta", [...new Set(betas)].join(","));
  if (token !== null) setHeader(headers, "authorization", `Bearer ${token}`);
  else if (credential.kind === "api_key") setHeader(headers, "x-api-key", credential.apiKey);
}

function accessTokenOf(credential: Credential): string | null {
  switch (credential.kind) {
    case "oauth":
      return credential.tokens.accessToken;
    case "api_key":
      return credential.apiKey.startsWith(ACCESS_TOKEN_PREFIX) ? credential.apiKey : null;
    default:
      return credential satisfies never;
  }
}

// ---------------------------------------------------------------- answer

/**
 * Takes out what would mislead the client: Claude Code stops by itself when a header says that the window was
 * rejected, at any status, although other accounts may serve its next request (wire-facts 6.9).
 */
export function claudeAnswerHeaders(headers: HeaderFields): HeaderFields {
  const rejected = readRefusal(headers, 0) !== null;
  headers.forEach((_, name) => {
    if (name === "anthropic-organization-id" || (rejected && name.startsWith(UNIFIED_PREFIX))) {
      headers.delete(name);
    }
  });
  return headers;
}

/** Keys of one organisation share its buckets; subscriptions have windows of their own. */
export function claudeSharedLimitKey(
  headers: { get(name: string): string | null },
  credential: Credential,
): string | null {
  if (accessTokenOf(credential) !== null) return null;
  const id = headers.get("anthropic-organization-id")?.trim() ?? "";
  return /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : null;
}
