/**
 * The shape of the configuration file: keys, kinds of values, ranges, defaults.
 *
 * One schema for the parser, the JSON Schema of editors and the tests that keep the documents in step.
 * Rules over several keys are in `config_rules.ts`.
 */
import { z } from "zod";
import { DEFAULT_CONFIG_VALUES as DEFAULTS, DEFAULT_MEMBER_WEIGHT } from "./config_defaults.ts";
import {
  choice,
  flag,
  header,
  ID_PATTERN,
  list,
  LONGEST_TEXT,
  model,
  must,
  providerReference,
  secret,
  section,
  text,
  url,
  whole,
} from "./config_kinds.ts";

const accountSchema = z.strictObject({
  "id": text({ is: "1..64 letters, digits, dots, dashes or underscores", pattern: ID_PATTERN }).describe(
    "Name of the account within its provider; it appears in logs and on the status page",
  ),
  "api-key": secret().optional().describe("The key itself or env:NAME; either this or credentials"),
  "credentials": text({ is: "a path", max: LONGEST_TEXT }).optional().describe(
    "OAuth credentials file of Claude Code, absolute or from ~; kept fresh in place",
  ),
}, { error: must("be a mapping") });

const providerSchema = z.strictObject({
  "id": text({ is: "1..64 letters, digits, dots, dashes or underscores", pattern: ID_PATTERN }).describe(
    "Name of the provider; clients can ask for <id>/<model>. codex is taken",
  ),
  "kind": choice(["anthropic", "zai", "openai"]).describe("The protocol and error language of the upstream"),
  "base-url": text({ is: "https URL (http on loopback)", max: LONGEST_TEXT }).optional().describe(
    "Where the upstream is; anthropic and zai have defaults",
  ),
  "plan": choice(["general", "coding"]).optional().describe(
    "zai only: which of its addresses the keys are for",
  ),
  "models": list(model(), 1_000).default([]).describe("Models the provider is known to list; empty: ask it"),
  "accounts": list(accountSchema, 10_000, 1).describe("At least one account"),
}, { error: must("be a mapping") });

const aliasSchema = z.strictObject({
  "alias": model().describe("The name clients use"),
  "provider": providerReference(),
  "model": model().describe("The provider's name of the model"),
}, { error: must("be a mapping") });

const memberSchema = z.strictObject({
  "provider": providerReference(),
  "model": model().describe("The provider's name of the model"),
  "weight": whole(1, 100, "slots", DEFAULT_MEMBER_WEIGHT).describe("Share of the ring, slots"),
}, { error: must("be a mapping") });

const fallbackSchema = z.strictObject({
  "provider": providerReference(),
  "model": model().describe("The provider's name of the model"),
}, { error: must("be a mapping") });

const poolSchema = z.strictObject({
  "name": model().describe("The model name clients use"),
  "members": list(memberSchema, 256, 1).describe("Provider models that share the traffic; 256 slots in all"),
  "fallback": list(fallbackSchema, 16).default([]).describe("Tried in order when no member can serve"),
}, { error: must("be a mapping") });

const recoverySchema = section({
  "attempts": whole(0, 10, "attempts", DEFAULTS.streaming.recovery.attempts).describe(
    "How often a stream that broke before its end is made again, unseen by the client; 0 = off",
  ),
  "max-buffer-bytes": whole(
    1,
    67_108_864,
    "bytes",
    DEFAULTS.streaming.recovery["max-buffer-bytes"],
  ).describe("Longest answer held back per request, bytes"),
  "max-retry-window-seconds": whole(
    1,
    3_600,
    "seconds",
    DEFAULTS.streaming.recovery["max-retry-window-seconds"],
  ).describe("How long after its start a request may begin another attempt, seconds"),
  "max-concurrent": whole(1, 1_024, "requests", DEFAULTS.streaming.recovery["max-concurrent"]).describe(
    "Requests held back at a time; further ones stream as usual",
  ),
  "initial-backoff-milliseconds": whole(
    0,
    30_000,
    "milliseconds",
    DEFAULTS.streaming.recovery["initial-backoff-milliseconds"],
  ).describe("Longest wait before the first repetition, milliseconds"),
  "max-backoff-milliseconds": whole(
    0,
    30_000,
    "milliseconds",
    DEFAULTS.streaming.recovery["max-backoff-milliseconds"],
  ).describe("Longest wait before any repetition, milliseconds; not below the initial one"),
});

