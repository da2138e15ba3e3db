import { assertEquals } from "@std/assert";
import { DEFAULT_CONFIG_VALUES, diffConfig } from "../../lib/config.ts";
import { configOf, environmentWith } from "./support.ts";

const PROVIDERS = "providers: [{ id: z, kind: zai, accounts: [{ id: a, api-key: SENT-a }] }]";

const changes: readonly { readonly key: string; readonly text: string; readonly restart: boolean }[] = [
  { key: "host", text: "host: localhost", restart: true },
  { key: "port", text: "port: 1", restart: true },
  { key: "auth-dir", text: "auth-dir: /a", restart: true },
  { key: "database", text: "database: { path: /d }", restart: true },
  { key: "logging.format", text: "logging: { format: json }", restart: true },
  { key: "logging.level", text: "logging: { level: debug }", restart: false },
  { key: "admin-api-key", text: "admin-api-key: SENT-admin", restart: false },
  { key: "api-keys", text: "api-keys: [SENT-a]", restart: false },
  { key: "proxy-url", text: "proxy-url: direct", restart: false },
  { key: "request-retry", text: "request-retry: 1", restart: false },
  { key: "max-retry-credentials", text: "max-retry-credentials: 1", restart: false },
  { key: "max-retry-interval", text: "max-retry-interval: 1", restart: false },
  { key: "routing", text: "routing: { strategy: fill-first }", restart: false },
  { key: "codex-base-url", text: "codex-base-url: https://a.test", restart: false },
  { key: "chatgpt-base-url", text: "chatgpt-base-url: https://a.test", restart: false },
  { key: "codex-refresh-token-url", text: "codex-refresh-token-url: https://a.test", restart: false },
  { key: "codex-user-agent", text: "codex-user-agent: a", restart: false },
  { key: "codex-beta-features", text: "codex-beta-features: a", restart: false },
  { key: "quota", text: "quota: { recheck: true }", restart: false },
  { key: "streaming", text: "streaming: { recovery: { attempts: 1 } }", restart: false },
  { key: "timeouts", text: "timeouts: { idle-seconds: 1 }", restart: false },
  { key: "providers", text: PROVIDERS, restart: false },
  { key: "models", text: "models: [{ alias: a, provider: codex, model: m }]", restart: false },
  { key: "pools", text: "pools: [{ name: a, members: [{ provider: codex, model: m }] }]", restart: false },
  { key: "usage", text: "usage: { enabled: false }", restart: false },
];
for (const c of changes) {
  Deno.test(`diffConfig() says that ${c.key} ${c.restart ? "needs a restart" : "can be reloaded"}`, () => {
    const want = { reloadable: c.restart ? [] : [c.key], needsRestart: c.restart ? [c.key] : [] };
    assertEquals(diffConfig(configOf(""), configOf(c.text)), want);
    assertEquals(diffConfig(configOf(c.text), configOf("")), want);
    assertEquals(diffConfig(configOf(c.text), configOf(c.text)), { reloadable: [], needsRestart: [] });
  });
}

Deno.test("diffConfig() knows every key of the file", () => {
  const known = new Set(changes.map(({ key }) => key.split(".")[0]));
  assertEquals(Object.keys(DEFAULT_CONFIG_VALUES).filter((key) => !known.has(key)), []);
});

Deno.test("diffConfig() lists several changes in the order of the file", () => {
  assertEquals(
    diffConfig(
      configOf(""),
      configOf("usage: { enabled: false }\nport: 1\nquota: { recheck: true }\nhost: a"),
    ),
    {
      reloadable: ["quota", "usage"],
      needsRestart: ["host", "port"],
    },
  );
});

Deno.test("diffConfig() sees a variable that changed, and no difference in another way to write the same", () => {
  const text = PROVIDERS.replace("SENT-a", '"env:KEY"');
  const before = configOf(text, environmentWith({ KEY: "SENT-a" }));
  assertEquals(diffConfig(before, configOf(text, environmentWith({ KEY: "SENT-b" }))).reloadable, [
    "providers",
  ]);
  const other =
    "providers:\n  - accounts:\n      - api-key: SENT-a\n        id: a\n    kind: zai\n    id: z\n    plan: general\n";
  assertEquals(diffConfig(before, configOf(other)), { reloadable: [], needsRestart: [] });
});
