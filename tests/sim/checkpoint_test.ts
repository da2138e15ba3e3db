/** A long run can be stopped at any moment, and goes on without running or counting a seed twice. */
import { assertEquals, assertThrows } from "@std/assert";
import { TempFolder } from "../support/temp_folder.ts";
import { type BlockReport, NO_TOTALS } from "./block.ts";
import { runCampaign } from "./campaign.ts";
import { Place, readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import { type Options, parseOptions } from "./options.ts";

function optionsOf(...args: readonly string[]): Options {
  const options = parseOptions(args);
  if (typeof options === "string") throw new Error(options);
  return options;
}

function report(from: number, count: number, failed = false): BlockReport {
  return {
    block: { from, count, store: "memory", strict: false },
    totals: { ...NO_TOTALS, seeds: count },
    failure: failed ? { seed: from, invariant: "P1", story: "" } : null,
  };
}

const orders = [
  { name: "in order", blocks: [1, 21, 41], nextSeed: 51, seeds: 50 },
  { name: "the first one last", blocks: [41, 21, 1], nextSeed: 51, seeds: 50 },
  { name: "one under way when it stops", blocks: [1, 41], nextSeed: 21, seeds: 20 },
  { name: "the first one under way when it stops", blocks: [21, 41], nextSeed: 1, seeds: 0 },
] as const;
for (const { name, blocks, nextSeed, seeds } of orders) {
  Deno.test(`Place keeps ${seeds} of 50 seeds when the blocks end: ${name}`, () => {
    const place = new Place(readCheckpoint(null, optionsOf()));
    for (const from of blocks) place.note(report(from, from === 41 ? 10 : 20));
    assertEquals([place.checkpoint.nextSeed, place.checkpoint.totals.seeds], [nextSeed, seeds]);
  });
}

Deno.test("Place does not pass a block that failed", () => {
  const place = new Place(readCheckpoint(null, optionsOf()));
  for (const one of [report(1, 20), report(21, 20, true), report(41, 20)]) place.note(one);
  assertEquals([place.checkpoint.nextSeed, place.checkpoint.totals.seeds], [21, 20]);
});

Deno.test("runCampaign() goes on from its checkpoint, and runs no seed twice", async () => {
  using folder = new TempFolder();
  const options = optionsOf(
    "--seeds",
    "30",
    "--workers",
    "1",
    "--store",
    "memory",
    "--checkpoint",
    folder.file("place"),
  );
  const seen: number[] = [];
  await runCampaign({ ...options, seeds: 20 }, (totals) => seen.push(totals.seeds));
  const result = await runCampaign(options, (totals) => seen.push(totals.seeds));
  assertEquals(seen, [20, 30]);
  assertEquals([result.nextSeed, result.failure], [31, null]);
});

for (const other of [["--from", "2"], ["--store", "memory"]]) {
  Deno.test(`readCheckpoint() refuses the place of another run: ${other.join(" ")}`, () => {
    using folder = new TempFolder();
    const path = folder.file("place");
    const checkpoint = readCheckpoint(path, optionsOf());
    writeCheckpoint(path, checkpoint);
    assertEquals(readCheckpoint(path, optionsOf("--seeds", "9")), checkpoint);
    assertThrows(() => readCheckpoint(path, optionsOf(...other)), Error, "of a run with --from 1");
  });
}

Deno.test("readCheckpoint() refuses what is no checkpoint, rather than to begin anew", () => {
  using folder = new TempFolder();
  Deno.writeTextFileSync(folder.file("place"), '{"from":1,"st');
  assertThrows(() => readCheckpoint(folder.file("place"), optionsOf()), SyntaxError);
});
