/** Header fields against the runtime's own `Headers`, which they stand in for. */
import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { HeaderFields, isLegalField } from "../../lib/core/header_fields.ts";

type Pairs = readonly (readonly [string, string])[];

function both(pairs: Pairs): { own: HeaderFields; native: Headers } {
  const own = new HeaderFields();
  const native = new Headers();
  for (const [name, value] of pairs) {
    own.append(name, value);
    native.append(name, value);
  }
  return { own, native };
}

const name = fc.string({ unit: fc.constantFrom("a", "B", "-", "1", "x"), minLength: 1, maxLength: 3 });
// Not blank: the runtime forgets an empty value when another is appended.
const value = fc.string({ unit: fc.constantFrom("a", " ", "\t", ",", "\u00ff", "\u0001"), maxLength: 5 })
  .filter((text) => text.trim() !== "");

Deno.test("HeaderFields answer as Headers do, whatever is appended, set and deleted", () => {
  fc.assert(fc.property(fc.array(fc.tuple(name, value)), name, value, (pairs, any, text) => {
    const { own, native } = both(pairs);
    const other = any.toLowerCase();
    const same = () => {
      assertEquals([...own].sort(), [...native].sort());
      assertEquals([own.get(other), own.has(other)], [native.get(other), native.has(other)]);
    };
    same();
    own.set(other, text);
    native.set(other, text);
    same();
    own.delete(other);
    native.delete(other);
    same();
    assertEquals([...HeaderFields.from(native)].sort(), [...own].sort());
  }));
});

const impossible: Pairs = [["", "1"], ["a b", "1"], ["a:", "1"], ["x", "1\r\ny: 2"], ["x", "SENT-\n"], [
  "x",
  "a\0",
], [
  "x",
  "\u5317",
]];
for (const [name, value] of impossible) {
  Deno.test(`HeaderFields refuse ${JSON.stringify([name, value])} without showing the value`, () => {
    const error = assertThrows(() => new HeaderFields().append(name, value), TypeError);
    assertEquals(error.message.includes("SENT-"), false);
    assertThrows(() => new HeaderFields().set(name, value), TypeError);
    assertEquals(isLegalField(name, value), false);
  });
}

Deno.test("HeaderFields keep the order fields came in and walk in it", () => {
  const fields = HeaderFields.from({ "X-B": "1", a: "2" });
  fields.append("x-b", "3");
  const walked: string[] = [];
  fields.forEach((value, name) => walked.push(`${name}=${value}`));
  assertEquals(walked, ["x-b=1, 3", "a=2"]);
});
