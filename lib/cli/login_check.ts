/**
 * Whether a login still works, asked of the provider itself (B062).
 *
 * A token that is still valid is shown to a page that costs nothing. Only one that is not is renewed, which uses its
 * refresh token up: whoever asks has to save the new tokens to every place that holds the old ones, at once.
 */
import { formatAttemptId } from "../core/domain.ts";
import type { CredentialRecord } from "../core/credential.ts";
import type { Clock, Credential, TokenIssuer, TokenSet, Upstream } from "../ports.ts";
import { descriptorFor } from "../providers/registry.ts";
import type { ProviderSettings } from "../providers/provider.ts";
import { anthropicTokenUrl } from "../proxy/account_entries.ts";
import type { Config } from "../config_types.ts";

export type LoginCheck =
  | { readonly state: "verified"; readonly renewed: NewTokens | null }
  /** Nobody could say: the provider was not reached, or spoke of something else. */
  | { readonly state: "unverified"; readonly reason: string }
  /** The issuer's own word: it will never work again. */
  | { readonly state: "refused"; readonly reason: string };

export type NewTokens = Partial<TokenSet> & { readonly accessToken: string };

export interface LoginCheckDeps {
  readonly config: Config;
  readonly upstream: Upstream;
  readonly issuer: TokenIssuer;
  readonly clock: Clock;
}

const TIMEOUT_MS = 20_000;

export async function checkLogin(deps: LoginCheckDeps, record: CredentialRecord): Promise<LoginCheck> {
  const { accessToken, expiresAtMs } = record.tokens;
  const nowMs = deps.clock.now();
  const isCurrent = accessToken !== "" && (expiresAtMs === null || expiresAtMs > nowMs);
  if (isCurrent) {
    const page = await askPage(deps, record);
    if (page === 200) return { state: "verified", renewed: null };
    if (page !== 401) {
      const why = typeof page === "number"
        ? `the provider answered ${page}`
        : `the provider could not be asked (${page})`;
      return { state: "unverified", reason: why };
    }
  }
  return await renew(deps, record, isCurrent ? "is refused" : "has expired");
}

/** @returns the status of the usage page, or the word for what kept us from it. */
async function askPage(deps: LoginCheckDeps, record: CredentialRecord): Promise<number | string> {
  const settings = settingsOf(deps.config, record.kind);
  const { usage, pageHeaders } = descriptorFor(record.kind);
  const credential: Credential = {
    kind: "oauth",
    tokens: record.tokens,
    accountHeader: record.kind === "codex" ? record.accountId : null,
  };
  const url = usage?.url(settings, credential) ?? null;
  if (url === null) return "it has no page for that";
  const result = await deps.upstream.send({
    method: "GET",
    url,
    headers: pageHeaders(settings, credential),
    body: null,
    bodyLength: null,
    fresh: true,
    connectTimeoutMs: TIMEOUT_MS / 2,
    firstByteTimeoutMs: TIMEOUT_MS,
    attempt: formatAttemptId("command", 1),
  }, new AbortController().signal);
  if (!result.ok) {
    const { evidence } = result;
    return evidence.kind === "transport" ? evidence.cause.replaceAll("_", " ") : evidence.kind;
  }
  await deps.upstream.readErrorBody(result.response);
  return result.response.status;
}

async function renew(deps: LoginCheckDeps, record: CredentialRecord, why: string): Promise<LoginCheck> {
  const { refreshToken } = record.tokens;
  if (refreshToken === null) {
    return { state: "refused", reason: `its token ${why}, and there is no refresh token; sign in again` };
  }
  const { codexRefreshTokenUrl } = deps.config;
  const url = record.kind === "codex"
    ? codexRefreshTokenUrl
    : anthropicTokenUrl(settingsOf(deps.config, "anthropic").baseUrl);
  const result = await deps.issuer.refresh(
    { kind: record.kind, url, refreshToken, nowMs: deps.clock.now() },
    new AbortController().signal,
  );
  switch (result.kind) {
    case "refreshed":
      return { state: "verified", renewed: result.tokens };
    case "dead":
      return {
        state: "refused",
        reason: `its token ${why}, and the issuer refuses to renew it; sign in again`,
      };
    case "retryable":
      return {
        state: "unverified",
        reason: `its token ${why}, and the issuer could not be asked to renew it`,
      };
  }
}

function settingsOf(config: Config, kind: "codex" | "anthropic"): ProviderSettings {
  const configured = config.providers.find((provider) => provider.kind === kind);
  return {
    id: kind,
    kind,
    baseUrl: kind === "codex" ? config.codexBaseUrl : configured?.baseUrl ?? "https://api.anthropic.com",
    chatgptBaseUrl: config.chatgptBaseUrl,
    plan: null,
    userAgent: config.codexUserAgent,
    betaFeatures: config.codexBetaFeatures,
  };
}
