import { assertEquals } from "@std/assert";
import {
  CONFIG_NESTING_LIMIT,
  CONFIG_TEXT_LIMIT_CHARACTERS,
  CONFIG_TEXT_LIMIT_LINES,
  readYaml,
  writeYaml,
} from "../../lib/config_yaml.ts";
import { mistakesOf } from "./support.ts";

const broken = [
  {
    name: "an indentation",
    text: "quota:\n  recheck: true\n poll: 1",
    want: "line 3, column 2: the indentation does not fit",
  },
  {
    name: "an open bracket",
    text: "api-keys: [a",
    want: "line 1, column 13: a quote or bracket is not closed",
  },
  {
    name: "an open quote",
    text: "host: 'SENT-a\n",
    want: "line 2, column 1: a quote or bracket is not closed",
  },
  {
    name: "a colon in a text",
    text: "host: a: SENT-b",
    want: "line 1, column 8: there is no key where one has to be, or a text with a colon needs quotes",
  },
  {
    name: "a list where keys are",
    text: "port: 1\n- SENT-a",
    want: "line 2, column 1: there is something where a key has to be, or a text needs quotes",
  },
  {
    name: "an alias of nothing",
    text: "host: *SENT-a",
    want: "line 1, column 14: an alias (*) fits no anchor (&); put the text in quotes if it is none",
  },
  {
    name: "a tag",
    text: "host: !SENT-a b",
    want: "line 1, column 16: tags (!) are not used here; put the text in quotes if it is none",
  },
  {
    name: "a second document",
    text: "port: 1\n---\nport: 2",
    want: "line 2, column 1: there is a second document",
  },
  {
    name: "an unprintable character",
    text: "host: a\u0001",
    want: "line 1, column 9: there is a character that cannot be printed",
  },
  {
    name: "an unknown escape",
    text: 'host: "\\q"',
    want: "line 1, column 9: an escape in quotes is not known",
  },
  {
    name: "a missing comma",
    text: "api-keys: [{a: 1} {b: 2}]",
    want: "line 1, column 19: a comma or closing bracket is missing",
  },
  {
    name: "a text that begins with a sign",
    text: "host: @SENT-a",
    want: "line 1, column 7: there is something where a key has to be, or a text needs quotes",
  },
  {
    name: "a directive",
    text: "%SENT 1\nport: 1",
    want: "line 2, column 1: directives (%) are not used here; put the text in quotes if it is none",
  },
  {
    name: "line ends of every kind",
    text: "port: 1\r\nhost: a\rquota: [\n",
    want: "line 4, column 1: a quote or bracket is not closed",
  },
] as const;
for (const c of broken) {
  Deno.test(`readYaml() says where and what is wrong: ${c.name}`, () => {
    const reading = readYaml(c.text);
    assertEquals(reading.ok ? reading.value : reading.problem, c.want);
    assertEquals(mistakesOf(c.text), [c.want]);
  });
}

