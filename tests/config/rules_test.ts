import { assertEquals } from "@std/assert";
import { environmentWith, mistakesOf, warningsOf } from "./support.ts";

const ENVIRONMENT = environmentWith({ LAB_KEY: "SENT-lab", BLANK: " " });

/** A provider that is right, with what the row is about in place of it. */
function provider(change: Readonly<Record<string, string | undefined>> = {}): string {
  const fields = {
    id: "lab",
    kind: "openai",
    "base-url": "http://127.0.0.1:8000/v1",
    accounts: "[{ id: k, api-key: SENT-k }]",
    ...change,
  };
  const parts = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `{ ${parts.map(([key, value]) => `${key}: ${value}`).join(", ")} }`;
}

function providers(...entries: string[]): string {
  return `providers: [${entries.join(", ")}]\n`;
}

const LAB = providers(provider({ models: "[qwen3]" }));

const refused: readonly { readonly name: string; readonly text: string; readonly want: readonly string[] }[] =
  [
    {
      name: "an initial wait above the longest one",
      text: "streaming: { recovery: { initial-backoff-milliseconds: 501, max-backoff-milliseconds: 500 } }",
      want: [
        '"streaming.recovery.initial-backoff-milliseconds" must not be above ' +
        '"streaming.recovery.max-backoff-milliseconds" (500), got 501',
      ],
    },
    {
      name: "an initial wait above the default of the longest one",
      text: "streaming: { recovery: { initial-backoff-milliseconds: 2001 } }",
      want: [
        '"streaming.recovery.initial-backoff-milliseconds" must not be above ' +
        '"streaming.recovery.max-backoff-milliseconds" (2000), got 2001',
      ],
    },
    {
      name: "a longest wait below the default of the initial one",
      text: "streaming: { recovery: { max-backoff-milliseconds: 249 } }",
      want: [
        '"streaming.recovery.initial-backoff-milliseconds" must not be above ' +
        '"streaming.recovery.max-backoff-milliseconds" (249), got 250',
      ],
    },
    {
      name: "a wrong longest wait, without comparing the initial one with its default",
      text: "streaming: { recovery: { initial-backoff-milliseconds: 2001, max-backoff-milliseconds: x } }",
      want: ['"streaming.recovery.max-backoff-milliseconds" must be 0..30000 milliseconds, got "x"'],
    },
    {
      name: "a database inside auth-dir",
      text: 'auth-dir: "~/accounts"\ndatabase: { path: "/home/ann/accounts/../accounts/x/h.db" }',
      want: ['"database.path" must not be inside "auth-dir", got "/home/ann/accounts/x/h.db"'],
    },
    {
      name: "the default database where auth-dir is the home folder",
      text: 'auth-dir: "~"',
      want: [
        '"database.path" must not be inside "auth-dir", got "/home/ann/.local/state/holdfast/holdfast.db"',
      ],
    },
    {
      name: "a database that is auth-dir",
      text: 'auth-dir: "/srv/a"\ndatabase: { path: "/srv/a/" }',
      want: ['"database.path" must not be inside "auth-dir", got "/srv/a"'],
    },
    {
      name: "a relative auth-dir",
      text: "auth-dir: accounts",
      want: ['"auth-dir" must be an absolute path or start with ~/, got "accounts"'],
    },
    {
      name: "empty and blank client keys",
      text: 'api-keys: ["", "  ", env:BLANK, env:NONE]',
      want: [
        '"api-keys[0]" must not be empty or blank, got (hidden)',
        '"api-keys[1]" must not be empty or blank, got (hidden)',
        '"api-keys[2]" must not be empty or blank (from BLANK), got (hidden)',
        '"api-keys[3]" names the environment variable NONE, which is not set, got (hidden)',
      ],
    },
    {
      name: "a blank admin key",
      text: 'admin-api-key: " "',
      want: ['"admin-api-key" must not be empty or blank, got (hidden)'],
    },
    {
      name: "one client key twice, also by way of the environment",
      text: "api-keys: [SENT-lab, SENT-other, env:LAB_KEY]",
      want: ['"api-keys[2]" must not be the same key as "api-keys[0]"'],
    },
    {
      name: "an admin key that is a client's",
      text: "api-keys: [SENT-one]\nadmin-api-key: SENT-one",
      want: ['"admin-api-key" must not be the same key as "api-keys[0]"'],
    },
    {
      name: "a provider called codex",
      text: providers(provider({ id: "codex" }), provider({ id: "CODEX-2" }), provider({ id: "Codex" })),
      want: [
        '"providers[0].id" is taken by the provider of auth-dir, got "codex"',
        '"providers[2].id" is taken by the provider of auth-dir, got "Codex"',
        '"providers[2].id" must not repeat "providers[0].id", got "Codex"',
      ],
    },
    {
      name: "provider ids that differ in case only",
      text: providers(provider({ id: "lab" }), provider({ id: "Lab" })),
      want: ['"providers[1].id" must not repeat "providers[0].id", got "Lab"'],
    },
    {
      name: "an id with a slash or an e-mail address",
      text: providers(provider({ id: "a/b", accounts: "[{ id: ann@test.test, api-key: k }]" })),
      want: [
        '"providers[0].id" must be 1..64 letters, digits, dots, dashes or underscores, got "a/b"',
        '"providers[0].accounts[0].id" must be 1..64 letters, digits, dots, dashes or underscores, got (hidden)',
      ],
    },
    {
      name: "one account id twice in a provider",
      text: providers(provider({ accounts: "[{ id: a, api-key: SENT-1 }, { id: a, api-key: SENT-2 }]" })),
      want: ['"providers[0].accounts[1].id" must not repeat "providers[0].accounts[0].id", got "a"'],
    },
    {
      name: "an account without and one with both credentials",
      text: providers(
        provider({ kind: "anthropic", accounts: "[{ id: a }, { id: b, api-key: k, credentials: /c.json }]" }),
      ),
      want: [
        '"providers[0].base-url" must not end in /v1, which each call adds, got "http://127.0.0.1:8000/v1"',
        '"providers[0].accounts[0]" must have exactly one of api-key and credentials, has neither',
        '"providers[0].accounts[1]" must have exactly one of api-key and credentials, has both',
      ],
    },
    {
      name: "an account whose key is no text, without calling it missing",
      text: providers(provider({ accounts: "[{ id: a, api-key: 5 }]" })),
      want: ['"providers[0].accounts[0].api-key" must be text (put it in quotes), got (hidden)'],
    },
    {
      name: "empty, blank and missing account keys",
      text: providers(
        provider({
          accounts:
            `[{ id: a, api-key: "" }, { id: b, api-key: " " }, { id: c, api-key: "env:NONE" }, { id: d, api-key: }]`,
        }),
      ),
      want: [
        '"providers[0].accounts[0].api-key" must not be empty or blank, got (hidden)',
        '"providers[0].accounts[1].api-key" must not be empty or blank, got (hidden)',
        '"providers[0].accounts[2].api-key" names the environment variable NONE, which is not set, got (hidden)',
        '"providers[0].accounts[3]" must have exactly one of api-key and credentials, has neither',
      ],
    },
    {
      name: "credentials of a kind that has none",
      text: providers(provider({ accounts: "[{ id: a, credentials: /c.json }]" })),
      want: ['"providers[0].accounts[0].credentials" is for providers of kind anthropic only'],
    },
    {
      name: "one credentials file of two accounts, also of two providers",
      text: providers(
        provider({
          id: "a",
          kind: "anthropic",
          "base-url": undefined,
          accounts: '[{ id: x, credentials: "~/c.json" }]',
        }),
        provider({
          id: "b",
          kind: "anthropic",
          "base-url": undefined,
          accounts: "[{ id: x, credentials: /home/ann/./c.json }]",
        }),
      ),
      want: [
        '"providers[1].accounts[0].credentials" must not repeat "providers[0].accounts[0].credentials", ' +
        'got "/home/ann/c.json"',
      ],
    },
    {
      name: "no account",
      text: providers(provider({ accounts: "[]" })),
      want: ['"providers[0].accounts" must be a list of at least 1, got an empty list'],
    },
    {
      name: "a plan of another kind",
      text: providers(provider({ plan: "coding" })),
      want: ['"providers[0].plan" is for providers of kind zai only, got "coding"'],
    },
    {
      name: "an openai provider without address",
      text: providers(provider({ "base-url": undefined })),
      want: ['"providers[0].base-url" is required for kind openai'],
    },
    {
      name: "a zai address that names the plan's path",
      text: providers(
        provider({ id: "a", kind: "zai", "base-url": "https://api.z.ai/api/coding/paas/v4" }),
        provider({ id: "b", kind: "zai", "base-url": "https://api.z.ai/api/anthropic" }),
      ),
      want: [
        '"providers[0].base-url" must be the host alone; "plan" chooses the address below it, ' +
        'got "https://api.z.ai/api/coding/paas/v4"',
        '"providers[1].base-url" must be the host alone; "plan" chooses the address below it, ' +
        'got "https://api.z.ai/api/anthropic"',
      ],
    },
    {
      name: "addresses in the clear, of metadata services and of files",
      text: 'codex-base-url: "http://chatgpt.test"\nchatgpt-base-url: "https://2852039166/"\n' +
        'codex-refresh-token-url: "file:///etc/passwd"\n' +
        providers(provider({ "base-url": '"https://[::ffff:169.254.169.254]/?key=SENT-q"' })),
      want: [
        '"codex-base-url" must be an https URL (http on loopback), got "http://chatgpt.test"',
        '"chatgpt-base-url" must not be a link-local, metadata or unspecified address, got "https://169.254.169.254/"',
        '"codex-refresh-token-url" must be an https URL (http on loopback), got "file:///etc/passwd"',
        '"providers[0].base-url" must not be a link-local, metadata or unspecified address, ' +
        'got "https://[::ffff:a9fe:a9fe]/?(hidden)"',
      ],
    },
    {
      name: "an address with a user",
      text: providers(provider({ "base-url": "https://ann:SENT-p@api.test/v1" })),
      want: ['"providers[0].base-url" must not hold a user or password, got "https://(hidden)@api.test/v1"'],
    },
    {
      name: "its own address",
      text: providers(provider({ "base-url": "http://localhost:8317/v1" })),
      want: ['"providers[0].base-url" must not be this proxy\'s own address, got "http://localhost:8317/v1"'],
    },
    {
      name: "its own address by loopback, listening everywhere",
      text: 'host: "::"\nport: 9000\n' + providers(provider({ "base-url": '"http://[::1]:9000/v1"' })),
      want: ['"providers[0].base-url" must not be this proxy\'s own address, got "http://[::1]:9000/v1"'],
    },
    {
      name: "its own address by name, on the port of the scheme",
      text: "host: Proxy.test\nport: 443\ncodex-base-url: https://proxy.test/codex",
      want: ['"codex-base-url" must not be this proxy\'s own address, got "https://proxy.test/codex"'],
    },
    {
      name: "a proxy that is none",
      text: 'proxy-url: "ftp://ann:SENT-p@proxy.test"',
      want: ['"proxy-url" must be an http, https or socks5 URL, direct, or empty, got (hidden)'],
    },
    {
      name: "a pool and an alias of one name",
      text: "pools: [{ name: p, members: [{ provider: codex, model: m }] }]\n" +
        "models: [{ alias: p, provider: codex, model: m }]",
      want: ['"models[0].alias" must not repeat "pools[0].name", got "p"'],
    },
    {
      name: "pools and aliases that are there twice",
      text: "pools: [{ name: p, members: [{ provider: codex, model: m }] }, " +
        "{ name: p, members: [{ provider: codex, model: m }] }]\n" +
        "models: [{ alias: a, provider: codex, model: m }, { alias: a, provider: codex, model: n }]",
      want: [
        '"pools[1].name" must not repeat "pools[0].name", got "p"',
        '"models[1].alias" must not repeat "models[0].alias", got "a"',
      ],
    },
    {
      name: "targets at providers that are not there",
      text: LAB +
        "pools: [{ name: p, members: [{ provider: lba, model: m }], fallback: [{ provider: x, model: m }] }]\n" +
        "models: [{ alias: a, provider: codec, model: m }, { alias: b, provider: Lab, model: m }]",
      want: [
        '"pools[0].members[0].provider" must be the id of a provider, or codex, got "lba"; did you mean "lab"?',
        '"pools[0].fallback[0].provider" must be the id of a provider, or codex, got "x"',
        '"models[0].provider" must be the id of a provider, or codex, got "codec"; did you mean "codex"?',
        '"models[1].provider" must be the id of a provider, or codex, got "Lab"; did you mean "lab"?',
      ],
    },
    {
      name: "a provider's wrong id, without calling its users wrong",
      text: providers(provider({ id: "'a b'" })) + "models: [{ alias: x, provider: a b, model: m }]",
      want: ['"providers[0].id" must be 1..64 letters, digits, dots, dashes or underscores, got "a b"'],
    },
    {
      name: "weights outside 1..100",
      text: "pools: [{ name: p, members: [{ provider: codex, model: a, weight: 0 }, " +
        "{ provider: codex, model: b, weight: 101 }, { provider: codex, model: c, weight: 100 }] }]",
      want: [
        '"pools[0].members[0].weight" must be 1..100 slots, got 0',
        '"pools[0].members[1].weight" must be 1..100 slots, got 101',
      ],
    },
    {
      name: "more than 256 slots",
      text: "pools: [{ name: p, members: [{ provider: codex, model: a, weight: 100 }, " +
        "{ provider: codex, model: b, weight: 100 }, { provider: codex, model: c, weight: 56 }, " +
        "{ provider: codex, model: d }] }]",
      want: ['"pools[0].members" must have weights of at most 256 in all, got 257'],
    },
    {
      name: "a member and a fallback that are there twice",
      text: LAB +
        "pools: [{ name: p, members: [{ provider: codex, model: a }, { provider: codex, model: a, weight: 2 }], " +
        "fallback: [{ provider: lab, model: qwen3 }, { provider: lab, model: qwen3 }] }]",
      want: [
        '"pools[0].members[1]" must not repeat "pools[0].members[0]"; give it more weight instead',
        '"pools[0].fallback[1]" must not repeat "pools[0].fallback[0]"',
      ],
    },
    {
      name: "a listed model that is there twice",
      text: providers(provider({ models: "[a, b, a]" })),
      want: ['"providers[0].models[2]" must not repeat "providers[0].models[0]", got "a"'],
    },
  ];
