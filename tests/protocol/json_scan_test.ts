import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  editTopLevel,
  findMember,
  findNested,
  JSON_DEPTH_LIMIT,
  JSON_MEMBER_LIMIT,
  type JsonEdit,
  type JsonMember,
  type JsonScan,
  readBooleanValue,
  readStringValue,
  scanTopLevel,
} from "../../lib/protocol/json_scan.ts";
import { bytesOf, textOf } from "./frames.ts";

function accept(bytes: Uint8Array): JsonScan & { ok: true } {
  const scan = scanTopLevel(bytes);
  if (!scan.ok) throw new Error(`${scan.problem} at ${scan.at}`);
  return scan;
}

function refuse(bytes: Uint8Array): JsonScan & { ok: false } {
  const scan = scanTopLevel(bytes);
  if (scan.ok) throw new Error(`Accepted ${textOf(bytes)}`);
  return scan;
}

function membersOf(text: string): JsonMember[] {
  return accept(bytesOf(text)).members;
}

const accepted: { name: string; text: string; want: [string, string, string][] }[] = [
  { name: "an empty object", text: "{}", want: [] },
  {
    name: "space everywhere",
    text: ' \t\r\n{ "a" : 1 , "b" : [ ] } \n',
    want: [["a", "1", "number"], ["b", "[ ]", "array"]],
  },
  {
    name: "every kind",
    text: '{"s":"x","n":-1.5e+3,"o":{"a":{}},"r":[1,[2]],"t":true,"f":false,"z":null}',
    want: [
      ["s", '"x"', "string"],
      ["n", "-1.5e+3", "number"],
      ["o", '{"a":{}}', "object"],
      ["r", "[1,[2]]", "array"],
      ["t", "true", "true"],
      ["f", "false", "false"],
      ["z", "null", "null"],
    ],
  },
  {
    name: "an escaped quote",
    text: '{"a":"x\\"}","b":1}',
    want: [["a", '"x\\"}"', "string"], ["b", "1", "number"]],
  },
  {
    name: "an escaped backslash before the quote",
    text: '{"a":"x\\\\","b":1}',
    want: [
      ["a", '"x\\\\"', "string"],
      ["b", "1", "number"],
    ],
  },
  { name: "an escaped key", text: '{"mod\\u0065l":"m"}', want: [["model", '"m"', "string"]] },
  {
    name: "keys of any alphabet",
    text: '{"é🚀":1,"":2}',
    want: [["é🚀", "1", "number"], ["", "2", "number"]],
  },
  {
    name: "duplicates, all of them",
    text: '{"a":1,"a":2}',
    want: [["a", "1", "number"], ["a", "2", "number"]],
  },
  {
    name: "brackets inside strings",
    text: '{"a":["]}",{"b":"{["}]}',
    want: [["a", '["]}",{"b":"{["}]', "array"]],
  },
];
for (const c of accepted) {
  Deno.test(`scanTopLevel() gives the members of ${c.name}`, () => {
    const bytes = bytesOf(c.text);
    const scan = accept(bytes);
    assertEquals(
      scan.members.map((m) => [m.key, textOf(bytes.subarray(m.valueStart, m.valueEnd)), m.kind]),
      c.want,
    );
    assertEquals(c.text.slice(textOf(bytes.subarray(0, scan.objectEnd)).length).trim(), "");
    for (const m of scan.members) assertEquals(bytes[m.keyStart], 0x22);
  });
}

