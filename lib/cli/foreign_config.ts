/**
 * Configurations of codex-oauth-proxy and CLIProxyAPI in Holdfast's words, and everything of them that has none.
 *
 * Pure: values in, values out. Nothing is dropped in silence: what is not carried over is named with the reason, so
 * that the person who moves can decide.
 */
import { convertProviders } from "./foreign_providers.ts";
import { asList, asMapping, isSaying, listOrNothing, type Mapping, readMinutes } from "./foreign_values.ts";

export type ForeignKind = "codex-oauth-proxy" | "cliproxyapi";

export interface Dropped {
  /** Key of the foreign file. */
  readonly path: string;
  readonly why: string;
}

export interface Converted {
  /** In the shape of Holdfast's own file; only what differs from its defaults or was said. */
  readonly file: Record<string, unknown>;
  readonly dropped: readonly Dropped[];
}

const CLIPROXYAPI_KEYS = [
  "remote-management",
  "claude-api-key",
  "codex-api-key",
  "gemini-api-key",
  "openai-compatibility",
  "quota-exceeded",
  "oauth-model-alias",
  "ws-auth",
  "usage-statistics-enabled",
  "codex-header-defaults",
];
const CODEX_OAUTH_PROXY_KEYS = [
  "admin-api-key",
  "database",
  "codex-base-url",
  "chatgpt-base-url",
  "allow-fast-mode",
];

/** Which program wrote the file; null when nothing tells. */
export function guessKind(source: Mapping): ForeignKind | null {
  const has = (keys: readonly string[]) => keys.filter((key) => key in source).length;
  const [cliproxyapi, codexOauthProxy] = [has(CLIPROXYAPI_KEYS), has(CODEX_OAUTH_PROXY_KEYS)];
  if (cliproxyapi === codexOauthProxy) return null;
  return cliproxyapi > codexOauthProxy ? "cliproxyapi" : "codex-oauth-proxy";
}

/**
 * @param claudeFiles  Claude logins found in the foreign auth folder: Holdfast names those in the configuration.
 */
export function convertConfig(kind: ForeignKind, source: Mapping, claudeFiles: readonly string[]): Converted {
  const conversion = new Conversion(source);
  convertCommon(conversion);
  if (kind === "codex-oauth-proxy") convertCodexOauthProxy(conversion);
  else convertCliProxyApi(conversion, claudeFiles);
  return conversion.result();
}

/** Takes values out of the foreign file one by one; what nobody took is reported at the end. */
class Conversion {
  readonly file: Mapping = {};
  readonly #rest: Mapping;
  readonly #dropped: Dropped[] = [];

  constructor(source: Mapping) {
    this.#rest = { ...source };
  }

  /** The value of a key, which then counts as dealt with; undefined and null when there is none. */
  take(key: string): unknown {
    const value = this.#rest[key];
    delete this.#rest[key];
    return value;
  }

  takeMapping(key: string): Mapping {
    return asMapping(this.take(key));
  }

  takeList(key: string): Mapping[] {
    return asList(this.take(key)).map(asMapping);
  }

  set(key: string, value: unknown): void {
    if (value !== undefined && value !== null && value !== "") this.file[key] = value;
  }

  drop(path: string, why: string): void {
    this.#dropped.push({ path, why });
  }

