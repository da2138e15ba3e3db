import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { describeConfig, formatConfig, formatMistake, parseConfig } from "../../lib/config.ts";
import { environmentWith } from "./support.ts";

const SECRET = "SENT-9f2c";
const ENVIRONMENT = environmentWith({
  GOOD: `${SECRET}-in-variable`,
  BAD: `${SECRET} with spaces`,
  EMPTY: "",
});

/** Everything parseConfig() and what follows it lets people see. */
function everythingSaid(text: string): string {
  const parsed = parseConfig(text, ENVIRONMENT);
  if (!parsed.ok) return JSON.stringify(parsed) + parsed.mistakes.map(formatMistake).join("\n");
  return [...parsed.warnings, JSON.stringify(describeConfig(parsed.config)), formatConfig(parsed.config)]
    .join("\n");
}

const slips = [
  { name: "a key that is a mapping", text: `api-keys: [{ ${SECRET}: 1 }]` },
  { name: "a key where a list belongs", text: `api-keys: ${SECRET}` },
  { name: "a mapping where a list belongs", text: `api-keys: { ${SECRET}: }` },
  { name: "a list where a key belongs", text: `admin-api-key: [${SECRET}]` },
  { name: "a key where an account belongs", text: `providers: [{ accounts: [${SECRET}] }]` },
  { name: "a key where accounts belong", text: `providers: [{ accounts: ${SECRET} }]` },
  { name: "a key where a provider belongs", text: `providers: [${SECRET}]` },
  { name: "a key where everything belongs", text: SECRET },
  {
    name: "no space after a colon in braces",
    text: `providers: [{ accounts: [{ id: a, api-key:${SECRET} }] }]`,
  },
  { name: "no space after a colon of admin-api-key", text: `{ admin-api-key:${SECRET} }` },
  { name: "no space after a colon in block style", text: `port: 1\nadmin-api-key:${SECRET}\nhost: a` },
  {
    name: "no comma before a key without a space after its colon",
    text: `providers: [{ accounts: [{ id: a api-key:${SECRET} }] }]`,
  },
  { name: "a bare word in braces", text: `providers: [{ accounts: [{ id: a, ${SECRET} }] }]` },
  { name: "an unknown key", text: `adminapikey: ${SECRET}\nsecret: ${SECRET}\ntoken: [${SECRET}]` },
  { name: "an unknown key of an account", text: `providers: [{ accounts: [{ id: a, apikey: ${SECRET} }] }]` },
  { name: "a repeated key", text: `admin-api-key: ${SECRET}\nadmin-api-key: ${SECRET}-two` },
  {
    name: "a repeated key in braces",
    text: `{ admin-api-key: ${SECRET}, admin-api-key: "${SECRET}, x: y" }`,
  },
  { name: "an open quote", text: `admin-api-key: "${SECRET}\nport: 1` },
  { name: "an alias", text: `admin-api-key: *${SECRET}` },
  { name: "a tag", text: `admin-api-key: !${SECRET} x` },
  { name: "a tag handle", text: `%TAG !s! ${SECRET}\n---\nport: !s!x 1` },
  { name: "a directive", text: `%${SECRET}\n---\nport: 1` },
  { name: "a key of several lines", text: `${SECRET}\n  more: 1` },
  { name: "a key after env:", text: `admin-api-key: env:sk-${SECRET}` },
  { name: "an unusable variable", text: "admin-api-key: env:BAD\napi-keys: [env:BAD, env:EMPTY]" },
  { name: "a usable variable", text: "admin-api-key: env:GOOD\nhost: 0.0.0.0" },
  { name: "one key twice", text: `api-keys: [${SECRET}, ${SECRET}]\nadmin-api-key: ${SECRET}` },
  { name: "a proxy's password", text: `proxy-url: "http://ann:${SECRET}@proxy.test:1"` },
  {
    name: "a proxy's password beside a mistake",
    text: `proxy-url: "http://ann:${SECRET}@proxy.test:1/path"`,
  },
  { name: "a proxy's password in no URL", text: `proxy-url: "ann:${SECRET}@proxy"` },
  { name: "a password in an upstream address", text: `codex-base-url: "https://ann:${SECRET}@api.test"` },
  { name: "a user in an upstream address", text: `codex-base-url: "https://${SECRET}@api.test"` },
  { name: "a query in an upstream address", text: `codex-base-url: "https://api.test/?key=${SECRET}"` },
  { name: "a fragment in an upstream address", text: `codex-base-url: "https://api.test/#${SECRET}"` },
  { name: "a query in something like an address", text: `codex-base-url: "https://:99:/?key=${SECRET}"` },
  { name: "a password in something like an address", text: `codex-base-url: "ftp//ann:${SECRET}@api.test"` },
  { name: "a password in a host", text: `host: "http://ann:${SECRET}@here"` },
] as const;
for (const c of slips) {
  Deno.test(`parseConfig() never shows a secret: ${c.name}`, () => {
    const said = everythingSaid(c.text);
    assertEquals(said.includes(SECRET), false, said);
  });
}

