import { assertEquals } from "@std/assert";
import { formatMistake, listensBeyondLoopback, parseConfig } from "../../lib/config.ts";
import type { Config } from "../../lib/config_types.ts";
import { configOf, environmentWith, mistakesOf, PLAIN_ENVIRONMENT } from "./support.ts";

const DEFAULT_CONFIG: Config = {
  host: "127.0.0.1",
  port: 8317,
  authDir: "/home/ann/.codex",
  databasePath: "/home/ann/.local/state/holdfast/holdfast.db",
  adminApiKey: "",
  apiKeys: [],
  proxyUrl: "",
  retry: { requestRetry: 3, maxRetryCredentials: 0, maxRetryIntervalMs: 30_000 },
  routing: { strategy: "round-robin", sessionTtlMs: 3_600_000 },
  codexBaseUrl: "https://chatgpt.com/backend-api/codex",
  chatgptBaseUrl: "https://chatgpt.com/backend-api",
  codexRefreshTokenUrl: "https://auth.openai.com/oauth/token",
  codexUserAgent: "",
  codexBetaFeatures: "",
  quota: { pollIntervalMs: 300_000, maxParkMs: 1_800_000, recheck: false },
  streaming: {
    keepaliveMs: 0,
    bootstrap: { maxEvents: 16, maxBytes: 65_536, maxHoldMs: 10_000 },
    recovery: {
      attempts: 0,
      maxBufferBytes: 8_388_608,
      maxRetryWindowMs: 20_000,
      maxConcurrent: 16,
      initialBackoffMs: 250,
      maxBackoffMs: 2_000,
    },
  },
  timeouts: { connectMs: 15_000, firstByteMs: 600_000, idleMs: 300_000, requestBodyMs: 60_000 },
  providers: [],
  models: [],
  pools: [],
  usage: { enabled: true, retentionMs: 2_592_000_000 },
  logging: { level: "info", format: "auto" },
};

const sayNothing = [
  { name: "an empty text", text: "" },
  { name: "white space", text: " \n\n" },
  { name: "a comment", text: "# nothing here\n" },
  { name: "null", text: "null" },
  { name: "an empty mapping", text: "{}" },
  { name: "a byte order mark", text: "\ufeff" },
  { name: "keys without values", text: "port:\npools:\n# - name: frontier\nstreaming:\n  recovery:\n" },
] as const;
for (const c of sayNothing) {
  Deno.test(`parseConfig() gives every default for ${c.name}`, () => {
    assertEquals(configOf(c.text), DEFAULT_CONFIG);
  });
}

