/**
 * Credential files as the programs of the field write them, with made-up tokens.
 *
 * Every secret in them contains `SENT-`, so that one search of logs and answers finds any leak.
 */

import { type CredentialRecord, parseCredentialFile } from "../../lib/core/credential.ts";

const SECOND_MS = 1_000;

/** The record in a text that must hold one. */
export function recordOf(text: string): CredentialRecord {
  const parsed = parseCredentialFile(text);
  if (parsed.kind !== "credential") {
    throw new TypeError(`Cannot read the fixture: it is ${JSON.stringify(parsed)}`);
  }
  return parsed.record;
}

export interface FakeToken {
  readonly account?: string;
  readonly user?: string;
  readonly email?: string;
  readonly plan?: string;
  /** UTC epoch ms. */
  readonly issuedAtMs?: number;
  readonly expiresAtMs?: number;
  /** Makes two tokens of one account differ. */
  readonly serial?: string;
}

/** An unsigned JSON Web Token with the claims of wire-facts 4.4. */
export function fakeJwt(token: FakeToken): string {
  const payload: Record<string, unknown> = {};
  if (token.email !== undefined) payload["https://api.openai.com/profile"] = { email: token.email };
  if (token.issuedAtMs !== undefined) payload.iat = Math.floor(token.issuedAtMs / SECOND_MS);
  if (token.expiresAtMs !== undefined) payload.exp = Math.floor(token.expiresAtMs / SECOND_MS);
  payload["https://api.openai.com/auth"] = {
    chatgpt_account_id: token.account,
    chatgpt_user_id: token.user,
    chatgpt_plan_type: token.plan,
  };
  return `${part({ alg: "none" })}.${part(payload)}.SENT-SIGNATURE-${token.serial ?? "1"}`;
}

function part(value: unknown): string {
  return new TextEncoder().encode(JSON.stringify(value)).toBase64({
    alphabet: "base64url",
    omitPadding: true,
  });
}

export interface FakeLogin extends FakeToken {
  readonly refreshToken?: string;
  /** RFC 3339. */
  readonly lastRefresh?: string;
  readonly opaqueAccess?: string;
}

/** Codex CLI's `auth.json`. */
export function codexAuthText(login: FakeLogin, extra: Record<string, unknown> = {}): string {
  return JSON.stringify(
    {
      auth_mode: "chatgpt",
      OPENAI_API_KEY: null,
      tokens: {
        id_token: fakeJwt(login),
        access_token: login.opaqueAccess ?? fakeJwt(login),
        refresh_token: login.refreshToken ?? "rt_SENT-REFRESH-1",
        account_id: login.account,
      },
      last_refresh: login.lastRefresh ?? "2027-01-15T07:00:00.000000Z",
      ...extra,
    },
    null,
    2,
  );
}

/** The flat file, one account each, of other proxies. */
export function codexFlatText(login: FakeLogin, extra: Record<string, unknown> = {}): string {
  return JSON.stringify({
    id_token: fakeJwt(login),
    access_token: login.opaqueAccess ?? fakeJwt(login),
    refresh_token: login.refreshToken ?? "rt_SENT-REFRESH-1",
    account_id: login.account,
    last_refresh: login.lastRefresh ?? "2027-01-15T07:00:00Z",
    email: login.email ?? "",
    type: "codex",
    ...extra,
  });
}

/** Claude Code's `.credentials.json`. */
export function claudeCodeText(
  login: { accessToken?: string; refreshToken?: string; expiresAtMs?: number } = {},
  extra: Record<string, unknown> = {},
): string {
  return JSON.stringify({
    claudeAiOauth: {
      accessToken: login.accessToken ?? "sk-ant-oat01-SENT-ACCESS-1",
      refreshToken: login.refreshToken ?? "sk-ant-ort01-SENT-REFRESH-1",
      expiresAt: login.expiresAtMs ?? 1_800_028_800_000,
      scopes: ["user:inference", "user:profile"],
      subscriptionType: "max",
      rateLimitTier: "default_claude_max_20x",
    },
    mcpOAuth: { server: { token: "SENT-MCP" } },
    ...extra,
  });
}
