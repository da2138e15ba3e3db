/** A small share of what `deno task sim` does, with every test run. */
import { assert, assertEquals } from "@std/assert";
import { EventQueue } from "./event_queue.ts";
import { INVARIANTS } from "./invariants.ts";
import { parseOptions } from "./options.ts";
import type { StoreKind } from "./params.ts";
import { PLANTS } from "./plants/all_plants.ts";
import { huntPlant } from "./plant_hunt.ts";
import { failureOf } from "./block.ts";
import { runSeed } from "./run_seed.ts";
import { KNOWN_SEEDS } from "./seeds.ts";

function requireHolds(seed: number, store: StoreKind, compare: "always" | "never"): void {
  const report = runSeed({ seed, store, plant: null, compare, verbose: false });
  if (report.violation !== null) throw new Error(failureOf(report).story);
}

for (let from = 1; from <= 41; from += 10) {
  Deno.test(`simulation holds every invariant for seeds ${from} to ${from + 9}, in any order of the accounts`, () => {
    for (let seed = from; seed < from + 10; seed++) requireHolds(seed, "memory", "always");
  });
}

Deno.test("simulation holds every invariant over real SQLite and its crashes for ten seeds", () => {
  for (let seed = 51; seed <= 60; seed++) requireHolds(seed, "sqlite", "never");
});

for (const { seed, broke } of KNOWN_SEEDS) {
  Deno.test(`simulation holds seed ${seed}, which broke ${broke}`, () =>
    requireHolds(seed, "memory", "never"));
}

for (const plant of PLANTS) {
  Deno.test(`simulation finds a pool that ${plant.breaks}`, () => {
    const found = huntPlant(plant, 1);
    assert(found !== null, `${plant.name} was not found`);
  });
}

Deno.test("INVARIANTS names P1 to P42, each with a check or a reason, and only checks that exist", async () => {
  const ids = INVARIANTS.map(({ id }) => id);
  assertEquals(ids.filter((id) => id.startsWith("P")), Array.from({ length: 42 }, (_, at) => `P${at + 1}`));
  for (const { id, checks, note } of INVARIANTS) {
    assert(checks.length > 0 || note !== undefined, `${id} has neither check nor reason`);
    for (const check of checks) {
      const [file, name] = check.split("#");
      const text = await Deno.readTextFile(new URL(file!, import.meta.url));
      assert(
        new RegExp(`export (?:(?:async )?function|class) ${name}\\b`).test(text),
        `${id}: there is no ${check}`,
      );
    }
  }
});

Deno.test("INVARIANTS holds every name that a check gives", async () => {
  const ids = new Set(INVARIANTS.map(({ id }) => id));
  for (const folder of ["checks/", "referee/", "drive/"]) {
    const url = new URL(folder, import.meta.url);
    for await (const { name } of Deno.readDir(url)) {
      const text = await Deno.readTextFile(new URL(name, url));
      for (const [, id] of text.matchAll(/"(P\d+|TABLE|THROWS|LIVENESS)"/g)) {
        assert(ids.has(id!), `${name} names ${id}`);
      }
    }
  }
});

Deno.test("EventQueue.pop() gives the earliest first, and of one moment the one that was pushed first", () => {
  const queue = new EventQueue();
  const seen: string[] = [];
  const push = (atMs: number, name: string) => queue.push(atMs, () => seen.push(name));
  push(3, "c");
  push(1, "a1");
  push(2, "b");
  push(1, "a2");
  push(0, "zero");
  for (let event = queue.pop(); event !== undefined; event = queue.pop()) event.run();
  assertEquals(seen, ["zero", "a1", "a2", "b", "c"]);
});

const arguments_ = [
  { args: [], want: { mode: "campaign", from: 1, seeds: 1_000, store: "mixed" } },
  { args: ["--seeds", "7", "--from", "3"], want: { mode: "campaign", from: 3, seeds: 7 } },
  { args: ["--seed", "9"], want: { mode: "replay", from: 9 } },
  { args: ["--plant", "two-probes"], want: { mode: "plant", plant: "two-probes" } },
  { args: ["--requests", "500"], want: { requests: 500, seeds: Number.MAX_SAFE_INTEGER } },
] as const;
for (const { args, want } of arguments_) {
  Deno.test(`parseOptions() reads ${JSON.stringify(args)}`, () => {
    const options = parseOptions(args);
    if (typeof options === "string") throw new Error(options);
    for (const [key, value] of Object.entries(want)) {
      assertEquals(options[key as keyof typeof options], value);
    }
  });
}

for (const args of [["--seeds", "0"], ["--seeds", "many"], ["--store", "tape"], ["--unheard-of"]]) {
  Deno.test(`parseOptions() refuses ${JSON.stringify(args)}`, () =>
    assertEquals(typeof parseOptions(args), "string"));
}
