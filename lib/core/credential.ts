/**
 * Credential files of every known make, read into one shape (wire-facts 4.1, 6.8), and who they belong to.
 *
 * Writing tokens back into such a file is `credential_merge.ts`; nothing here touches a disk.
 */
import { type JwtClaims, readJwtClaims } from "./jwt.ts";
import { validityFromFile } from "./token_lifetime.ts";
import type { AccountId } from "./domain.ts";

export interface TokenSet {
  /** "" when a file holds only a refresh token: then a refresh comes before the first use. */
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly idToken: string | null;
  /** UTC epoch ms, or null when nothing tells. */
  readonly expiresAtMs: number | null;
}

export type CredentialFormat =
  /** Codex CLI's own `auth.json`. */
  | "codex_auth"
  /** `{type: "codex"}`, one account a file. */
  | "codex_flat"
  /** `{type: "claude"}`, one account a file. */
  | "claude_flat"
  /** Claude Code's `.credentials.json`. */
  | "claude_code"
  /** `{type: "oauth_token"}` of Anthropic's SDK. */
  | "anthropic_sdk";

export interface CredentialRecord {
  readonly format: CredentialFormat;
  readonly kind: "codex" | "anthropic";
  readonly tokens: TokenSet;
  /** From this moment a refresh is due; `null`: only a 401 says so. */
  readonly refreshAtMs: number | null;
  /** Workspace or organisation. */
  readonly accountId: string | null;
  readonly userId: string | null;
  readonly email: string | null;
  readonly plan: string | null;
  /** `last_refresh` of the file, else when the access token was issued. */
  readonly lastRefreshAtMs: number | null;
  /** The file itself says `disabled: true`. */
  readonly disabled: boolean;
}

export type IgnoredReason =
  | "not_a_credential"
  | "other_type"
  | "api_key_only"
  | "no_tokens"
  | "too_large"
  | "unreadable";

export type ParsedCredentialFile =
  | { readonly kind: "credential"; readonly record: CredentialRecord }
  | { readonly kind: "ignored"; readonly reason: IgnoredReason }
  /** Empty or cut JSON: somebody may be writing it right now. */
  | { readonly kind: "unfinished" };

export type JsonObject = Record<string, unknown>;

/** Spellings of one field, the usual one first. */
export const ACCESS_TOKEN_KEYS = ["access_token", "accessToken"] as const;
export const REFRESH_TOKEN_KEYS = ["refresh_token", "refreshToken"] as const;
export const ID_TOKEN_KEYS = ["id_token", "idToken"] as const;
export const EXPIRY_KEYS = ["expired", "expire", "expires_at", "expiresAt", "expiry", "expires"] as const;
export const LAST_REFRESH_KEYS = ["last_refresh", "lastRefresh"] as const;

