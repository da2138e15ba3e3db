import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { DEFAULT_CONFIG_VALUES, describeConfig, formatConfig } from "../../lib/config.ts";
import { configOf, environmentWith } from "./support.ts";

Deno.test("describeConfig() is the defaults with paths resolved, for an empty file", () => {
  assertEquals(describeConfig(configOf("")), {
    ...DEFAULT_CONFIG_VALUES,
    "auth-dir": "/home/ann/.codex",
    "database": { "path": "/home/ann/.local/state/holdfast/holdfast.db" },
  });
});

Deno.test("describeConfig() hides every secret, and shows where one is set", () => {
  const shown = describeConfig(configOf(
    `
admin-api-key: env:ADMIN
api-keys: [SENT-one, SENT-two]
proxy-url: "https://ann:SENT-pass@proxy.test:3128"
providers:
  - { id: claude, kind: anthropic, accounts: [{ id: a, api-key: SENT-key }, { id: b, credentials: /c.json }] }
`,
    environmentWith({ ADMIN: "SENT-admin" }),
  ));
  assertEquals(shown["admin-api-key"], "(hidden)");
  assertEquals(shown["api-keys"], ["(hidden)", "(hidden)"]);
  assertEquals(shown["proxy-url"], "https://(hidden)@proxy.test:3128");
  assertEquals(shown.providers[0]?.accounts, [
    { "id": "a", "api-key": "(hidden)" },
    { "id": "b", "credentials": "/c.json" },
  ]);
  assertEquals(JSON.stringify(shown).includes("SENT-"), false);
});

const proxies = [
  { url: "", want: "" },
  { url: "direct", want: "direct" },
  { url: "http://proxy.test:3128", want: "http://proxy.test:3128" },
  { url: "socks5://SENT-user@proxy.test", want: "socks5://(hidden)@proxy.test" },
] as const;
for (const c of proxies) {
  Deno.test(`describeConfig() shows the proxy "${c.url}" as "${c.want}"`, () => {
    assertEquals(describeConfig(configOf(`proxy-url: "${c.url}"`))["proxy-url"], c.want);
  });
}

Deno.test("formatConfig() gives text that parses to the same configuration, where no secret is in it", () => {
  const name = fc.constantFrom("a", "b-1", "true", "1", "null", "x: y", "#z", "- q", "账户").map((text) =>
    text.replaceAll(" ", "")
  );
  const seconds = (max: number) => fc.integer({ min: 0, max });
  const file = fc.record({
    "port": seconds(65_535),
    "auth-dir": fc.constantFrom("/srv/a b", "~/x", "/'quoted'"),
    "max-retry-interval": seconds(3_600),
    "routing": fc.record({
      "strategy": fc.constantFrom("round-robin", "fill-first"),
      "session-ttl-minutes": fc.integer({ min: 1, max: 10_080 }),
    }),
    "codex-user-agent": fc.constantFrom("", "agent: 1", "'x'", '"y"', "# no comment", "a".repeat(200)),
    "streaming": fc.record({
      "recovery": fc.record({ "max-backoff-milliseconds": fc.integer({ min: 250, max: 30_000 }) }),
    }),
    "providers": fc.constantFrom(
      [],
      [{ "id": "z", "kind": "zai", "models": ["1"], "accounts": [{ "id": "a", "api-key": "(hidden)" }] }],
      [{ "id": "c", "kind": "anthropic", "accounts": [{ "id": "a", "credentials": "~/c.json" }] }],
    ),
    "models": fc.uniqueArray(name).map((names) =>
      names.map((alias) => ({ alias, provider: "codex", model: "m" }))
    ),
    "usage": fc.record({ "enabled": fc.boolean(), "retention-days": fc.integer({ min: 1, max: 3_650 }) }),
  }, { requiredKeys: [] });
  fc.assert(fc.property(file, (file) => {
    const config = configOf(JSON.stringify(file));
    assertEquals(configOf(formatConfig(config)), config);
  }));
});
