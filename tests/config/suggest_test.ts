import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { editDistance, suggest } from "../../lib/config_suggest.ts";

const KEYS = ["host", "port", "auth-dir", "api-keys", "max-retry-interval", "poll-interval-seconds", "level"];

const cases = [
  { name: "a swap", word: "hots", want: "host" },
  { name: "a missing letter", word: "prt", want: "port" },
  { name: "one letter too many", word: "portt", want: "port" },
  { name: "another letter", word: "lebel", want: "level" },
  { name: "camel case", word: "maxRetryInterval", want: "max-retry-interval" },
  { name: "snake case", word: "max_retry_interval", want: "max-retry-interval" },
  { name: "capitals", word: "AUTH-DIR", want: "auth-dir" },
  { name: "an end too many", word: "hostname", want: "host" },
  { name: "an end too few", word: "poll-interval", want: "poll-interval-seconds" },
  { name: "a third of the letters", word: "max-rety-intervl", want: "max-retry-interval" },
  { name: "too few letters in common", word: "hxyt", want: null },
  { name: "another word", word: "colour", want: null },
  { name: "nothing", word: "", want: null },
  { name: "a word too long to be one", word: "host".padEnd(65, "x"), want: null },
] as const;
for (const c of cases) {
  Deno.test(`suggest() answers ${c.want ?? "nothing"} to ${c.name}`, () => {
    assertEquals(suggest(c.word, KEYS), c.want);
  });
}

Deno.test("suggest() answers the first of equally near words, and the nearest of all", () => {
  assertEquals(suggest("bat", ["cat", "hat"]), "cat");
  assertEquals(suggest("mode", ["model", "mode", "node"]), "mode");
  assertEquals(suggest("x", []), null);
});

const distances = [
  { a: "", b: "", want: 0 },
  { a: "abc", b: "", want: 3 },
  { a: "abc", b: "abc", want: 0 },
  { a: "abc", b: "acb", want: 1 },
  { a: "kitten", b: "sitting", want: 3 },
  { a: "ca", b: "abc", want: 3 },
] as const;
for (const c of distances) {
  Deno.test(`editDistance() is ${c.want} from "${c.a}" to "${c.b}"`, () => {
    assertEquals(editDistance(c.a, c.b), c.want);
  });
}

Deno.test("editDistance() is symmetric, zero for equal words alone, and at most the longer word", () => {
  fc.assert(fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
    const distance = editDistance(a, b);
    assertEquals(distance, editDistance(b, a));
    assertEquals(distance === 0, a === b);
    assertEquals(distance <= Math.max(a.length, b.length), true);
    assertEquals(distance >= Math.abs(a.length - b.length), true);
  }));
});
