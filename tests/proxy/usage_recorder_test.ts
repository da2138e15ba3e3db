import { assertEquals } from "@std/assert";
import type { UsageKey } from "../../lib/ports.ts";
import type { TokenUsage } from "../../lib/protocol/stream_dialect.ts";
import { UsageRecorder } from "../../lib/proxy/usage_recorder.ts";
import { SqliteAccountStore } from "../../lib/store/account_store.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { FakeClock } from "../support/fake_clock.ts";

const KEY: UsageKey = {
  tenant: "key:a",
  keyHint: "hf_a…",
  provider: "codex",
  model: "gpt-5.5",
  effort: "high",
};

/** What the real store holds after each of the keys asked once; its refusal would end the process. */
function rowsOf(keys: readonly UsageKey[], usage: TokenUsage | null = null): string[] {
  using database = openDatabase(":memory:");
  const store = new SqliteAccountStore(database);
  const clock = new FakeClock();
  const recorder = new UsageRecorder(store, clock, () => true, (error) => {
    throw error;
  });
  for (const key of keys) recorder.add(key, usage, false, clock.now());
  recorder.flush();
  return store.usageTotals({ fromMs: 0, toMs: clock.now() + 1, tenant: null })
    .map(({ key, count }) => `${key.model}/${key.effort} ${count.requests}`);
}

const words = [
  { name: "a line break", word: "a\nb" },
  { name: "a NUL", word: "\u0000" },
  { name: "a DEL", word: "a\u007f" },
  { name: "half a surrogate pair", word: "\ud800" },
  { name: "more than any name has", word: "x".repeat(5_000) },
] as const;
for (const { name, word } of words) {
  Deno.test(`UsageRecorder counts a model and an effort with ${name} without their name`, () => {
    assertEquals(rowsOf([{ ...KEY, model: word }]), ["/high 1"]);
    assertEquals(rowsOf([{ ...KEY, effort: word }]), ["gpt-5.5/ 1"]);
    assertEquals(rowsOf([{ ...KEY, model: word, effort: word }, { ...KEY, model: "", effort: "" }]), ["/ 2"]);
  });
}

Deno.test("UsageRecorder keeps names of exactly the longest length", () => {
  const model = "m".repeat(128);
  assertEquals(rowsOf([{ ...KEY, model }, { ...KEY, model: `${model}m` }]), ["/high 1", `${model}/high 1`]);
  const effort = "e".repeat(64);
  assertEquals(rowsOf([{ ...KEY, effort }, { ...KEY, effort: `${effort}e` }]), [
    "gpt-5.5/ 1",
    `gpt-5.5/${effort} 1`,
  ]);
});