const pasted = [
  "sk-ant-api03-AbCdEf",
  "sk-proj-AbCdEf",
  "hf_AbCdEf",
  "eyJhbGciOiJIUzI1NiJ9.e30.sig",
  "Bearer abc",
  "AIzaSyAbCdEf",
  `x${"a1b2c3d4".repeat(5)}`,
];
for (const key of pasted) {
  Deno.test(`parseConfig() does not show ${key.slice(0, 6)}… pasted at a place for other things`, () => {
    for (
      const text of [
        `host: "here ${key}"`,
        `providers: [{ accounts: [{ id: a api-key:<html> ${key} }] }]`,
        `host: "${key}/"`,
        `models: [{ alias: a, provider: "${key}", model: m }]`,
        `"${key}": 1`,
      ]
    ) {
      const said = everythingSaid(text);
      assertEquals(said.includes(key), false, said);
    }
  });
}

Deno.test("parseConfig() shows the value of an ordinary key, cut where it is long", () => {
  assertEquals(everythingSaid(`host: "my host"`).includes("my host"), true);
  const said = everythingSaid(`auth-dir: "${"a b".repeat(50)}"`);
  assertEquals(said.includes("a b".repeat(20)), true);
  assertEquals(said.includes("a b".repeat(30)), false);
});

// ---------------------------------------------------------------- properties

/** Pieces of configurations, so that generated texts get past the first line of the parser. */
const piece = fc.oneof(
  fc.constantFrom(
    "port",
    "host",
    "api-keys",
    "admin-api-key",
    "proxy-url",
    "providers",
    "accounts",
    "api-key",
    "id",
    "kind",
    "base-url",
    "pools",
    "members",
    "models",
    "streaming",
    "recovery",
    "env:GOOD",
    "anthropic",
    ": ",
    ":",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "{ ",
    " }",
    "[",
    "]",
    ", ",
    "&a ",
    "*a",
    "'",
    '"',
    "? ",
    "| \n",
    "<<",
    "!!x ",
    "#",
    "0",
    "-1",
    ".nan",
    "1e999",
    "null",
    "~",
    "__proto__",
  ),
  fc.string({ maxLength: 8 }),
  fc.string({ unit: "binary", maxLength: 4 }),
);
const configText = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join("")),
);

Deno.test("parseConfig() never throws, whatever the text, and says something where it refuses", () => {
  fc.assert(
    fc.property(configText, (text) => {
      const parsed = parseConfig(text, ENVIRONMENT);
      if (!parsed.ok) assertEquals(parsed.mistakes.length > 0, true);
    }),
    { numRuns: 2_000 },
  );
});

/** Any value YAML's core schema can hold, as JSON writes it. */
const anyValue = fc.json({ maxDepth: 3 });
const secretText = fc.constantFrom(SECRET, `${SECRET} x`, `${SECRET}\n`, `env:sk-${SECRET}`, `é${SECRET}`);
const secretValue = fc.oneof(
  secretText.map((text) => JSON.stringify(text)),
  secretText.map((text) => JSON.stringify([text])),
  secretText.map((text) => JSON.stringify({ [text]: text })),
);

Deno.test("parseConfig() never shows what stands at a secret's key, whatever else is in the file", () => {
  const file = fc.record({
    admin: secretValue,
    client: secretValue,
    proxy: secretText.map((text) => JSON.stringify(`http://ann:${text}@proxy.test:1`)),
    account: secretValue,
    kind: fc.oneof(fc.constantFrom('"anthropic"', '"zai"', '"openai"'), anyValue),
    other: anyValue,
    key: fc.constantFrom("port", "host", "routing", "models", "pools", "quota", "colour"),
  });
  fc.assert(
    fc.property(file, (file) => {
      const text =
        `{ "admin-api-key": ${file.admin}, "api-keys": [${file.client}], "proxy-url": ${file.proxy},
"providers": [{ "id": "a", "kind": ${file.kind}, "accounts": [{ "id": "k", "api-key": ${file.account} }] }],
"${file.key}": ${file.other} }`;
      const said = everythingSaid(text);
      assertEquals(said.includes(SECRET), false, said);
    }),
    { numRuns: 500 },
  );
});