/** Reads the text of a file; the format is told by its fields, never by its name. */
export function parseCredentialFile(text: string): ParsedCredentialFile {
  let root: unknown;
  try {
    root = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch {
    return { kind: "unfinished" };
  }
  if (!isJsonObject(root)) return { kind: "ignored", reason: "not_a_credential" };
  const format = formatOf(root);
  if (format === null) {
    return { kind: "ignored", reason: typeof root.type === "string" ? "other_type" : "not_a_credential" };
  }
  const holder = tokenHolder(root, format);
  const accessToken = readToken(holder, ACCESS_TOKEN_KEYS);
  const refreshToken = readToken(holder, REFRESH_TOKEN_KEYS);
  if (accessToken === null && refreshToken === null) {
    return { kind: "ignored", reason: hasApiKey(root) ? "api_key_only" : "no_tokens" };
  }
  const idToken = readToken(holder, ID_TOKEN_KEYS);
  return {
    kind: "credential",
    record: readRecord(root, holder, format, { accessToken, refreshToken, idToken }),
  };
}

/** Which make of file this is, or `null` for JSON that is none of ours. */
export function formatOf(root: JsonObject): CredentialFormat | null {
  if (isJsonObject(root.claudeAiOauth)) return "claude_code";
  if (root.type === "codex") return "codex_flat";
  if (root.type === "claude") return "claude_flat";
  if (root.type === "oauth_token") return "anthropic_sdk";
  if (typeof root.type === "string") return null;
  if (isJsonObject(root.tokens) || "OPENAI_API_KEY" in root || "auth_mode" in root) return "codex_auth";
  // A flat file whose `type` got lost is known by what its tokens say.
  for (const keys of [ID_TOKEN_KEYS, ACCESS_TOKEN_KEYS]) {
    const token = readToken(root, keys);
    if (token !== null && readJwtClaims(token)?.accountId) return "codex_flat";
  }
  return null;
}

/** The object inside the file that carries the tokens. */
export function tokenHolder(root: JsonObject, format: CredentialFormat): JsonObject {
  const inner = format === "codex_auth" ? root.tokens : format === "claude_code" ? root.claudeAiOauth : root;
  return isJsonObject(inner) ? inner : {};
}

function readRecord(
  root: JsonObject,
  holder: JsonObject,
  format: CredentialFormat,
  found: { accessToken: string | null; refreshToken: string | null; idToken: string | null },
): CredentialRecord {
  const accessToken = found.accessToken ?? "";
  const access = readJwtClaims(accessToken);
  const claims: readonly (JwtClaims | null)[] = [
    found.idToken === null ? null : readJwtClaims(found.idToken),
    access,
  ];
  const claim = (name: "email" | "accountId" | "userId" | "plan") =>
    claims.map((one) => one?.[name] ?? null).find((value) => value !== null) ?? null;
  const lastRefreshAtMs = readTimeOf(root, LAST_REFRESH_KEYS) ?? access?.issuedAtMs ?? null;
  const storedExpiryMs = readTimeOf(holder, EXPIRY_KEYS) ?? readTimeOf(root, EXPIRY_KEYS);
  const validity = validityFromFile(accessToken, storedExpiryMs, lastRefreshAtMs);
  const isCodex = format === "codex_auth" || format === "codex_flat";
  return {
    format,
    kind: isCodex ? "codex" : "anthropic",
    tokens: {
      accessToken,
      refreshToken: found.refreshToken,
      idToken: found.idToken,
      expiresAtMs: validity.expiresAtMs,
    },
    refreshAtMs: validity.refreshAtMs,
    accountId: isCodex
      ? readText(holder, ["account_id", "accountId"]) ?? claim("accountId")
      : readText(root, ["organization_uuid"]),
    userId: isCodex ? claim("userId") : readText(root, ["account_uuid"]),
    email: readText(root, ["email"]) ?? claim("email"),
    plan: isCodex ? claim("plan") : readText(holder, ["subscriptionType"]),
    lastRefreshAtMs,
    disabled: root.disabled === true,
  };
}

/** Characters that may stand in an account id; ids appear in URLs, logs and file rows. */
const ID_PART = /^[A-Za-z0-9._|-]{1,128}$/;

/**
 * Who the credential belongs to, independent of file name and token values (ruling 22).
 *
 * @returns `<workspace>:<user>`, or `null` when the file does not name both: then only its place tells.
 */
export function credentialOwner(record: CredentialRecord): string | null {
  const { accountId, userId } = record;
  if (accountId === null || userId === null) return null;
  return ID_PART.test(accountId) && ID_PART.test(userId) ? `${accountId}:${userId}` : null;
}

/** @param pathHash  hex digest of the normalized path, for a record that does not name its owner. */
export function codexAccountId(record: CredentialRecord, pathHash: string): AccountId {
  return `codex:${credentialOwner(record) ?? `path-${pathHash.slice(0, 16)}`}`;
}

/**
 * Orders copies of one account, the one to use first: newest refresh, then the longest life, then the path, so that
 * the answer does not depend on the order in which the files were found.
 */
export function compareCopies(
  a: { readonly path: string; readonly record: CredentialRecord },
  b: { readonly path: string; readonly record: CredentialRecord },
): number {
  return (b.record.lastRefreshAtMs ?? 0) - (a.record.lastRefreshAtMs ?? 0) ||
    (b.record.tokens.expiresAtMs ?? 0) - (a.record.tokens.expiresAtMs ?? 0) ||
    (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);
}

/**
 * What the fingerprint of an account is the digest of: changes exactly when the credential does.
 * The id token is left out: it authenticates nothing.
 */
export function fingerprintInput(
  material: { readonly apiKey: string } | Pick<TokenSet, "accessToken" | "refreshToken">,
): string {
  return "apiKey" in material
    ? `api_key\0${material.apiKey}`
    : `oauth\0${material.accessToken}\0${material.refreshToken ?? ""}`;
}

/** `j***@example.com`: enough to tell one's own accounts apart, not enough to write to anybody. */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf("@");
  return at < 1 ? "***" : `${email[0]}***${email.slice(at)}`;
}

/**
 * Whether somebody who types `text` means this address: all of it, what is before its @, or as we show it.
 *
 * A part of it is not enough: trying one letter more each time would spell out what is only shown masked.
 */
export function isEmailMeant(email: string, text: string): boolean {
  const wanted = text.toLowerCase();
  const whole = email.toLowerCase();
  const at = whole.lastIndexOf("@");
  return wanted === whole || (at > 0 && (wanted === whole.slice(0, at) || wanted === maskEmail(whole)));
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A token goes into a header as it is, so one with blanks or controls inside counts as missing. */
function readToken(holder: JsonObject, keys: readonly string[]): string | null {
  const text = readText(holder, keys);
  return text !== null && /^[\x21-\x7e]+$/.test(text) ? text : null;
}

function readText(holder: JsonObject, keys: readonly string[]): string | null {
  for (const key of keys) {
    const value = holder[key];
    if (typeof value === "string" && value.trim() !== "") return value.trim();
  }
  return null;
}

function readTimeOf(holder: JsonObject, keys: readonly string[]): number | null {
  for (const key of keys) {
    const timeMs = readTimeMs(holder[key]);
    if (timeMs !== null) return timeMs;
  }
  return null;
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;
/** Seconds of any plausible year stay below, ms above: 1e11 s is the year 5138, 1e11 ms is 1973. */
const MS_FROM = 100_000_000_000;
const LATEST_MS = 7_258_118_400_000;

/** RFC 3339 text, or unix time in s or ms, as number or text. @returns UTC epoch ms, or `null`. */
export function readTimeMs(value: unknown): number | null {
  if (typeof value === "string") {
    const text = value.trim();
    if (/^\d{1,13}$/.test(text)) return readTimeMs(Number(text));
    if (!RFC_3339.test(text)) return null;
    const parsedMs = Date.parse(text.toUpperCase().replace(" ", "T"));
    return parsedMs > 0 && parsedMs < LATEST_MS ? parsedMs : null;
  }
  if (typeof value !== "number" || !(value > 0)) return null;
  const timeMs = Math.floor(value < MS_FROM ? value * 1_000 : value);
  return timeMs < LATEST_MS ? timeMs : null;
}

function hasApiKey(root: JsonObject): boolean {
  return typeof root.OPENAI_API_KEY === "string" && root.OPENAI_API_KEY !== "";
}
