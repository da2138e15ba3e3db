/** Arguments of tool calls that stay a JSON object, whatever the model wrote. */
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { JsonMender, mendArguments } from "../../../lib/protocol/translate/json_mender.ts";

const cases: { name: string; text: string; want: string }[] = [
  { name: "nothing", text: "", want: "{}" },
  { name: "space alone", text: " \n", want: "{}" },
  { name: "an object with space", text: ' { "a" : [ 1 , 2 ] }', want: ' { "a" : [ 1 , 2 ] }' },
  { name: "an object and more", text: '{"a":1} and so on', want: '{"a":1}' },
  { name: "an opening", text: "{", want: "{}" },
  { name: "nonsense", text: "{oops", want: "{}" },
  { name: "no object", text: "[1]", want: "{}" },
  { name: "a bare text", text: '"a"', want: "{}" },
  { name: "a key cut in half", text: '{"ke', want: '{"ke":null}' },
  { name: "a key without its colon", text: '{"k"', want: '{"k":null}' },
  { name: "a colon without its value", text: '{"k":', want: '{"k":null}' },
  { name: "a value cut in half", text: '{"k":"va', want: '{"k":"va"}' },
  { name: "a comma at the end", text: '{"k":1,', want: '{"k":1}' },
  { name: "a comma before the end", text: '{"k":1,}', want: '{"k":1}' },
  { name: "an open list", text: '{"k":[1,2', want: '{"k":[1,2]}' },
  { name: "an open escape", text: '{"k":"a\\', want: '{"k":"a\\\\"}' },
  { name: "an open code point", text: '{"k":"\\u00', want: '{"k":"\\u0000"}' },
  { name: "an illegal escape", text: '{"k":"a\\x","l":1}', want: '{"k":"a\\\\"}' },
  { name: "a raw line break in a text", text: '{"k":"a\nb"}', want: '{"k":"a\\nb"}' },
  { name: "a word cut in half", text: '{"k":tr', want: '{"k":true}' },
  { name: "a word that is none", text: '{"k":trx}', want: '{"k":true}' },
  { name: "a number cut in half", text: '{"k":-1.', want: '{"k":-1.0}' },
  { name: "a number that is none", text: '{"k":1.}', want: '{"k":1.0}' },
  { name: "a leading zero", text: '{"k":01}', want: '{"k":0}' },
  { name: "a long number", text: '{"k":1234567890123456789}', want: '{"k":1234567890123456789}' },
];
for (const c of cases) {
  Deno.test(`mendArguments() makes an object of ${c.name}`, () => {
    assertEquals(mendArguments(c.text), c.want);
    JSON.parse(c.want);
  });
}

const objects = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value, null, 1));

Deno.test("mendArguments() leaves every object as it is", () => {
  fc.assert(fc.property(objects, (text) => assertEquals(mendArguments(text), text)));
});

Deno.test("mendArguments() completes every object that breaks off", () => {
  fc.assert(fc.property(objects, fc.nat(), (text, at) => {
    JSON.parse(mendArguments(text.slice(0, at % (text.length + 1))));
  }));
});

Deno.test("mendArguments() makes an object of any text", () => {
  const nearJson = fc.array(fc.constantFrom(...'{}[]",:\\ua0-1.eEtrulfns \n\t'.split("")), { maxLength: 40 });
  fc.assert(
    fc.property(fc.oneof(fc.string(), nearJson.map((chars) => `{"${chars.join("")}`)), (text) => {
      const value = JSON.parse(mendArguments(text));
      assertEquals(typeof value === "object" && !Array.isArray(value), true);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("JsonMender tells the same in pieces of any size", () => {
  fc.assert(fc.property(fc.oneof(objects, fc.string()), fc.integer({ min: 1, max: 5 }), (text, size) => {
    const mender = new JsonMender();
    let told = "";
    for (let at = 0; at < text.length; at += size) told += mender.push(text.slice(at, at + size));
    assertEquals(told + mender.end(), mendArguments(text));
  }));
});
