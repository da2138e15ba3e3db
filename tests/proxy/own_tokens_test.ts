import { assertEquals } from "@std/assert";
import { OwnTokens } from "../../lib/proxy/own_tokens.ts";
import { createDigest } from "../../lib/runtime/digest.ts";

Deno.test("has() knows the last four tokens of an account until each one's end", () => {
  const own = new OwnTokens(createDigest());
  for (let i = 1; i <= 5; i++) own.add("a", `SENT-${i}`, i === 5 ? null : 1_000 * i);
  own.add("b", "SENT-B", 9_999);
  const live = (nowMs: number) =>
    ["SENT-1", "SENT-2", "SENT-3", "SENT-4", "SENT-5"].map((one) => own.has(one, nowMs));
  assertEquals(live(0), [false, true, true, true, true]);
  assertEquals(live(1_999), [false, true, true, true, true]);
  assertEquals(live(2_000), [false, false, true, true, true]);
  assertEquals(live(1e15), [false, false, false, false, true]);
  own.drop("a");
  assertEquals(live(0), [false, false, false, false, false]);
  assertEquals(own.has("SENT-B", 0), true);
});

Deno.test("add() of a known token corrects its end", () => {
  const own = new OwnTokens(createDigest());
  own.add("a", "SENT-1", 1_000);
  own.add("a", "SENT-1", 5_000);
  assertEquals([own.has("SENT-1", 4_999), own.has("SENT-1", 5_000)], [true, false]);
});
