/**
 * Disks that really fail, in a mount namespace of this process: nothing is left behind, even when it is killed.
 *
 * `unshare --mount deno run -A store_faults.ts CASE FOLDER`; exits 0 when the store behaved, else says how not.
 * Each case starts `store_writer.ts` as its own process and looks at its exit, its one line and its file.
 */
import { assertEquals } from "@std/assert";
import { readNumbers, WRITER } from "./store_writer.ts";

export const FAULT_CASES = [
  "a disk that fills up while running",
  "a full disk at the first start",
  "a read-only disk under an existing store",
  "a read-only disk at the first start",
  "a file of another user",
  "a folder of another user",
] as const;

type FaultCase = typeof FAULT_CASES[number];

interface Ended {
  readonly code: number;
  /** Highest number acknowledged, 0 = none. */
  readonly acknowledged: number;
  readonly stderr: string;
}

function run(name: FaultCase, folder: string): void {
  const path = `${folder}/store.db`;
  switch (name) {
    case "a disk that fills up while running": {
      mount("tmpfs", folder, "size=2m");
      const ended = write(path);
      requireFailure(ended, "the disk is full");
      assertEquals(ended.acknowledged > 20, true, `only ${ended.acknowledged} writes fitted`);
      // The disk is still full: the next start says so again, and harms nothing.
      requireFailure(write(path, ended.acknowledged + 1), "the disk is full");
      remount(folder, "size=64m");
      requireKept(path, ended.acknowledged);
      return;
    }
    case "a full disk at the first start":
      mount("tmpfs", folder, "size=32k");
      requireFailure(write(path), "the disk is full");
      remount(folder, "size=64m");
      requireKept(path, 0);
      return;
    case "a read-only disk under an existing store": {
      mount("tmpfs", folder, "size=64m");
      const acknowledged = writeSome(path);
      remount(folder, "ro");
      requireFailure(write(path, acknowledged + 1), "read-only");
      remount(folder, "rw");
      requireKept(path, acknowledged);
      return;
    }
    case "a read-only disk at the first start":
      mount("tmpfs", folder, "size=64m");
      remount(folder, "ro");
      requireFailure(write(path), "read-only");
      assertEquals([...Deno.readDirSync(folder)], []);
      return;
    case "a file of another user": {
      const acknowledged = writeSome(path);
      Deno.chmodSync(path, 0o000);
      requireFailure(write(path, acknowledged + 1, WITHOUT_PRIVILEGE), /permission denied|cannot be opened/);
      Deno.chmodSync(path, 0o600);
      requireKept(path, acknowledged);
      return;
    }
    case "a folder of another user":
      Deno.chmodSync(folder, 0o555);
      requireFailure(write(path, 1, WITHOUT_PRIVILEGE), "permission denied");
      Deno.chmodSync(folder, 0o700);
      requireKept(path, 0);
      return;
    default:
      name satisfies never;
  }
}

/** The superuser passes by file modes; without these two capabilities it does not. */
const WITHOUT_PRIVILEGE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"];

function write(path: string, first = 1, prefix: readonly string[] = []): Ended {
  const [command, ...args] = [...prefix, Deno.execPath(), "run", "-A", WRITER, path, `${first}`];
  const { code, stdout, stderr } = new Deno.Command(command!, { args }).outputSync();
  const lines = new TextDecoder().decode(stdout).split("\n").slice(0, -1);
  const acknowledged = Number(lines.findLast((line) => /^\d+$/.test(line)) ?? 0);
  return { code, acknowledged, stderr: new TextDecoder().decode(stderr) };
}

/** @returns how many were acknowledged by a writer that was stopped by its reader going away */
function writeSome(path: string): number {
  const script = `"$@" | head -n 12`;
  const { stdout } = new Deno.Command("sh", {
    args: ["-c", script, "sh", Deno.execPath(), "run", "-A", WRITER, path, "1"],
    stderr: "null",
  }).outputSync();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assertEquals(lines.length, 12);
  return Number(lines.at(-1));
}

function requireFailure(ended: Ended, says: string | RegExp): void {
  assertEquals(ended.code, 70, ended.stderr);
  assertEquals(ended.stderr.trimEnd().split("\n").length, 1, ended.stderr);
  const isNamed = typeof says === "string" ? ended.stderr.includes(says) : says.test(ended.stderr);
  assertEquals(isNamed, true, ended.stderr);
}

function requireKept(path: string, acknowledged: number): void {
  const kept = readNumbers(path);
  assertEquals(kept >= acknowledged, true, `${acknowledged} was acknowledged, ${kept} is the last kept`);
}

function mount(type: string, folder: string, options: string): void {
  command("mount", "-t", type, "-o", options, type, folder);
}

function remount(folder: string, options: string): void {
  command("mount", "-o", `remount,${options}`, folder);
}

function command(name: string, ...args: string[]): void {
  const { success, stderr } = new Deno.Command(name, { args }).outputSync();
  if (success) return;
  throw new Error(`Cannot run "${name} ${args.join(" ")}": ${new TextDecoder().decode(stderr).trim()}`);
}

if (import.meta.main) run(Deno.args[0] as FaultCase, Deno.args[1]!);
