import { assertEquals } from "@std/assert";
import { DEFAULT_CONFIG_VALUES } from "../../lib/config.ts";
import { allKeys, isOptionalAt, type KnownKey } from "../../lib/config_keys.ts";
import {
  ACCESS_TOKEN_KEYS,
  EXPIRY_KEYS,
  ID_TOKEN_KEYS,
  LAST_REFRESH_KEYS,
  parseCredentialFile,
  REFRESH_TOKEN_KEYS,
} from "../../lib/core/credential.ts";
import { readYaml } from "../../lib/config_yaml.ts";
import { configOf, environmentWith, mistakesOf, warningsOf } from "./support.ts";
import { printSchema, SCHEMA_FILE } from "./write_schema.ts";

/** Which section of docs/configuration.md is about account files. */
const ACCOUNT_FILES = 3;
/** Fields of a flat file in the order they are told, each with its other spellings. */
const FIELDS = [
  ACCESS_TOKEN_KEYS,
  REFRESH_TOKEN_KEYS,
  ID_TOKEN_KEYS,
  ["account_id", "accountId"],
  ["email"],
  EXPIRY_KEYS,
  LAST_REFRESH_KEYS,
] as const;
const EXAMPLE = readText("config.example.yaml");
const ENVIRONMENT = environmentWith({ ANTHROPIC_API_KEY: "SENT-anthropic", ZAI_API_KEY: "SENT-zai" });

