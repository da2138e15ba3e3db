import { assert, assertEquals } from "@std/assert";
import { parseConfig } from "../../lib/config.ts";
import { readYaml, writeYaml } from "../../lib/config_yaml.ts";
import { convertConfig, type ForeignKind, guessKind } from "../../lib/cli/foreign_config.ts";

function read(yaml: string): Record<string, unknown> {
  const reading = readYaml(yaml);
  if (!reading.ok) throw new SyntaxError(reading.problem);
  return reading.value as Record<string, unknown>;
}

function convert(kind: ForeignKind, yaml: string, claudeFiles: readonly string[] = []) {
  const { file, dropped } = convertConfig(kind, read(yaml), claudeFiles);
  return { file, dropped: dropped.map(({ path }) => path) };
}

const guesses: readonly { name: string; yaml: string; want: ForeignKind | null }[] = [
  { name: "its management section", yaml: "remote-management: {}\nport: 1", want: "cliproxyapi" },
  { name: "its database", yaml: "database: { path: x }\nadmin-api-key: y", want: "codex-oauth-proxy" },
  { name: "nothing but what both have", yaml: "port: 8317\nauth-dir: ~/.codex", want: null },
];
for (const c of guesses) {
  Deno.test(`guessKind() is ${c.want} by ${c.name}`, () => {
    assertEquals(guessKind(read(c.yaml)), c.want);
  });
}

