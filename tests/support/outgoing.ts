/** Requests, settings and credentials as descriptors get them. */
import type { ClientProtocol, ProviderKind } from "../../lib/core/domain.ts";
import type { Credential } from "../../lib/ports.ts";
import { type RouteName, ROUTES } from "../../lib/protocol/route.ts";
import type { OutgoingRequest, ProviderSettings } from "../../lib/providers/provider.ts";

export const LOGIN: Credential = {
  kind: "oauth",
  tokens: { accessToken: "SENT-access", refreshToken: "SENT-refresh", idToken: null, expiresAtMs: null },
  accountHeader: null,
};
export const KEY: Credential = { kind: "api_key", apiKey: "SENT-own" };

export function settingsOf(
  kind: ProviderKind,
  baseUrl: string,
  more: Partial<ProviderSettings> = {},
): ProviderSettings {
  return {
    id: "p",
    kind,
    baseUrl,
    chatgptBaseUrl: "https://chatgpt.com/backend-api",
    plan: null,
    userAgent: "codex-only/1",
    betaFeatures: "codex-only",
    ...more,
  };
}

/** @param protocol  the one spoken upstream; the route's own when nothing is translated. */
export function outgoingAs(
  name: RouteName,
  protocol: ClientProtocol,
  more: Partial<OutgoingRequest> = {},
): OutgoingRequest {
  const route = ROUTES.find((candidate) => candidate.name === name)!;
  return {
    route,
    upstreamPath: route.upstreamPath,
    search: "",
    method: route.methods[0]!,
    clientHeaders: new Headers(),
    protocol,
    streaming: false,
    keepTurnState: false,
    websocket: route.websocket,
    ...more,
  };
}
