/**
 * What a log record may show. Two nets, because one is not enough: by the name of a field, and by the look of a value.
 *
 * Callers are still expected to log ids and safe words only; this file is for the day somebody does not.
 */
import type { LogFields } from "../ports.ts";

export const REDACTED = "[redacted]";
/** Longest text of one field; records are lines, not documents. */
const TEXT_LIMIT = 512;
const LIST_LIMIT = 32;

/** Compared without case, `-` and `_`. Only text is hidden: a count named `tokens` stays a count. */
const SECRET_NAMES = new Set([
  "accesstoken",
  "adminapikey",
  "apikey",
  "apikeys",
  "authorization",
  "bearertoken",
  "body",
  "clientsecret",
  "codeverifier",
  "conversation",
  "conversationid",
  "cookie",
  "credential",
  "credentials",
  "idtoken",
  "password",
  "promptcachekey",
  "proxyauthorization",
  "refreshtoken",
  "requestbody",
  "responsebody",
  "secret",
  "session",
  "sessionid",
  "setcookie",
  "threadid",
  "token",
  "tokens",
  "turnstate",
  "xapikey",
]);

/** A value without any of these cannot match a rule below; most values end here. */
const WORTH_A_LOOK = /@|bearer|basic|sk-|rt[._]|hf_|ey|[?&;]/i;

const RULES: readonly (readonly [RegExp, string])[] = [
  [/\b(bearer|basic)[\s:]+[^\s"',;]+/gi, `$1 ${REDACTED}`],
  // user:password@host of an egress proxy, before e-mail addresses are looked for.
  [/\/\/[^\s/?#@]+@/g, `//${REDACTED}@`],
  [
    /([?&;](?:key|api[-_]?key|(?:access|refresh|id)?[-_]?token|code|state|sig|signature|secret|password|auth)=)[^&;\s"']+/gi,
    `$1${REDACTED}`,
  ],
  [/\bsk-[A-Za-z0-9_-]{6,}/g, REDACTED],
  [/\brt[._][A-Za-z0-9._-]{10,}/g, REDACTED],
  [/\bhf_[A-Za-z0-9_-]{8,}/g, REDACTED],
  // A JSON Web Token, whole or cut: base64url of `{"`, or two parts that begin like one.
  [/\beyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*/g, REDACTED],
  [/\bey[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+/g, REDACTED],
  [/([A-Za-z0-9])[A-Za-z0-9._%+-]*@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)/g, "$1***@$2"],
];

/** The fields as they may be written; undefined ones are left out. */
export function redactFields(fields: LogFields): Record<string, unknown> {
  const safe: Record<string, unknown> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) safe[name] = redactField(name, value);
  }
  return safe;
}

/** One field's value as it may be written. */
export function redactField(name: string, value: NonNullable<LogFields[string]> | null): unknown {
  if (typeof value === "string") return isSecretName(name) ? REDACTED : redactText(value);
  return value !== null && typeof value === "object" ? redactList(name, value) : value;
}

/** Text with everything that looks like a secret or an e-mail address taken out, cut to 512 characters. */
export function redactText(text: string): string {
  // Cut after hiding: cutting first could leave the head of a token too short to be recognised.
  let safe = text.length > 8 * TEXT_LIMIT ? text.slice(0, 8 * TEXT_LIMIT) : text;
  if (WORTH_A_LOOK.test(safe)) {
    for (const [pattern, replacement] of RULES) safe = safe.replace(pattern, replacement);
  }
  return safe.length > TEXT_LIMIT ? `${safe.slice(0, TEXT_LIMIT)}…` : safe;
}

function redactList(name: string, values: readonly (string | number)[]): unknown[] {
  const secret = isSecretName(name);
  return values.slice(0, LIST_LIMIT).map((value) =>
    typeof value !== "string" ? value : secret ? REDACTED : redactText(value)
  );
}

/** Field names are written in the source: a handful. The limit is for the day one is not. */
const NAMES_KEPT = 1_000;
const judgedNames = new Map<string, boolean>();

function isSecretName(name: string): boolean {
  let secret = judgedNames.get(name);
  if (secret === undefined) {
    secret = SECRET_NAMES.has(name.replace(/[-_]/g, "").toLowerCase());
    if (judgedNames.size < NAMES_KEPT) judgedNames.set(name, secret);
  }
  return secret;
}