const refused: { name: string; text: string; problem: RegExp }[] = [
  { name: "nothing", text: "", problem: /not a JSON object/ },
  { name: "space", text: "  ", problem: /not a JSON object/ },
  { name: "an array", text: "[{}]", problem: /not a JSON object/ },
  { name: "a byte-order mark", text: "\ufeff{}", problem: /not a JSON object/ },
  { name: "a string cut", text: '{"a":"b', problem: /inside a string/ },
  { name: "a string cut after a backslash", text: '{"a":"b\\', problem: /inside a string/ },
  { name: "a long string cut", text: `{"a":"${"x".repeat(200)}\\"`, problem: /inside a string/ },
  { name: "a key cut", text: '{"a', problem: /inside a string/ },
  { name: "a nested string cut", text: '{"a":["b]}', problem: /inside a string/ },
  { name: "an object left open", text: '{"a":1', problem: /comma or the end/ },
  { name: "a nested array left open", text: '{"a":[1,2', problem: /brackets are closed/ },
  { name: "a bracket of the wrong kind", text: '{"a":[1}}', problem: /does not match/ },
  { name: "text after the object", text: '{"a":1} x', problem: /follows/ },
  { name: "a second object", text: "{}{}", problem: /follows/ },
  { name: "a missing colon", text: '{"a" 1}', problem: /colon/ },
  { name: "a missing value", text: '{"a":', problem: /value must follow/ },
  { name: "a comma for a value", text: '{"a":,"b":1}', problem: /not JSON/ },
  { name: "a trailing comma", text: '{"a":1,}', problem: /field name/ },
  { name: "a missing comma", text: '{"a":1 "b":2}', problem: /comma/ },
  { name: "a bare key", text: "{a:1}", problem: /field name/ },
  { name: "a bare word", text: '{"a":yes}', problem: /not JSON/ },
  { name: "a cut literal", text: '{"a":tru}', problem: /not JSON/ },
  { name: "a badly escaped key", text: '{"\\x":1}', problem: /badly escaped/ },
  { name: "digits without end", text: `{"a":${"1".repeat(1000)}}`, problem: /too long/ },
];
for (const c of refused) {
  Deno.test(`scanTopLevel() refuses ${c.name}`, () => {
    const bytes = bytesOf(c.text);
    const scan = refuse(bytes);
    assert(c.problem.test(scan.problem), scan.problem);
    assert(scan.at >= 0 && scan.at <= bytes.length);
  });
}

const carriers: readonly { body: string; may: boolean }[] = [
  { body: '{"a":"hf.sig1:x"}', may: true },
  { body: '{"a":[{"b":[1,{"signature":"hf."}]}]}', may: true },
  { body: '{"hf.a":1}', may: true },
  { body: '{"a":"hf"}', may: false },
  { body: '{"a":"hf","b":".sig1:"}', may: false },
  { body: '{"a":"a hf.sig1:x"}', may: false },
  { body: '{"a":"\\"hf.sig1:x"}', may: false },
  { body: '{"a":{"b":"a \\"hf.sig1:x\\""}}', may: false },
  { body: "{}", may: false },
];
for (const { body, may } of carriers) {
  Deno.test(`scanTopLevel() tells that ${body} ${may ? "may" : "cannot"} hold a carrier of ours`, () => {
    // Nothing of one scan is told of the next.
    for (const [text, expected] of [[body, may], ["{}", false]] as const) {
      const scan = scanTopLevel(bytesOf(text));
      assert(scan.ok);
      assertEquals(scan.ok && scan.mayCarry, expected);
    }
  });
}

Deno.test("scanTopLevel() refuses every proper prefix of a body", () => {
  const bytes = bytesOf('{"model":"m","input":[{"a":"x\\"y","b":[1,{}]}],"n":-1,"stream":true}');
  assert(scanTopLevel(bytes).ok);
  for (let end = 0; end < bytes.length; end++) {
    assert(!scanTopLevel(bytes.subarray(0, end)).ok, `prefix ${end}`);
  }
});