Deno.test("parseConfig() reads every key, converts units, resolves keys and paths", () => {
  const environment = environmentWith({ ZAI_API_KEY: "SENT-zai-key", ADMIN: "SENT-admin" });
  const text = `
host: "::1"
port: 0
auth-dir: /srv/./accounts/../auth/
database: { path: "~/data/holdfast.db" }
admin-api-key: env:ADMIN
api-keys: [SENT-client-one, SENT-client-two]
proxy-url: "socks5://ann:SENT-pass@proxy.test:1080"
request-retry: 0
max-retry-credentials: 5
max-retry-interval: 3600
routing: { strategy: fill-first, session-ttl-minutes: 1 }
codex-base-url: "http://127.0.0.1:9000/codex/"
chatgpt-base-url: "https://Chat.Test/api"
codex-refresh-token-url: "http://localhost:9000/token"
codex-user-agent: "my agent/1.0"
codex-beta-features: "one,two"
quota: { poll-interval-seconds: 0, max-park-minutes: 1, recheck: true }
streaming:
  keepalive-seconds: 15
  bootstrap: { max-events: 1, max-bytes: 1, max-hold-seconds: 1 }
  recovery: { attempts: 2, max-buffer-bytes: 67108864, max-retry-window-seconds: 3600, max-concurrent: 1024,
              initial-backoff-milliseconds: 30000, max-backoff-milliseconds: 30000 }
timeouts: { connect-seconds: 1, first-byte-seconds: 0, idle-seconds: 0, request-body-seconds: 0 }
providers:
  - { id: claude, kind: anthropic, accounts: [{ id: sub, credentials: "~/.claude/.credentials.json" }] }
  - { id: zai, kind: zai, plan: coding, accounts: [{ id: main, api-key: "env:ZAI_API_KEY" }] }
  - { id: glm, kind: zai, base-url: "https://open.bigmodel.cn", accounts: [{ id: main, api-key: SENT-glm }] }
  - { id: lab, kind: openai, base-url: "http://[::1]:8000/v1", models: [qwen3, org/m],
      accounts: [{ id: k, api-key: none }] }
models: [{ alias: fast, provider: codex, model: gpt-5.4-mini }]
pools:
  - name: frontier
    members: [{ provider: codex, model: gpt-5.5, weight: 3 }, { provider: zai, model: glm-5.2 }]
    fallback: [{ provider: lab, model: qwen3 }]
usage: { enabled: false, retention-days: 1 }
logging: { level: debug, format: json }
`;
  const expected: Config = {
    host: "::1",
    port: 0,
    authDir: "/srv/auth",
    databasePath: "/home/ann/data/holdfast.db",
    adminApiKey: "SENT-admin",
    apiKeys: ["SENT-client-one", "SENT-client-two"],
    proxyUrl: "socks5://ann:SENT-pass@proxy.test:1080",
    retry: { requestRetry: 0, maxRetryCredentials: 5, maxRetryIntervalMs: 3_600_000 },
    routing: { strategy: "fill-first", sessionTtlMs: 60_000 },
    codexBaseUrl: "http://127.0.0.1:9000/codex",
    chatgptBaseUrl: "https://chat.test/api",
    codexRefreshTokenUrl: "http://localhost:9000/token",
    codexUserAgent: "my agent/1.0",
    codexBetaFeatures: "one,two",
    quota: { pollIntervalMs: 0, maxParkMs: 60_000, recheck: true },
    streaming: {
      keepaliveMs: 15_000,
      bootstrap: { maxEvents: 1, maxBytes: 1, maxHoldMs: 1_000 },
      recovery: {
        attempts: 2,
        maxBufferBytes: 67_108_864,
        maxRetryWindowMs: 3_600_000,
        maxConcurrent: 1_024,
        initialBackoffMs: 30_000,
        maxBackoffMs: 30_000,
      },
    },
    timeouts: { connectMs: 1_000, firstByteMs: 0, idleMs: 0, requestBodyMs: 0 },
    providers: [
      {
        id: "claude",
        kind: "anthropic",
        baseUrl: "https://api.anthropic.com",
        plan: null,
        models: [],
        accounts: [{ id: "sub", apiKey: null, credentialsPath: "/home/ann/.claude/.credentials.json" }],
      },
      {
        id: "zai",
        kind: "zai",
        baseUrl: "https://api.z.ai",
        plan: "coding",
        models: [],
        accounts: [{ id: "main", apiKey: "SENT-zai-key", credentialsPath: null }],
      },
      {
        id: "glm",
        kind: "zai",
        baseUrl: "https://open.bigmodel.cn",
        plan: "general",
        models: [],
        accounts: [{ id: "main", apiKey: "SENT-glm", credentialsPath: null }],
      },
      {
        id: "lab",
        kind: "openai",
        baseUrl: "http://[::1]:8000/v1",
        plan: null,
        models: ["qwen3", "org/m"],
        accounts: [{ id: "k", apiKey: "none", credentialsPath: null }],
      },
    ],
    models: [{ alias: "fast", provider: "codex", model: "gpt-5.4-mini" }],
    pools: [{
      name: "frontier",
      members: [
        { provider: "codex", model: "gpt-5.5", weight: 3 },
        { provider: "zai", model: "glm-5.2", weight: 1 },
      ],
      fallback: [{ provider: "lab", model: "qwen3" }],
    }],
    usage: { enabled: false, retentionMs: 86_400_000 },
    logging: { level: "debug", format: "json" },
  };
  assertEquals(configOf(text, environment), expected);
});

Deno.test("formatMistake() says the action, the key, the rule and the value", () => {
  const parsed = parseConfig("max-retry-interval: -1", PLAIN_ENVIRONMENT);
  assertEquals(parsed.ok ? [] : parsed.mistakes.map(formatMistake), [
    'Cannot parse config: "max-retry-interval" must be 0..3600 seconds, got -1',
  ]);
  assertEquals(parsed.ok ? [] : parsed.mistakes, [
    { path: "max-retry-interval", problem: "must be 0..3600 seconds", got: "-1", suggestion: null },
  ]);
});