export const CONFIG_SCHEMA = z.strictObject({
  "host": text({ is: "a name or address without port", max: 255 }).default(DEFAULTS.host).describe(
    "Address to listen on; beyond loopback only with client keys",
  ),
  "port": whole(0, 65_535, "", DEFAULTS.port).describe("Port to listen on; 0 = any free one"),
  "auth-dir": text({ is: "a path", max: LONGEST_TEXT }).default(DEFAULTS["auth-dir"]).describe(
    "Folder of the Codex account files, watched; absolute or from ~",
  ),
  "database": section({
    "path": text({ is: "a path", max: LONGEST_TEXT, mayBeEmpty: true }).default(DEFAULTS.database.path)
      .describe("SQLite file; empty = holdfast/holdfast.db in the state folder; never inside auth-dir"),
  }),
  "admin-api-key": secret().default(DEFAULTS["admin-api-key"]).describe(
    "Key of /v0/management and /status, or env:NAME; empty = both are off",
  ),
  "api-keys": list(secret(), 10_000).default(DEFAULTS["api-keys"]).describe(
    "Client keys, or env:NAME, each its own tenant",
  ),
  "proxy-url": secret("http, https or socks5 URL, direct, or empty").default(DEFAULTS["proxy-url"]).describe(
    "Proxy for every upstream call; empty = the environment's, direct = none",
  ),
  "request-retry": whole(0, 100, "rounds", DEFAULTS["request-retry"]).describe(
    "Further rounds over the accounts after the first",
  ),
  "max-retry-credentials": whole(0, 1_000, "accounts", DEFAULTS["max-retry-credentials"]).describe(
    "Accounts tried per round; 0 = every eligible one",
  ),
  "max-retry-interval": whole(0, 3_600, "seconds", DEFAULTS["max-retry-interval"]).describe(
    "Longest wait between rounds, seconds; 0 = no further round",
  ),
  "routing": section({
    "strategy": choice(["round-robin", "fill-first"]).default(DEFAULTS.routing.strategy).describe(
      "Which account a new session gets",
    ),
    "session-ttl-minutes": whole(1, 10_080, "minutes", DEFAULTS.routing["session-ttl-minutes"]).describe(
      "How long an unused session keeps its account, minutes",
    ),
  }),
  "codex-base-url": url(DEFAULTS["codex-base-url"]).describe("Codex upstream"),
  "chatgpt-base-url": url(DEFAULTS["chatgpt-base-url"]).describe("ChatGPT backend: usage and files"),
  "codex-refresh-token-url": url(DEFAULTS["codex-refresh-token-url"]).describe(
    "Where Codex tokens are refreshed",
  ),
  "codex-user-agent": header(DEFAULTS["codex-user-agent"]).describe(
    "User-Agent toward Codex; empty = the client's",
  ),
  "codex-beta-features": header(DEFAULTS["codex-beta-features"]).describe(
    "Beta features header toward Codex; empty = the client's",
  ),
  "quota": section({
    "poll-interval-seconds": whole(0, 86_400, "seconds", DEFAULTS.quota["poll-interval-seconds"]).describe(
      "How often the usage of an account is read, seconds; 0 = never",
    ),
    "max-park-minutes": whole(1, 30, "minutes", DEFAULTS.quota["max-park-minutes"]).describe(
      "Longest time an account rests because of a usage reading, minutes",
    ),
    "recheck": flag(DEFAULTS.quota.recheck).describe(
      "Probe an account whose newer usage reading contradicts its quota deadline",
    ),
  }),
  "streaming": section({
    "keepalive-seconds": whole(0, 3_600, "seconds", DEFAULTS.streaming["keepalive-seconds"]).describe(
      "Comment frames to the client while the upstream is silent, seconds; 0 = off",
    ),
    "bootstrap": section({
      "max-events": whole(1, 1_024, "events", DEFAULTS.streaming.bootstrap["max-events"]).describe(
        "Events without output held until the first with output",
      ),
      "max-bytes": whole(1, 8_388_608, "bytes", DEFAULTS.streaming.bootstrap["max-bytes"]).describe(
        "Bytes held until the first output",
      ),
      "max-hold-seconds": whole(1, 600, "seconds", DEFAULTS.streaming.bootstrap["max-hold-seconds"]).describe(
        "Time held until the first output, seconds",
      ),
    }),
    "recovery": recoverySchema,
  }),
  "timeouts": section({
    "connect-seconds": whole(1, 300, "seconds", DEFAULTS.timeouts["connect-seconds"]).describe(
      "Time to reach the upstream's host, seconds; after as long without an answer's head it is looked for again",
    ),
    "first-byte-seconds": whole(0, 7_200, "seconds", DEFAULTS.timeouts["first-byte-seconds"]).describe(
      "Time to the head of the answer, seconds; 0 = no limit",
    ),
    "idle-seconds": whole(0, 7_200, "seconds", DEFAULTS.timeouts["idle-seconds"]).describe(
      "Silence on an HTTP stream before it counts as dead, seconds; 0 = off",
    ),
    "request-body-seconds": whole(0, 7_200, "seconds", DEFAULTS.timeouts["request-body-seconds"]).describe(
      "Time for a client to send its body, seconds, and one more for each 8 KiB that came; 0 = no limit",
    ),
  }),
  "providers": list(providerSchema, 64).default(DEFAULTS.providers).describe(
    "Upstreams beside codex, which is always there",
  ),
  "models": list(aliasSchema, 1_000).default(DEFAULTS.models).describe("Aliases of provider models"),
  "pools": list(poolSchema, 256).default(DEFAULTS.pools).describe(
    "Model names served by a weighted ring of provider models",
  ),
  "usage": section({
    "enabled": flag(DEFAULTS.usage.enabled).describe("Count requests and tokens per user, key and model"),
    "retention-days": whole(1, 3_650, "days", DEFAULTS.usage["retention-days"]).describe(
      "How long the counts are kept, days",
    ),
  }),
  "logging": section({
    "level": choice(["debug", "info", "warn", "error"]).default(DEFAULTS.logging.level).describe(
      "Least level that is written",
    ),
    "format": choice(["auto", "pretty", "json"]).default(DEFAULTS.logging.format).describe(
      "auto = pretty on a terminal, JSON lines elsewhere",
    ),
  }),
}, { error: must("be a mapping of keys to values") });

/** The file with every default filled in, still in its own words and units. */
export type FileConfig = z.output<typeof CONFIG_SCHEMA>;