const cases: readonly {
  name: string;
  kind: ForeignKind;
  yaml: string;
  claudeFiles?: readonly string[];
  file: Record<string, unknown>;
  dropped?: readonly string[];
}[] = [
  {
    name: "an empty file listened everywhere",
    kind: "codex-oauth-proxy",
    yaml: "{}",
    file: { host: "0.0.0.0" },
  },
  {
    name: "codex-oauth-proxy's own example",
    kind: "codex-oauth-proxy",
    yaml: `
host: "127.0.0.1"
port: 8317
auth-dir: "~/.codex"
debug: true
admin-api-key: SENT-admin
database: { path: "/var/lib/cop.db" }
usage:
  enabled: true
  five-hour-reference-tokens: 100
  event-retention-days: 14
  debug-openai-response: false
allow-fast-mode: false
proxy-url: none
request-retry: 3
codex-base-url: "https://chatgpt.com/backend-api/codex"
codex-user-agent: ""
`,
    file: {
      host: "127.0.0.1",
      port: 8317,
      "auth-dir": "~/.codex",
      "proxy-url": "direct",
      "request-retry": 3,
      logging: { level: "debug" },
      "admin-api-key": "SENT-admin",
      "codex-base-url": "https://chatgpt.com/backend-api/codex",
      usage: { enabled: true, "retention-days": 14 },
    },
    dropped: ["database.path", "usage.five-hour-reference-tokens", "allow-fast-mode"],
  },
  {
    name: "CLIProxyAPI's basics",
    kind: "cliproxyapi",
    yaml: `
host: "127.0.0.1"
port: 9000
auth-dir: "~/.cli-proxy-api"
tls: { enable: true, cert: a, key: b }
remote-management: { allow-remote: false, secret-key: SENT-management }
api-keys: [SENT-client-1, SENT-client-2]
debug: false
request-retry: 2
max-retry-credentials: 4
max-retry-interval: -1
routing: { strategy: fill-first, session-affinity: true, session-affinity-ttl: 1h30m }
streaming: { keepalive-seconds: 15, bootstrap-retries: 1 }
usage-statistics-enabled: true
quota-exceeded: { switch-project: true }
codex-header-defaults: { user-agent: "codex/1", beta-features: multi_agent }
ws-auth: true
plugins: { enabled: false }
`,
    file: {
      host: "127.0.0.1",
      port: 9000,
      "auth-dir": "~/.cli-proxy-api",
      "request-retry": 2,
      "max-retry-credentials": 4,
      "max-retry-interval": 0,
      "api-keys": ["SENT-client-1", "SENT-client-2"],
      "admin-api-key": "SENT-management",
      routing: { strategy: "fill-first", "session-ttl-minutes": 90 },
      streaming: { "keepalive-seconds": 15 },
      usage: { enabled: true },
      "codex-user-agent": "codex/1",
      "codex-beta-features": "multi_agent",
    },
    dropped: [
      "remote-management.allow-remote",
      "streaming.bootstrap-retries",
      "tls",
      "quota-exceeded",
      "ws-auth",
    ],
  },
  {
    name: "a management key that is a hash",
    kind: "cliproxyapi",
    yaml: 'host: "::1"\nremote-management: { allow-remote: true, secret-key: "$2a$10$abc" }\n',
    file: { host: "::1" },
    dropped: ["remote-management.secret-key"],
  },
  {
    name: "keys of every kind, with aliases, pools and logins",
    kind: "cliproxyapi",
    yaml: `
host: "127.0.0.1"
claude-api-key:
  - api-key: SENT-claude-1
  - api-key: SENT-claude-2
    base-url: https://gateway.test/
    weight: 5
    headers: { X-A: b }
codex-api-key:
  - { api-key: SENT-codex, base-url: "https://codex.test/v1", models: [{ name: gpt-5-codex, alias: codex-latest }] }
openai-compatibility:
  - name: Open Router!
    base-url: https://openrouter.ai/api/v1
    prefix: test
    api-key-entries: [{ api-key: SENT-or-1 }, { api-key: SENT-or-2, proxy-url: "socks5://p:1" }]
    models:
      - { name: "moonshotai/kimi-k2:free", alias: kimi-k2 }
      - { name: deepseek-v3.1, alias: big }
      - { name: glm-5, alias: big }
  - { name: z, base-url: "https://api.z.ai/api/coding/paas/v4", api-key-entries: [{ api-key: SENT-zai }] }
  - { name: local, base-url: "http://127.0.0.1:11434/v1" }
  - { name: gone, disabled: true, base-url: "https://gone.test" }
gemini-api-key: [{ api-key: SENT-gemini }]
oauth-model-alias:
  codex: [{ name: gpt-5, alias: g5 }]
  claude: [{ name: claude-sonnet-4-5, alias: cs }]
  kimi: [{ name: k, alias: kk }]
`,
    claudeFiles: ["/home/me/.cli-proxy-api/claude-me.json"],
    file: {
      host: "127.0.0.1",
      providers: [
        {
          id: "claude",
          kind: "anthropic",
          "base-url": "https://api.anthropic.com",
          models: [],
          accounts: [
            { id: "key", "api-key": "SENT-claude-1" },
            { id: "login", credentials: "/home/me/.cli-proxy-api/claude-me.json" },
          ],
        },
        {
          id: "claude-2",
          kind: "anthropic",
          "base-url": "https://gateway.test",
          models: [],
          accounts: [{ id: "key", "api-key": "SENT-claude-2" }],
        },
        {
          id: "openai",
          kind: "openai",
          "base-url": "https://codex.test/v1",
          models: ["gpt-5-codex"],
          accounts: [{ id: "key", "api-key": "SENT-codex" }],
        },
        {
          id: "open-router",
          kind: "openai",
          "base-url": "https://openrouter.ai/api/v1",
          models: ["moonshotai/kimi-k2:free", "deepseek-v3.1", "glm-5"],
          accounts: [{ id: "key", "api-key": "SENT-or-1" }, { id: "key-2", "api-key": "SENT-or-2" }],
        },
        {
          id: "z",
          kind: "zai",
          "base-url": "https://api.z.ai",
          plan: "coding",
          models: [],
          accounts: [{ id: "key", "api-key": "SENT-zai" }],
        },
        {
          id: "local",
          kind: "openai",
          "base-url": "http://127.0.0.1:11434/v1",
          models: [],
          accounts: [{ id: "key", "api-key": "none" }],
        },
      ],
      models: [
        { alias: "codex-latest", provider: "openai", model: "gpt-5-codex" },
        { alias: "kimi-k2", provider: "open-router", model: "moonshotai/kimi-k2:free" },
        { alias: "g5", provider: "codex", model: "gpt-5" },
        { alias: "cs", provider: "claude", model: "claude-sonnet-4-5" },
      ],
      pools: [{
        name: "big",
        members: [
          { provider: "open-router", model: "deepseek-v3.1", weight: 1 },
          { provider: "open-router", model: "glm-5", weight: 1 },
        ],
      }],
    },
    dropped: [
      "gemini-api-key",
      "claude-api-key[1].headers",
      "claude-api-key[1].weight",
      "codex-api-key[0]",
      "openai-compatibility[0].api-key-entries[1].proxy-url",
      "openai-compatibility[0].prefix",
      "openai-compatibility[3]",
      "oauth-model-alias.kimi",
    ],
  },
];
for (const c of cases) {
  Deno.test(`convertConfig() keeps what has a counterpart and names what has none: ${c.name}`, () => {
    const converted = convert(c.kind, c.yaml, c.claudeFiles);
    assertEquals(converted.file, c.file);
    assertEquals([...converted.dropped].sort(), [...c.dropped ?? []].sort());
    const parsed = parseConfig(writeYaml(converted.file), { homeDir: "/home/me", get: () => undefined });
    assert(parsed.ok, JSON.stringify(parsed));
  });
}

Deno.test("convertConfig() never throws, whatever the file holds", () => {
  const oddities = [
    "claude-api-key: 7",
    "openai-compatibility: [1, {models: {}}]",
    "routing: []",
    "api-keys: {a: b}",
  ];
  for (const yaml of oddities) convert("cliproxyapi", yaml);
});