Deno.test("parseConfig() reports everything that is wrong at once: shape, names, references, variables", () => {
  assertEquals(
    mistakesOf(`
port: 65536
hots: "127.0.0.1"
routing: { strategy: roundrobin }
host: " "
providers:
  - { id: lab, kind: openai, accounts: [{ id: k, api-key: "env:LAB_KEY" }] }
  - { id: lab, kind: zai, accounts: [{ id: k }] }
pools: [{ name: p, members: [{ provider: labb, model: m }] }]
port: 1
`),
    [
      '"port" must be 0..65535, got 65536',
      '"routing.strategy" must be one of round-robin, fill-first, got "roundrobin"; did you mean "round-robin"?',
      '"hots" is not a known key; did you mean "host"?',
      '"port" is given more than once (line 10)',
      '"host" must be a name or address without port, got " "',
      '"providers[0].base-url" is required for kind openai',
      '"providers[0].accounts[0].api-key" names the environment variable LAB_KEY, which is not set, got (hidden)',
      '"providers[1].id" must not repeat "providers[0].id", got "lab"',
      '"providers[1].accounts[0]" must have exactly one of api-key and credentials, has neither',
      '"pools[0].members[0].provider" must be the id of a provider, or codex, got "labb"; did you mean "lab"?',
    ],
  );
});

const numbers: readonly (readonly [key: string, min: number, max: number, rule: string])[] = [
  ["port", 0, 65_535, "must be 0..65535"],
  ["request-retry", 0, 100, "must be 0..100 rounds"],
  ["max-retry-credentials", 0, 1_000, "must be 0..1000 accounts"],
  ["max-retry-interval", 0, 3_600, "must be 0..3600 seconds"],
  ["routing.session-ttl-minutes", 1, 10_080, "must be 1..10080 minutes"],
  ["quota.poll-interval-seconds", 0, 86_400, "must be 0..86400 seconds"],
  ["quota.max-park-minutes", 1, 30, "must be 1..30 minutes"],
  ["streaming.keepalive-seconds", 0, 3_600, "must be 0..3600 seconds"],
  ["streaming.bootstrap.max-events", 1, 1_024, "must be 1..1024 events"],
  ["streaming.bootstrap.max-bytes", 1, 8_388_608, "must be 1..8388608 bytes"],
  ["streaming.bootstrap.max-hold-seconds", 1, 600, "must be 1..600 seconds"],
  ["streaming.recovery.attempts", 0, 10, "must be 0..10 attempts"],
  ["streaming.recovery.max-buffer-bytes", 1, 67_108_864, "must be 1..67108864 bytes"],
  ["streaming.recovery.max-retry-window-seconds", 1, 3_600, "must be 1..3600 seconds"],
  ["streaming.recovery.max-concurrent", 1, 1_024, "must be 1..1024 requests"],
  ["streaming.recovery.max-backoff-milliseconds", 0, 30_000, "must be 0..30000 milliseconds"],
  ["timeouts.connect-seconds", 1, 300, "must be 1..300 seconds"],
  ["timeouts.first-byte-seconds", 0, 7_200, "must be 0..7200 seconds"],
  ["timeouts.idle-seconds", 0, 7_200, "must be 0..7200 seconds"],
  ["timeouts.request-body-seconds", 0, 7_200, "must be 0..7200 seconds"],
  ["usage.retention-days", 1, 3_650, "must be 1..3650 days"],
];
for (const [key, min, max, rule] of numbers) {
  const whole = rule.replace("be", "be a whole number");
  const refused = [
    { value: `${min - 1}`, want: `${rule}, got ${min - 1}` },
    { value: `${max + 1}`, want: `${rule}, got ${max + 1}` },
    { value: "1e300", want: `${rule}, got 1e+300` },
    { value: "9007199254740993", want: `${rule}, got 9007199254740992` },
    { value: "1.5", want: `${whole}, got 1.5` },
    { value: ".nan", want: `${rule}, got NaN` },
    { value: ".inf", want: `${rule}, got Infinity` },
    { value: "-.inf", want: `${rule}, got -Infinity` },
    { value: `"${min}"`, want: `${rule} (without quotes), got "${min}"` },
    { value: "true", want: `${rule}, got true` },
    { value: "[1]", want: `${rule}, got a list of 1` },
    { value: "{ a: 1 }", want: `${rule}, got a mapping` },
  ];
  Deno.test(`parseConfig() takes ${key} from ${min} to ${max} and nothing else`, () => {
    // The initial wait must not be above the longest one, whose range is what this row is about.
    const beside = key === "streaming.recovery.max-backoff-milliseconds"
      ? "initial-backoff-milliseconds: 0, "
      : "";
    for (const value of [min, max]) assertEquals(mistakesOf(nest(key, `${value}`, beside)), []);
    for (const { value, want } of refused) {
      assertEquals(mistakesOf(nest(key, value, beside)), [`"${key}" ${want}`]);
    }
  });
}