for (const c of refused) {
  Deno.test(`parseConfig() refuses ${c.name}`, () =>
    assertEquals(mistakesOf(c.text, ENVIRONMENT), [...c.want]));
}

const allowed: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: "equal initial and longest waits",
    text: "streaming: { recovery: { max-backoff-milliseconds: 250 } }",
  },
  { name: "a database beside auth-dir", text: 'auth-dir: "/srv/a"\ndatabase: { path: "/srv/ab.db" }' },
  {
    name: "one account id in two providers",
    text: providers(provider({ id: "a" }), provider({ id: "b" })),
  },
  {
    name: "one listed model in two providers",
    text: providers(provider(), provider({ id: "b", models: "[qwen3]" })),
  },
  {
    name: "a plan of zai",
    text: providers(provider({ kind: "zai", "base-url": undefined, plan: "coding" })),
  },
  {
    name: "another port of this machine as upstream",
    text: providers(provider({ "base-url": "http://127.0.0.1:8318/v1" })),
  },
  {
    name: "its own port on another machine",
    text: providers(provider({ "base-url": "https://other.test:8317/v1" })),
  },
  {
    name: "any upstream port while listening on a free one",
    text: "port: 0\ncodex-base-url: http://127.0.0.1:8317",
  },
  {
    name: "exactly 256 slots",
    text: "pools: [{ name: p, members: [{ provider: codex, model: a, weight: 100 }, " +
      "{ provider: codex, model: b, weight: 100 }, { provider: codex, model: c, weight: 56 }] }]",
  },
  {
    name: "one target in two pools",
    text: "pools: [{ name: p, members: [{ provider: codex, model: a }] }, " +
      "{ name: q, members: [{ provider: codex, model: a }] }]",
  },
  {
    name: "one model name at two providers of a pool",
    text: LAB +
      "pools: [{ name: p, members: [{ provider: codex, model: qwen3 }, { provider: lab, model: qwen3 }] }]",
  },
  { name: "a direct connection", text: "proxy-url: direct" },
  { name: "an alias with a slash", text: "models: [{ alias: openai/gpt, provider: codex, model: gpt-5.5 }]" },
];
for (const c of allowed) {
  Deno.test(`parseConfig() takes ${c.name}`, () => {
    assertEquals(mistakesOf(c.text, ENVIRONMENT), []);
    assertEquals(warningsOf(c.text, ENVIRONMENT), []);
  });
}