function sectionOf(path: string, index: number): string {
  return readText(path).split(/^## /m)[index]!;
}

function readText(path: string): string {
  return Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
}

// ---------------------------------------------------------------- config.example.yaml

Deno.test("config.example.yaml shows every key with its default", () => {
  const reading = readYaml(EXAMPLE);
  assertEquals(reading.ok ? reading.value : reading.problem, DEFAULT_CONFIG_VALUES);
  assertEquals(configOf(EXAMPLE), configOf(""));
  assertEquals(warningsOf(EXAMPLE), []);
});

Deno.test("config.example.yaml tells editors where the schema is", () => {
  const reference = /^# yaml-language-server: \$schema=\.\/(\S+)\n/.exec(EXAMPLE)?.[1];
  assertEquals(new URL(`../../${reference}`, import.meta.url), SCHEMA_FILE);
});

Deno.test("config.example.yaml has an example of providers, aliases and pools that is right", () => {
  const [head, example] = EXAMPLE.split(/# ---- Example.*\n/);
  const lists = example!.replaceAll(/^# ?/gm, "");
  const text = head!.replaceAll(/^(?:providers|models|pools): \[\]$/gm, "") + lists;
  assertEquals(mistakesOf(text, ENVIRONMENT), []);
  assertEquals(warningsOf(text, ENVIRONMENT), []);
  const config = configOf(text, ENVIRONMENT);
  assertEquals(config.providers.map(({ id, kind }) => `${id}:${kind}`), [
    "claude:anthropic",
    "zai:zai",
    "lab:openai",
  ]);
  assertEquals([config.models.length, config.pools[0]?.members.length, config.pools[0]?.fallback.length], [
    1,
    3,
    1,
  ]);
  assertEquals(mistakesOf(text).length, 2, "both variables are read");
});

// ---------------------------------------------------------------- docs/config.schema.json

Deno.test("docs/config.schema.json is the schema of the parser", () => {
  const hint = "write it with: deno run --allow-write=docs tests/config/write_schema.ts";
  assertEquals(Deno.readTextFileSync(SCHEMA_FILE) === printSchema(), true, hint);
});

Deno.test("docs/config.schema.json describes every value, and closes every mapping", () => {
  let described = 0;
  const walk = (node: Record<string, unknown>, path: string) => {
    if (node["type"] === "object") {
      assertEquals(node["additionalProperties"], false, path);
      for (
        const [key, child] of Object.entries(node["properties"] as Record<string, Record<string, unknown>>)
      ) {
        if (child["type"] !== "object") {
          assertEquals(typeof child["description"], "string", `${path}.${key}`);
          described++;
        }
        walk(child, `${path}.${key}`);
      }
    } else if (node["type"] === "array") walk(node["items"] as Record<string, unknown>, `${path}[]`);
  };
  walk(JSON.parse(Deno.readTextFileSync(SCHEMA_FILE)), "");
  assertEquals(described, valueKeys().length);
});

// ---------------------------------------------------------------- docs/configuration.md, English and Chinese

/** What the Chinese table says for the words of the English one; numbers and words of the file are the same. */
const CHINESE: Readonly<Record<string, string>> = {
  "": "",
  "seconds": "秒",
  "minutes": "分钟",
  "milliseconds": "毫秒",
  "days": "天",
  "bytes": "字节",
  "rounds": "轮",
  "accounts": "个账户",
  "events": "个事件",
  "requests": "个请求",
  "attempts": "次",
  "slots": "个槽位",
  "entries": "项",
  "characters": "个字符",
  "required": "必填",
  "by kind": "依 kind 而定",
  "none": "无",
  "a path": "路径",
  "a path, or empty": "路径，或留空",
  "a name or address without port": "主机名或地址，不含端口",
  "a key or env:NAME": "密钥本身，或 env:NAME",
  "http, https or socks5 URL, direct, or empty": "http、https 或 socks5 地址，direct，或留空",
  "https URL (http on loopback)": "https 地址（回环地址可用 http）",
  "1..64 letters, digits, dots, dashes or underscores": "1..64 个字母、数字、点、短横线或下划线",
  "the id of a provider, or codex": "提供方的 id，或 codex",
};
/** Defaults that are not in the object of defaults, since they belong to entries of lists. */
const ENTRY_DEFAULTS: Readonly<Record<string, string>> = {
  "providers[].base-url": "by kind",
  "providers[].plan": "`general`",
  "providers[].models": "`[]`",
  "providers[].accounts[].api-key": "none",
  "providers[].accounts[].credentials": "none",
  "pools[].members[].weight": "`1`",
  "pools[].fallback": "`[]`",
};

const documents = [
  { path: "docs/configuration.md", translate: (text: string) => text },
  { path: "docs/zh/configuration.md", translate: toChinese },
] as const;
for (const c of documents) {
  Deno.test(`${c.path} has a row for every key, with its unit, default and range`, () => {
    const want = valueKeys().map(({ path, facts }) =>
      [`\`${path}\``, c.translate(facts!.unit), c.translate(defaultOf(path)), c.translate(facts!.range)].join(
        " | ",
      )
    );
    assertEquals(tableRows(c.path).map((cells) => cells.slice(0, 4).join(" | ")), want);
  });

  Deno.test(`${c.path} says of every key what it does`, () => {
    for (const cells of tableRows(c.path)) assertEquals((cells[4] ?? "").length > 2, true, cells[0]);
  });

  Deno.test(`${c.path} names what needs a restart`, () => {
    const reload = readText(c.path).split(/^## /m).at(-1)!;
    for (const key of ["host", "port", "auth-dir", "database", "logging.format"]) {
      assertEquals(reload.includes(`\`${key}\``), true, key);
    }
  });
}

Deno.test("docs/zh/configuration.md is Chinese, section by section and row by row", () => {
  const headings = (path: string) => readText(path).match(/^#+ /gm)?.map((mark) => mark.length);
  assertEquals(headings("docs/zh/configuration.md"), headings("docs/configuration.md"));
  for (const cells of tableRows("docs/zh/configuration.md")) {
    assertEquals(/\p{Script=Han}{2}/u.test(cells[4] ?? ""), true, cells[0]);
  }
});

Deno.test("docs/configuration.md shows messages as the parser words them, in both languages", () => {
  const want = [
    ...mistakesOf("max-retry-interval: -1"),
    ...mistakesOf("routing: { stratgy: fill-first }"),
    ...mistakesOf("providers: [{ id: z, kind: zai, accounts: [{ id: a, api-key: 'env:ZAI_API_KEY' }] }]"),
  ];
  for (const { path } of documents) {
    const shown = readText(path).split("\n").filter((line) => line.startsWith("Cannot parse config: "));
    assertEquals(shown, want.map((message) => `Cannot parse config: ${message}`));
  }
});

// ---------------------------------------------------------------- account files

for (const { path } of documents) {
  Deno.test(`${path} tells every field of an account file, and every spelling that is read`, () => {
    const section = sectionOf(path, ACCOUNT_FILES);
    const fields = tableRows(path, section).map(([name]) => name);
    assertEquals(
      fields,
      ["type", ...FIELDS.map(([first]) => first), "disabled"].map((name) => `\`${name}\``),
    );
    const missing = FIELDS.flat().filter((name) => !section.includes(`\`${name}\``));
    assertEquals(missing, []);
  });

  Deno.test(`${path} shows an account file that is read as it says`, () => {
    const text = /^```json\n([\s\S]*?)^```/m.exec(sectionOf(path, ACCOUNT_FILES))![1]!;
    const parsed = parseCredentialFile(text);
    const record = parsed.kind === "credential" ? parsed.record : null;
    assertEquals(
      [record?.format, record?.accountId, record?.email, record?.tokens.refreshToken !== null],
      ["codex_flat", "example-workspace", "anna@example.com", true],
    );
    assertEquals(
      [record?.tokens.expiresAtMs, record?.lastRefreshAtMs],
      [Date.UTC(2027, 0, 15, 9), Date.UTC(2027, 0, 15, 8)],
    );
  });
}

function valueKeys(): readonly KnownKey[] {
  return allKeys().filter((key) => key.facts !== null);
}

/** As the English table shows it. */
function defaultOf(path: string): string {
  const entry = ENTRY_DEFAULTS[path];
  if (entry !== undefined) return entry;
  if (path.includes("[]")) {
    const place = path.split(".").flatMap((part) => part.endsWith("[]") ? [part.slice(0, -2), 0] : [part]);
    assertEquals(isOptionalAt(place), false, `${path} has a default that this test does not know`);
    return "required";
  }
  let value: unknown = DEFAULT_CONFIG_VALUES;
  for (const part of path.split(".")) value = (value as Record<string, unknown>)[part];
  return `\`${typeof value === "string" && value !== "" ? value : JSON.stringify(value)}\``;
}

function toChinese(text: string): string {
  const known = CHINESE[text];
  if (known !== undefined) return known;
  // "0..64 entries" and "1..128 bytes": a range and its unit.
  const [, range, unit] = /^(\d+\.\.\d+) (\w+)$/.exec(text) ?? [];
  const word = unit === undefined ? undefined : CHINESE[unit];
  return word === undefined ? text : `${range} ${word}`;
}

/** The cells of every row that begins with a name, in the section of the keys or another one. */
function tableRows(path: string, section = sectionOf(path, 1)): readonly string[][] {
  return section.split("\n").filter((line) => line.startsWith("| `")).map((line) =>
    line.split("|").slice(1, -1).map((cell) => cell.trim())
  );
}