for (const [depth, ok] of [[JSON_DEPTH_LIMIT - 1, true], [JSON_DEPTH_LIMIT, false]] as const) {
  Deno.test(`scanTopLevel() ${ok ? "takes" : "refuses"} ${depth} levels below the body`, () => {
    const scan = scanTopLevel(bytesOf(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`));
    assertEquals(scan.ok, ok);
  });
}

Deno.test("scanTopLevel() refuses ten million open brackets without a deep stack", () => {
  const scan = scanTopLevel(bytesOf('{"a":' + "[".repeat(10_000_000)));
  assertEquals(scan, { ok: false, at: 5, problem: "The JSON is nested too deeply" });
});

for (const [count, ok] of [[JSON_MEMBER_LIMIT, true], [JSON_MEMBER_LIMIT + 1, false]] as const) {
  Deno.test(`scanTopLevel() ${ok ? "takes" : "refuses"} ${count} fields`, () => {
    assertEquals(scanTopLevel(bytesOf(`{${Array(count).fill('"a":1').join(",")}}`)).ok, ok);
  });
}

Deno.test("scanTopLevel() agrees with JSON.parse on any object", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
      fc.constantFrom(0, 1, "\t"),
      (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        const bytes = bytesOf(text);
        const back = accept(bytes).members.map((
          m,
        ) => [m.key, JSON.parse(textOf(bytes.subarray(m.valueStart, m.valueEnd)))]);
        assertEquals(back, Object.entries(JSON.parse(text)));
      },
    ),
  );
});

const strings: [string, string | null][] = [
  ['"m"', "m"],
  ['""', ""],
  ['"a\\n\\"\\\\\\u00e9\\ud83d\\ude80"', 'a\n"\\é🚀'],
  [`"${"long ".repeat(100)}\\""`, "long ".repeat(100) + '"'],
  ['"bad \\q escape"', null],
  ["1", null],
  ["null", null],
];
for (const [json, want] of strings) {
  Deno.test(`readStringValue() reads ${json.slice(0, 30)} as ${JSON.stringify(want)?.slice(0, 30)}`, () => {
    const text = `{"a":${json},"b":1}`;
    assertEquals(readStringValue(bytesOf(text), findMember(membersOf(text), "a")), want);
  });
}

Deno.test("readBooleanValue() and findMember() read the last duplicate, and null when absent", () => {
  const text = '{"a":true,"b":false,"c":1,"a":false}';
  const bytes = bytesOf(text);
  const members = membersOf(text);
  assertEquals(["a", "b", "c", "d"].map((key) => readBooleanValue(bytes, findMember(members, key))), [
    false,
    false,
    null,
    null,
  ]);
});

const nested: [string, string, string, string | null][] = [
  ['{"metadata":{"user_id":"u1"}}', "metadata", "user_id", "u1"],
  ['{"conversation":{"x":{"id":"no"},"id":"c1"}}', "conversation", "id", "c1"],
  ['{"reasoning":{"effort":"low","effort":"high"}}', "reasoning", "effort", "high"],
  ['{"conversation":"c1"}', "conversation", "id", null],
  ['{"metadata":{}}', "metadata", "user_id", null],
  ['{"metadata":{"user_id":7}}', "metadata", "user_id", null],
  ['{"metadata":{"user_id" "x"}}', "metadata", "user_id", null],
  ["{}", "metadata", "user_id", null],
];
for (const [text, outer, inner, want] of nested) {
  Deno.test(`findNested() finds ${outer}.${inner} as ${want} in ${text}`, () => {
    const bytes = bytesOf(text);
    assertEquals(readStringValue(bytes, findNested(bytes, findMember(membersOf(text), outer), inner)), want);
  });
}

const edits: { name: string; text: string; edits: JsonEdit[]; want: string }[] = [
  {
    name: "replaces a value and nothing else",
    text: '{ "a" : 1 , "model" :\t"m" }',
    edits: [{ key: "model", json: '"n"' }],
    want: '{ "a" : 1 , "model" :\t"n" }',
  },
  {
    name: "replaces all duplicates",
    text: '{"a":1,"b":2,"a":3}',
    edits: [{ key: "a", json: "9" }],
    want: '{"a":9,"b":2,"a":9}',
  },
  { name: "removes the first", text: '{"a":1, "b":2}', edits: [{ key: "a", remove: true }], want: '{"b":2}' },
  {
    name: "removes one in the middle",
    text: '{"a":1, "b":2, "c":3}',
    edits: [{ key: "b", remove: true }],
    want: '{"a":1, "c":3}',
  },
  {
    name: "removes the last",
    text: '{"a":1, "b":2 }',
    edits: [{ key: "b", remove: true }],
    want: '{"a":1 }',
  },
  {
    name: "removes the last two",
    text: '{"a":1,"b":2,"c":3}',
    edits: [{ key: "c", remove: true }, { key: "b", remove: true }],
    want: '{"a":1}',
  },
  {
    name: "removes neighbours in the middle",
    text: '{"a":1,"b":2,"c":3,"d":4}',
    edits: [{ key: "b", remove: true }, { key: "c", remove: true }],
    want: '{"a":1,"d":4}',
  },
  { name: "removes the only one", text: '{ "a":1 }', edits: [{ key: "a", remove: true }], want: "{  }" },
  {
    name: "removes all duplicates",
    text: '{"a":1,"b":2,"a":3}',
    edits: [{ key: "a", remove: true }],
    want: '{"b":2}',
  },
  {
    name: "appends to an empty object",
    text: "{}",
    edits: [{ key: "a", json: "1" }, { key: "b", json: "2" }],
    want: '{"a":1,"b":2}',
  },
  {
    name: "appends after the last",
    text: '{"a":1 }',
    edits: [{ key: "b", json: "[]" }],
    want: '{"a":1,"b":[] }',
  },
  {
    name: "appends where the last is removed",
    text: '{"a":1,"b":2}',
    edits: [{ key: "b", remove: true }, { key: "c", json: "3" }],
    want: '{"a":1,"c":3}',
  },
  {
    name: "appends where all are removed",
    text: '{"a":1,"b":2}',
    edits: [{ key: "a", remove: true }, { key: "b", remove: true }, { key: "c", json: "3" }],
    want: '{"c":3}',
  },
  {
    name: "replaces the last and appends",
    text: '{"a":1}',
    edits: [{ key: "a", json: "22" }, { key: "b", json: "3" }],
    want: '{"a":22,"b":3}',
  },
  { name: "escapes an appended name", text: "{}", edits: [{ key: 'q"', json: "1" }], want: '{"q\\"":1}' },
  {
    name: "takes the last edit of a name",
    text: '{"a":1}',
    edits: [{ key: "a", json: "2" }, { key: "a", remove: true }],
    want: "{}",
  },
  {
    name: "leaves a name that is not there",
    text: '{"a":1}',
    edits: [{ key: "z", remove: true }],
    want: '{"a":1}',
  },
  {
    name: "keeps signed text, long numbers and odd escapes (B112)",
    text: '{"model":"x","messages":[{"thinking":"\\u00e9 é \\/ 1e2","n":1234567890123456789}],"z":1e2}',
    edits: [{ key: "model", json: '"longer-name"' }],
    want:
      '{"model":"longer-name","messages":[{"thinking":"\\u00e9 é \\/ 1e2","n":1234567890123456789}],"z":1e2}',
  },
];
for (const c of edits) {
  Deno.test(`editTopLevel() ${c.name}`, () => {
    const edited = editTopLevel(bytesOf(c.text), membersOf(c.text), c.edits);
    assertEquals(textOf(edited), c.want);
    assert(scanTopLevel(edited).ok);
  });
}

Deno.test("editTopLevel() gives the input itself when nothing changes", () => {
  const bytes = bytesOf('{"a":1}');
  assert(editTopLevel(bytes, membersOf('{"a":1}'), []) === bytes);
  assert(editTopLevel(bytes, membersOf('{"a":1}'), [{ key: "b", remove: true }]) === bytes);
});

Deno.test("editTopLevel() does to any object what the edits say", () => {
  const key = fc.constantFrom("a", "b", "c", "d", "e");
  const edit = fc.oneof(
    fc.record({ key, json: fc.jsonValue().map((value) => JSON.stringify(value)) }),
    fc.record({ key, remove: fc.constant(true as const) }),
  );
  fc.assert(
    fc.property(
      fc.dictionary(key, fc.jsonValue()),
      fc.array(edit),
      fc.constantFrom(0, 2),
      (object, list, indent) => {
        const text = JSON.stringify(object, null, indent);
        const want = new Map(Object.entries(JSON.parse(text)));
        for (const e of list) {
          if ("json" in e) want.set(e.key, JSON.parse(e.json));
          else want.delete(e.key);
        }
        const edited = textOf(editTopLevel(bytesOf(text), membersOf(text), list));
        assertEquals(new Map(Object.entries(JSON.parse(edited))), want);
      },
    ),
    { numRuns: 300 },
  );
});