  result(): Converted {
    for (const [key, value] of Object.entries(this.#rest)) {
      if (isSaying(value)) this.drop(key, "has no counterpart");
    }
    return { file: this.file, dropped: this.#dropped };
  }
}

const SAME_KEYS = ["request-retry", "max-retry-credentials", "max-retry-interval"] as const;

/** What both programs call alike. */
function convertCommon(conversion: Conversion): void {
  const host = conversion.take("host");
  // Both listen on every address when nothing is said; Holdfast stays on loopback, so it must be said.
  conversion.set("host", host === undefined || host === null || host === "" ? "0.0.0.0" : host);
  conversion.set("port", conversion.take("port"));
  conversion.set("auth-dir", conversion.take("auth-dir"));
  const proxy = conversion.take("proxy-url");
  conversion.set("proxy-url", proxy === "none" ? "direct" : proxy);
  for (const key of SAME_KEYS) {
    const value = conversion.take(key);
    conversion.set(key, typeof value === "number" && value < 0 ? 0 : value);
  }
  if (conversion.take("debug") === true) conversion.set("logging", { level: "debug" });
}

function convertCodexOauthProxy(conversion: Conversion): void {
  const straight = [
    "admin-api-key",
    "codex-base-url",
    "chatgpt-base-url",
    "codex-refresh-token-url",
    "codex-user-agent",
    "codex-beta-features",
  ];
  for (const key of straight) conversion.set(key, conversion.take(key));
  if (isSaying(conversion.takeMapping("database"))) {
    conversion.drop("database.path", "is another program's file; Holdfast makes its own, users get new keys");
  }
  const usage = conversion.takeMapping("usage");
  const days = usage["retention-days"] ?? usage["event-retention-days"];
  const ours = {
    ...(typeof usage["enabled"] === "boolean" ? { enabled: usage["enabled"] } : {}),
    ...(typeof days === "number" && days > 0 ? { "retention-days": days } : {}),
  };
  if (Object.keys(ours).length > 0) conversion.set("usage", ours);
  for (const [key, value] of Object.entries(usage)) {
    const isTaken = key === "enabled" || key === "retention-days" || key === "event-retention-days";
    if (!isTaken && isSaying(value)) conversion.drop(`usage.${key}`, "has no counterpart");
  }
  if (conversion.take("allow-fast-mode") === false) {
    conversion.drop("allow-fast-mode", "has no counterpart: Holdfast passes service tiers on");
  }
}

function convertCliProxyApi(conversion: Conversion, claudeFiles: readonly string[]): void {
  conversion.set("api-keys", listOrNothing(asList(conversion.take("api-keys"))));
  convertRemoteManagement(conversion);
  convertRouting(conversion);
  const streaming = conversion.takeMapping("streaming");
  if (typeof streaming["keepalive-seconds"] === "number" && streaming["keepalive-seconds"] > 0) {
    conversion.set("streaming", { "keepalive-seconds": streaming["keepalive-seconds"] });
  }
  if (isSaying(streaming["bootstrap-retries"])) {
    conversion.drop(
      "streaming.bootstrap-retries",
      "is built in: failures before the first output are retried",
    );
  }
  const usage = conversion.take("usage-statistics-enabled");
  if (typeof usage === "boolean") conversion.set("usage", { enabled: usage });
  const headers = conversion.takeMapping("codex-header-defaults");
  conversion.set("codex-user-agent", headers["user-agent"]);
  conversion.set("codex-beta-features", headers["beta-features"]);
  if (asMapping(conversion.take("tls"))["enable"] === true) {
    conversion.drop("tls", "Holdfast speaks plain HTTP: put a reverse proxy in front");
  }
  for (const key of ["gemini-api-key", "vertex-api-key", "interactions-api-key"]) {
    if (isSaying(conversion.take(key))) conversion.drop(key, "Holdfast does not serve Gemini");
  }
  if (isSaying(conversion.take("quota-exceeded"))) {
    conversion.drop("quota-exceeded", "is built in: a used-up account is passed over until it is back");
  }
  convertProviders(conversion, claudeFiles);
}

function convertRemoteManagement(conversion: Conversion): void {
  const management = conversion.takeMapping("remote-management");
  const key = management["secret-key"];
  if (typeof key === "string" && /^\$2[aby]?\$/.test(key)) {
    conversion.drop("remote-management.secret-key", "is stored as a hash there; choose a new admin-api-key");
  } else conversion.set("admin-api-key", key);
  if (management["allow-remote"] === false && isSaying(key)) {
    conversion.drop("remote-management.allow-remote", "Holdfast's management answers wherever it listens");
  }
}

function convertRouting(conversion: Conversion): void {
  const routing = conversion.takeMapping("routing");
  const ours: Mapping = {};
  const strategy = routing["strategy"];
  if (strategy === "fill-first") ours["strategy"] = "fill-first";
  else if (strategy !== undefined && strategy !== "round-robin") {
    conversion.drop("routing.strategy", `${String(strategy)} has no counterpart; round-robin is used`);
  }
  if (routing["session-affinity"] === false) {
    conversion.drop("routing.session-affinity", "is always on: a conversation stays on its account");
  }
  const minutes = readMinutes(routing["session-affinity-ttl"]);
  if (minutes !== null) ours["session-ttl-minutes"] = minutes;
  if (Object.keys(ours).length > 0) conversion.set("routing", ours);
}
