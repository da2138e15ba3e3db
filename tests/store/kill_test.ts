/** `kill -9` at any moment loses nothing that was acknowledged (invariants P23, P26, P28). */
import { assertEquals, assertThrows } from "@std/assert";
import { StoreFailure } from "../../lib/ports.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { readNumbers, WRITER } from "../support/store_writer.ts";
import { TempFolder } from "../support/temp_folder.ts";

/** `HOLDFAST_KILLS=200` for the long run. */
const KILLS = Number(Deno.env.get("HOLDFAST_KILLS") ?? 20);

function startWriter(path: string, first: number): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", WRITER, path, `${first}`],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Starts a writer, kills it once it has said so many lines, and gives all lines it got out. */
async function runAndKill(path: string, first: number, killAfterLines: number): Promise<string[]> {
  const child = startWriter(path, first);
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
    const killAfterLines = 1 + kill * 37 % 151;
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

Deno.test(`a store whose creation is killed ${KILLS} times is created by the next start`, async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    using folder = new TempFolder();
    const path = folder.file("store.db");
    const lines = await runAndKill(path, 1, 1);
    assertEquals(
      readNumbers(path) >= lines.filter((line) => /^\d+$/.test(line)).length,
      true,
      `kill ${kill}`,
    );
  }
});

Deno.test("a second process is refused while the first lives, and let in however that one ended", async () => {
  using folder = new TempFolder();
  const path = folder.file("store.db");
  let next = 1;
  for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
    const child = startWriter(path, next);
    const stderr = new Response(child.stderr).text();
    let text = "";
    let linesAtRefusal = 0;
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const lineCount = text.split("\n").length - 1;
      if (linesAtRefusal === 0 && lineCount > 3) {
        linesAtRefusal = lineCount;
        assertThrows(
          () => openDatabase(path),
          StoreFailure,
          `another process (pid ${child.pid}) is using it`,
        );
      }
      // The refused one did no harm: the first goes on acknowledging.
      if (linesAtRefusal > 0 && lineCount > linesAtRefusal + 20) child.kill(signal);
    }
    await child.status;
    assertEquals([linesAtRefusal > 0, await stderr], [true, ""]);
    next = readNumbers(path) + 1;
    assertEquals(next > 20, true);
  }
});