const repeated = [
  { name: "twice", text: "port: 1\nport: 2", want: ['"port" is given more than once (line 2)'] },
  {
    name: "three times",
    text: "port: 1\nhost: a\nport: 2\nport: 3",
    want: ['"port" is given more than once (line 3)', '"port" is given more than once (line 4)'],
  },
  {
    name: "in quotes",
    text: "port: 1\n'port': 2\n\"port\": 3",
    want: ['"port" is given more than once (line 2)', '"port" is given more than once (line 3)'],
  },
  {
    name: "in two places",
    text: "quota: { recheck: true, recheck: false }\nhost: a\nhost: b",
    want: ['"quota.recheck" is given more than once (line 1)', '"host" is given more than once (line 3)'],
  },
  {
    name: "with a mapping as value",
    text: "quota:\n  recheck: true\nquota:\n  recheck: true\n",
    want: ['"quota" is given more than once (line 3)'],
  },
  {
    name: "in braces over lines",
    text:
      "providers: [{ id: a, kind: zai, accounts: [{ id: a, api-key: SENT-a }],\n  id: b,\n  accounts: [] }]",
    want: [
      '"providers[0].id" is given more than once (line 2)',
      '"providers[0].accounts" is given more than once (line 3)',
    ],
  },
  {
    name: "beside other mistakes",
    text: "port: -1\nport: 2\nhots: a",
    want: [
      '"port" must be 0..65535, got -1',
      '"port" is given more than once (line 2)',
      '"hots" is not a known key; did you mean "host"?',
    ],
  },
  {
    name: "and is not known either",
    text: "colour: 1\ncolour: 2",
    want: ['"colour" is not a known key', '"colour" is given more than once (line 2)'],
  },
  {
    name: "where nothing belongs",
    text: "host: { a: 1, a: 2 }",
    want: ['"host" must be text, got a mapping', "line 1: a key is given more than once"],
  },
  {
    name: "written with a question mark",
    text: "? port\n: 1\n? port\n: 2\nhots: a",
    want: ['"hots" is not a known key; did you mean "host"?', "line 4: a key is given more than once"],
  },
  {
    name: "with something like a pair in its text",
    text: "{ codex-user-agent: a, codex-user-agent: 'x, model: y' }",
    want: ["line 1: a key is given more than once"],
  },
  {
    name: "in a text that knows our markers",
    text: "repeated-: 1\nport: 1\nport: 2",
    want: ['"repeated-" is not a known key', '"port" is given more than once (line 3)'],
  },
] as const;
for (const c of repeated) {
  Deno.test(`parseConfig() tells a key that is there ${c.name}`, () =>
    assertEquals(mistakesOf(c.text), [...c.want]));
}

Deno.test("readYaml() counts columns as they are in the text, also behind repeated keys", () => {
  const reading = readYaml("quota: { recheck: true, recheck: false }}");
  assertEquals(reading.ok ? null : reading.problem.slice(0, 18), "line 1, column 41:");
});

Deno.test("readYaml() stops looking for repeated keys after 20 and says so once more", () => {
  const reading = readYaml(Array(30).fill("port: 1").join("\n"));
  assertEquals(reading.ok ? reading.duplicates.length : 0, 21);
});

const sizes = [
  { name: "the longest text", text: "#".repeat(CONFIG_TEXT_LIMIT_CHARACTERS), want: [] },
  {
    name: "one character more",
    text: "#".repeat(CONFIG_TEXT_LIMIT_CHARACTERS + 1),
    want: [`is longer than ${CONFIG_TEXT_LIMIT_CHARACTERS} characters`],
  },
  { name: "the most lines", text: "\n".repeat(CONFIG_TEXT_LIMIT_LINES - 1), want: [] },
  {
    name: "one line more",
    text: "\n".repeat(CONFIG_TEXT_LIMIT_LINES),
    want: [`is longer than ${CONFIG_TEXT_LIMIT_LINES} lines`],
  },
  {
    name: "brackets within the limit",
    text: `api-keys: ${"[".repeat(CONFIG_NESTING_LIMIT)}${"]".repeat(CONFIG_NESTING_LIMIT)}`,
    want: ['"api-keys[0]" must be text, got a list of 1'],
  },
  {
    name: "one bracket more",
    text: `api-keys: ${"[".repeat(CONFIG_NESTING_LIMIT + 1)}`,
    want: [`is nested deeper than ${CONFIG_NESTING_LIMIT} levels`],
  },
  {
    name: "dashes beyond the limit",
    text: "- ".repeat(CONFIG_NESTING_LIMIT + 1),
    want: [`is nested deeper than ${CONFIG_NESTING_LIMIT} levels`],
  },
  {
    name: "block lists beyond the parser's stack",
    text: Array.from({ length: 50 }, (_, at) => " ".repeat(380 * at) + "- ".repeat(190)).join("\n"),
    want: [`is nested deeper than ${CONFIG_NESTING_LIMIT} levels`],
  },
] as const;
for (const c of sizes) {
  Deno.test(`parseConfig() bounds its text: ${c.name}`, () => assertEquals(mistakesOf(c.text), [...c.want]));
}

Deno.test("writeYaml() writes what readYaml() reads as the same", () => {
  const value = {
    a: ["x: y", "", "1", "true", "(hidden)"],
    b: { c: 1, d: false, e: [] },
    f: "long ".repeat(40).trim(),
  };
  const reading = readYaml(writeYaml(value));
  assertEquals(reading.ok ? reading.value : reading.problem, value);
});
