/**
 * The steps that every OAuth login has in common: a proof only we know (PKCE, RFC 7636), and a code for tokens.
 */
import { validityOnReceipt } from "../core/token_lifetime.ts";
import type { Clock, Digest, Ids, Upstream } from "../ports.ts";
import { callOnce, describeCause } from "./http.ts";

export interface Pkce {
  readonly verifier: string;
  readonly challenge: string;
  /** Comes back with the code: an answer to somebody else's question is refused. */
  readonly state: string;
}

/** RFC 7636 section 4: 43..128 characters; S256 alone. */
export function makePkce(ids: Ids, digest: Digest): Pkce {
  const verifier = ids.secret(48);
  const hash = Uint8Array.fromHex(digest.sha256(verifier));
  return {
    verifier,
    challenge: hash.toBase64({ alphabet: "base64url", omitPadding: true }),
    state: ids.secret(24),
  };
}

export interface ReceivedTokens {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly idToken: string | null;
  readonly expiresAtMs: number | null;
  /** The whole answer, for what else it says of the account. */
  readonly json: Record<string, unknown>;
}

export type Exchange =
  | { readonly ok: true; readonly tokens: ReceivedTokens }
  /** In our words; codes of the issuer only where they are plain words. */
  | { readonly ok: false; readonly problem: string };

export interface ExchangeCall {
  readonly url: string;
  readonly encoding: "form" | "json";
  readonly fields: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Gives a code away for tokens: once, because it is good for one use. */
export async function exchangeCode(upstream: Upstream, clock: Clock, call: ExchangeCall): Promise<Exchange> {
  const { host } = new URL(call.url);
  const answer = await callOnce(upstream, clock, {
    method: "POST",
    url: call.url,
    headers: {
      "content-type": call.encoding === "form" ? "application/x-www-form-urlencoded" : "application/json",
      ...call.headers,
    },
    body: call.encoding === "form"
      ? new URLSearchParams(call.fields).toString()
      : JSON.stringify(call.fields),
  });
  if (!answer.ok) return { ok: false, problem: describeCause(answer.cause, host) };
  const { status, json } = answer;
  if (status !== 200 || json === null) {
    return { ok: false, problem: `${host} refuses the login${wordError(status, json)}` };
  }
  const accessToken = readToken(json["access_token"]);
  if (accessToken === null) return { ok: false, problem: `${host} gave no token` };
  return {
    ok: true,
    tokens: {
      accessToken,
      refreshToken: readToken(json["refresh_token"]),
      idToken: readToken(json["id_token"]),
      expiresAtMs: validityOnReceipt(accessToken, json["expires_in"], clock.now()).expiresAtMs,
      json,
    },
  };
}

/** ` (400 invalid_grant)`; never the issuer's sentences, which may repeat what we sent. */
export function wordError(status: number, json: Record<string, unknown> | null): string {
  const error = json?.["error"];
  const inner = typeof error === "object" && error !== null
    ? (error as Record<string, unknown>)["code"]
    : error;
  const code = typeof inner === "string" && /^[a-z][a-z0-9_]{2,48}$/.test(inner) ? ` ${inner}` : "";
  return ` (${status}${code})`;
}

function readToken(value: unknown): string | null {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value) ? value : null;
}
