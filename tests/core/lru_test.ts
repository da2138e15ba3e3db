import { assertEquals, assertThrows } from "@std/assert";
import { LruMap } from "../../lib/core/lru.ts";

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

Deno.test("LruMap drops the oldest beyond its capacity", () => {
  const map = new LruMap<number, string>(4);
  for (const key of range(0, 6)) map.set(key, `v${key}`);
  assertEquals(range(0, 6).map((key) => map.get(key)), [undefined, undefined, "v2", "v3", "v4", "v5"]);
  assertEquals(map.size, 4);
});

Deno.test("LruMap keeps what is used, however much comes in between", () => {
  const map = new LruMap<number, number>(10);
  map.set(-1, 7);
  for (const key of range(0, 1_000)) {
    map.set(key, key);
    assertEquals(map.get(-1), 7);
  }
});

Deno.test("LruMap keeps whatever was used within the last half of its capacity", () => {
  const map = new LruMap<number, number>(10);
  for (const key of range(0, 10)) map.set(key, key);
  for (const key of range(0, 5)) map.get(key);
  for (const key of range(10, 15)) map.set(key, key);
  // The five that were not used have gone.
  assertEquals(range(0, 10).filter((key) => map.get(key) !== undefined), [0, 1, 2, 3, 4]);
});

Deno.test("LruMap replaces, deletes one, and deletes those that match", () => {
  const map = new LruMap<string, number>(3);
  map.set("a", 1);
  map.set("a", 2);
  map.set("b", 3);
  assertEquals([map.size, map.get("a")], [2, 2]);
  map.delete("a");
  map.deleteWhere((value) => value === 3);
  assertEquals([map.size, map.get("a"), map.get("b")], [0, undefined, undefined]);
});

Deno.test("LruMap refuses a capacity that is none", () => {
  for (const capacity of [0, -1, 1.5, NaN]) assertThrows(() => new LruMap(capacity), RangeError);
});