const words = [
  { key: "routing.strategy", good: ["round-robin", "fill-first"], bad: "random", meant: "" },
  { key: "logging.level", good: ["debug", "info", "warn", "error"], bad: "warning", meant: "warn" },
  { key: "logging.level", good: [], bad: "INFO", meant: "info" },
  { key: "logging.format", good: ["auto", "pretty", "json"], bad: "jsno", meant: "json" },
] as const;
for (const c of words) {
  Deno.test(`parseConfig() refuses ${c.bad} for ${c.key}, with what is allowed`, () => {
    for (const word of c.good) assertEquals(mistakesOf(nest(c.key, word)), []);
    const [mistake] = mistakesOf(nest(c.key, c.bad));
    const hint = c.meant === "" ? "" : `; did you mean "${c.meant}"?`;
    assertEquals(mistake?.startsWith(`"${c.key}" must be one of `), true);
    assertEquals(mistake?.endsWith(`, got "${c.bad}"${hint}`), true);
  });
}

const shapes = [
  { text: "just words", want: ["must be a mapping of keys to values, got text"] },
  { text: "- a", want: ["must be a mapping of keys to values, got a list of 1"] },
  { text: "7", want: ["must be a mapping of keys to values, got a number"] },
  { text: "host: 5", want: ['"host" must be text (put it in quotes), got 5'] },
  { text: "host: 1.5", want: ['"host" must be text (put it in quotes), got 1.5'] },
  { text: 'host: ""', want: ['"host" must be a name or address without port, got ""'] },
  { text: "host: true", want: ['"host" must be text (put it in quotes), got true'] },
  { text: "quota: { recheck: yes }", want: ['"quota.recheck" must be true or false, got "yes"'] },
  { text: "quota: 5", want: ['"quota" must be a mapping, got a number'] },
  { text: "quota: [recheck]", want: ['"quota" must be a mapping, got a list of 1'] },
  { text: "providers: {}", want: ['"providers" must be a list, got a mapping'] },
  { text: "providers: [lab]", want: ['"providers[0]" must be a mapping, got text'] },
  { text: "providers:\n  -", want: ['"providers[0]" must be a mapping, got nothing'] },
  { text: "api-keys: [12345]", want: ['"api-keys[0]" must be text (put it in quotes), got (hidden)'] },
  { text: "api-keys:\n  -", want: ['"api-keys[0]" must be text, got nothing'] },
  {
    text: "models: [{ alias: fast }]",
    want: ['"models[0].provider" is required', '"models[0].model" is required'],
  },
  {
    text: "pools: [{ name: p, members: [] }]",
    want: ['"pools[0].members" must be a list of at least 1, got an empty list'],
  },
  {
    text: 'codex-user-agent: "a\\nb"',
    want: ['"codex-user-agent" must be visible ASCII text on one line, got "a\\nb"'],
  },
  {
    text: 'codex-beta-features: "ü"',
    want: ['"codex-beta-features" must be visible ASCII text on one line, got "ü"'],
  },
  {
    text: "models: [{ alias: a b, provider: codex, model: m }]",
    want: ['"models[0].alias" must be 1..128 bytes without spaces, got "a b"'],
  },
] as const;
for (const c of shapes) {
  Deno.test(`parseConfig() refuses ${c.text.replaceAll("\n", " ")}`, () => {
    assertEquals(mistakesOf(c.text), [...c.want]);
  });
}

const modelNames = [
  { name: "128 bytes", model: "m".repeat(128), ok: true },
  { name: "129 bytes", model: "m".repeat(129), ok: false },
  { name: "128 bytes of two-byte letters", model: "é".repeat(64), ok: true },
  { name: "130 bytes of two-byte letters", model: "é".repeat(65), ok: false },
] as const;
for (const c of modelNames) {
  Deno.test(`parseConfig() ${c.ok ? "takes" : "refuses"} a model name of ${c.name}`, () => {
    const text = `models: [{ alias: a, provider: codex, model: "${c.model}" }]`;
    assertEquals(mistakesOf(text).length, c.ok ? 0 : 1);
  });
}