const warned: readonly { readonly name: string; readonly text: string; readonly want: readonly string[] }[] =
  [
    {
      name: "rounds that can never begin",
      text: "max-retry-interval: 0",
      want: ['"request-retry" has no effect while "max-retry-interval" is 0'],
    },
    { name: "nothing where both are 0", text: "max-retry-interval: 0\nrequest-retry: 0", want: [] },
    {
      name: "short keys beyond loopback",
      text: "host: 0.0.0.0\napi-keys: [SENT-short, SENT-0123456789a]\nadmin-api-key: SENT-0123456789",
      want: [
        '"api-keys[0]" is shorter than 16 characters and the host is not loopback',
        '"admin-api-key" is shorter than 16 characters and the host is not loopback',
      ],
    },
    { name: "nothing of short keys on loopback", text: "api-keys: [SENT-short]", want: [] },
    {
      name: "one upstream key of two accounts",
      text: providers(
        provider({ accounts: "[{ id: a, api-key: SENT-lab }, { id: b, api-key: env:LAB_KEY }]" }),
      ),
      want: ['"providers[0].accounts[1].api-key" is the same key as "providers[0].accounts[0].api-key"'],
    },
    {
      name: "an openai address without path",
      text: providers(provider({ "base-url": "http://127.0.0.1:8000" })),
      want: ['"providers[0].base-url" has no path; most hosts serve under /v1'],
    },
    {
      name: "models that are not among the listed ones",
      text: LAB + "pools: [{ name: p, members: [{ provider: lab, model: qwen }] }]\n" +
        "models: [{ alias: a, provider: lab, model: qwen3 }, { alias: b, provider: lab, model: other }]",
      want: [
        '"pools[0].members[0].model" is not among the models listed for "lab"',
        '"models[1].model" is not among the models listed for "lab"',
      ],
    },
    {
      name: "a fallback that is a member",
      text:
        "pools: [{ name: p, members: [{ provider: codex, model: a }], fallback: [{ provider: codex, model: a }] }]",
      want: ['"pools[0].fallback[0]" is a member of the same pool, so it adds nothing'],
    },
  ];
for (const c of warned) {
  Deno.test(`parseConfig() warns of ${c.name}`, () =>
    assertEquals(warningsOf(c.text, ENVIRONMENT), [...c.want]));
}

Deno.test("parseConfig() refuses a start without a home folder, naming both keys that need it", () => {
  assertEquals(mistakesOf("", environmentWith({}, null)), [
    '"auth-dir" starts with ~, but no home folder is known, got "~/.codex"',
    '"database.path" has no default place, since no home folder is known, got ""',
  ]);
  assertEquals(mistakesOf("auth-dir: /a\ndatabase: { path: /b }", environmentWith({}, null)), []);
});
