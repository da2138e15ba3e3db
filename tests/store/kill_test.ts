/** `kill -9` at any moment loses nothing that was acknowledged (invariants P23, P26, P28). */
import { assertEquals } from "@std/assert";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";
import { accountOf, timeOf } from "../support/store_writer.ts";
import { TempFolder } from "../support/temp_folder.ts";

const WRITER = new URL("../support/store_writer.ts", import.meta.url).pathname;
/** `HOLDFAST_KILLS=200` for the long run. */
const KILLS = Number(Deno.env.get("HOLDFAST_KILLS") ?? 20);

/** Starts a writer, kills it once it has said so many lines, and gives all lines it got out. */
async function runAndKill(path: string, first: number, killAfterLines: number): Promise<string[]> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", WRITER, path, `${first}`],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stderr = new Response(child.stderr).text();
  let text = "";
  let isKilled = false;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (!isKilled && text.split("\n").length > killAfterLines) {
      child.kill("SIGKILL");
      isKilled = true;
    }
  }
  const { signal } = await child.status;
  assertEquals([isKilled, signal, await stderr], [true, "SIGKILL", ""]);
  // A last line without its end was cut by the kill: not acknowledged.
  return text.split("\n").slice(0, -1);
}

Deno.test(`a store killed ${KILLS} times holds all that was acknowledged and no half`, async () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  let acknowledged = 0;
  let next = 1;
  for (let kill = 0; kill < KILLS; kill++) {
    // The first ones hit the creation of the file; then anywhere.
    const killAfterLines = kill < 3 ? kill + 1 : 1 + kill * 37 % 151;
    const context = `kill ${kill} after ${killAfterLines} lines`;
    const lines = await runAndKill(path, next, killAfterLines);
    const numbers = lines.filter((line) => /^\d+$/.test(line)).map(Number);
    assertEquals(numbers, numbers.map((_, i) => next + i), context);
    acknowledged = Math.max(acknowledged, numbers.at(-1) ?? 0);
    const kept = readNumbers(path);
    assertEquals(
      kept >= acknowledged,
      true,
      `${context}: ${acknowledged} was acknowledged, ${kept} is the last kept`,
    );
    next = kept + 1;
  }
  assertEquals(acknowledged > KILLS, true, `only ${acknowledged} writes were tried`);
});

/** @returns the last number kept, after making sure that all up to it are there in full. */
function readNumbers(path: string): number {
  using database = openDatabase(path);
  assertEquals(database.read("check", (connection) => connection.pragma("integrity_check")), "ok");
  const state = new SqlitePoolStore(database).load();
  const count = state.deadlines.length;
  const want = Array.from({ length: count }, (_, i) => i + 1);
  const ends = new Map(state.deadlines.map((row) => [row.account, row.deadline.untilMs]));
  assertEquals(want.map((number) => ends.get(accountOf(number))), want.map(timeOf));
  const credentials = new Set(state.credentials.map((row) => row.account));
  assertEquals([credentials.size, want.every((number) => credentials.has(accountOf(number)))], [count, true]);
  const charged = new Set(state.openLedgers.flatMap((row) => row.charged));
  assertEquals([charged.size, want.every((number) => charged.has(`req_${number}:1`))], [count, true]);
  const affinity = new SqliteAffinityStore(database);
  // The binding is a second transaction: only the last may still be without it, when it was not acknowledged.
  const bound = want.filter((number) => affinity.get(`session-${number}`)?.account === accountOf(number));
  assertEquals(bound, want.slice(0, bound.length));
  return bound.length;
}
