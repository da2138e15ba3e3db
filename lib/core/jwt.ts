/**
 * What a JSON Web Token says about itself. Nothing is verified: the upstream does that, we only look for names and times.
 *
 * Claim paths: wire-facts 4.4.
 */

export interface JwtClaims {
  readonly expiresAtMs: number | null;
  readonly issuedAtMs: number | null;
  readonly email: string | null;
  /** Workspace; the value of `ChatGPT-Account-Id`. Shared by all seats of a team. */
  readonly accountId: string | null;
  readonly userId: string | null;
  readonly plan: string | null;
}

const OPENAI_AUTH = "https://api.openai.com/auth";
const OPENAI_PROFILE = "https://api.openai.com/profile";
/** Tokens are one to four KB; more is not worth decoding. */
const LONGEST_PAYLOAD = 65_536;
/** Year 2200: a time beyond it is a mistake, not a long life. */
const LATEST_SECONDS = 7_258_118_400;

/** @returns `null` when the text is not a token with a JSON object inside (an opaque token, for example). */
export function readJwtClaims(token: string): JwtClaims | null {
  const parts = token.split(".");
  const payload = parts.length === 3 ? decodePayload(parts[1]!) : null;
  if (payload === null) return null;
  const auth = objectAt(payload, OPENAI_AUTH);
  const profile = objectAt(payload, OPENAI_PROFILE);
  return {
    expiresAtMs: secondsAt(payload, "exp"),
    issuedAtMs: secondsAt(payload, "iat"),
    email: textAt(payload, "email") ?? textAt(profile, "email"),
    accountId: textAt(auth, "chatgpt_account_id"),
    userId: textAt(auth, "chatgpt_user_id") ?? textAt(auth, "user_id"),
    plan: textAt(auth, "chatgpt_plan_type"),
  };
}

function decodePayload(part: string): Record<string, unknown> | null {
  if (part === "" || part.length > LONGEST_PAYLOAD) return null;
  try {
    const binary = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objectAt(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name];
  return isObject(inner) ? inner : {};
}

function textAt(value: Record<string, unknown>, name: string): string | null {
  const inner = value[name];
  return typeof inner === "string" && inner.trim() !== "" ? inner.trim() : null;
}

function secondsAt(value: Record<string, unknown>, name: string): number | null {
  const seconds = value[name];
  if (typeof seconds !== "number" || !(seconds > 0 && seconds < LATEST_SECONDS)) return null;
  return Math.floor(seconds * 1_000);
}