const unknownKeys = [
  { text: "prot: 1", want: '"prot" is not a known key; did you mean "port"?' },
  {
    text: "maxRetryInterval: 1",
    want: '"maxRetryInterval" is not a known key; did you mean "max-retry-interval"?',
  },
  { text: "auth_dir: /a", want: '"auth_dir" is not a known key; did you mean "auth-dir"?' },
  {
    text: "max-retry-interval-seconds: 1",
    want: '"max-retry-interval-seconds" is not a known key; did you mean "max-retry-interval"?',
  },
  { text: "wholly-different: 1", want: '"wholly-different" is not a known key' },
  { text: "strategy: x", want: '"strategy" is not a known key; did you mean "routing.strategy"?' },
  { text: "recovery: {}", want: '"recovery" is not a known key; did you mean "streaming.recovery"?' },
  { text: "quota: { rechek: true }", want: '"quota.rechek" is not a known key; did you mean "recheck"?' },
  {
    text: "streaming: { bootstrap: { maxevents: 1 } }",
    want: '"streaming.bootstrap.maxevents" is not a known key; did you mean "max-events"?',
  },
  {
    text: "providers: [{ id: lab, kind: zai, url: x, accounts: [{ id: a, api-key: k }] }]",
    want: '"providers[0].url" is not a known key',
  },
  {
    text: "providers: [{ id: lab, kind: zai, accounts: [{ id: a, api-key: k, apikey: SENT-x }] }]",
    want: '"providers[0].accounts[0].apikey" is not a known key; did you mean "api-key"?',
  },
  {
    text: "pools: [{ name: p, members: [{ provider: codex, model: m, wieght: 2 }] }]",
    want: '"pools[0].members[0].wieght" is not a known key; did you mean "weight"?',
  },
  {
    text: "__proto__: { port: 1 }",
    want: "has a key that is not known and may be a secret, so it is not shown",
  },
  { text: "constructor: 1", want: '"constructor" is not a known key' },
  { text: "<<: { port: 1 }", want: "has a key that is not known and may be a secret, so it is not shown" },
] as const;
for (const c of unknownKeys) {
  Deno.test(`parseConfig() refuses the unknown key in ${c.text}`, () => {
    assertEquals(mistakesOf(c.text), [c.want]);
  });
}

Deno.test("parseConfig() lists 200 mistakes and counts the rest", () => {
  const text = `api-keys: [${Array(1_000).fill("1").join(",")}]`;
  const mistakes = mistakesOf(text);
  assertEquals(mistakes.length, 201);
  assertEquals(mistakes.at(-1), "800 further mistakes are not listed");
});

Deno.test("parseConfig() describes 200 unknown keys and counts the rest", () => {
  const mistakes = mistakesOf(Array.from({ length: 1_000 }, (_, at) => `key-${at}: 1`).join("\n"));
  assertEquals(mistakes.length, 201);
  assertEquals(mistakes.at(0), '"key-0" is not a known key');
  assertEquals(mistakes.at(-1), "800 further mistakes are not listed");
});

Deno.test("parseConfig() tells mistakes of a mapping shared by an alias once for each place", () => {
  assertEquals(
    mistakesOf("models: [&m { alias: a, provider: codex, model: m, extra: 1 }, *m]"),
    [
      '"models[0].extra" is not a known key',
      '"models[1].extra" is not a known key',
      '"models[1].alias" must not repeat "models[0].alias", got "a"',
    ],
  );
});

Deno.test("parseConfig() ends on values that contain themselves", () => {
  assertEquals(mistakesOf("providers: &a [*a]"), ['"providers[0]" must be a mapping, got a list of 1']);
});

const hosts = [
  { host: "127.0.0.1", beyond: false },
  { host: "127.1", beyond: false },
  { host: "localhost", beyond: false },
  { host: "::1", beyond: false },
  { host: "[::1]", beyond: false },
  { host: "::ffff:127.0.0.1", beyond: false },
  { host: "0.0.0.0", beyond: true },
  { host: "0", beyond: true },
  { host: "::", beyond: true },
  { host: "192.168.1.4", beyond: true },
  { host: "128.0.0.1", beyond: true },
  { host: "server.test", beyond: true },
  { host: "localhost.test", beyond: true },
] as const;
for (const c of hosts) {
  Deno.test(`listensBeyondLoopback() is ${c.beyond} for ${c.host}`, () => {
    assertEquals(listensBeyondLoopback(configOf(`host: "${c.host}"`)), c.beyond);
  });
}

/** `a.b` and a value as YAML: `a: { b: value }`. */
function nest(key: string, value: string, beside = ""): string {
  const parts = key.split(".");
  return parts.reduceRight(
    (inner, part, at) =>
      at === 0 ? `${part}: ${inner}` : `{ ${at === parts.length - 1 ? beside : ""}${part}: ${inner} }`,
    value,
  );
}
