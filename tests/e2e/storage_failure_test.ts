/** When the disk fails the process says so, ends what is open, and stops with a non-zero code within 10 s (ruling 9). */
import { assert, assertEquals } from "@std/assert";
import { created, delta, failure, hold, ok, stream } from "../../lib/demo/simulated_replies.ts";
import { ProcessRig } from "../support/process_rig.ts";

function run(command: string, ...args: string[]): void {
  const { code, stderr } = new Deno.Command(command, { args, stdout: "null", stderr: "piped" }).outputSync();
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

/** A disk of its own for the database, small enough to fill. */
class SmallDisk implements Disposable {
  readonly path: string;

  constructor(rig: ProcessRig) {
    this.path = rig.folder.file("disk");
    Deno.mkdirSync(this.path);
    run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", this.path);
  }

  fill(): void {
    for (let size = 65_536; size >= 1; size = Math.floor(size / 4)) {
      try {
        for (let index = 0;; index++) {
          Deno.writeFileSync(`${this.path}/fill-${size}-${index}`, new Uint8Array(size));
        }
      } catch {
        // Full for this size; smaller ones follow.
      }
    }
  }

  [Symbol.dispose](): void {
    run("umount", "-l", this.path);
  }
}

const LIMITED = failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } });

async function endsLoudly(rig: ProcessRig, word: RegExp): Promise<void> {
  const began = performance.now();
  const code = await rig.ended();
  assert(code !== 0, "it ended as if nothing had happened");
  assert(performance.now() - began < 10_000);
  const last = rig.stderr.trim().split("\n").filter((line) => line.startsWith("holdfast:"));
  assertEquals(last.length, 1, rig.stderr);
  assert(word.test(last[0]!), last[0]);
}

Deno.test("a full disk ends the process with its cause in one line; open streams end, nothing claims success", async () => {
  await using rig = await ProcessRig.create(["A"]);
  using disk = new SmallDisk(rig);
  rig.writeConfig({ database: { path: `${disk.path}/holdfast.db` } });
  rig.provider.account("SENT-tok-A").script(stream([created(), delta("Hel"), hold()])).otherwise(LIMITED);
  await rig.start();
  const open = await rig.call({ stream: true });
  assertEquals(open.status, 200);
  disk.fill();
  const told: number[] = [];
  for (let turn = 0; turn < 6; turn++) {
    try {
      const answer = await rig.call();
      told.push(answer.status);
      await answer.body?.cancel();
    } catch {
      break;
    }
  }
  assert(!told.includes(429), "a deadline was told that is not on disk");
  await open.text().catch(() => "");
  await endsLoudly(rig, /full|space/i);
});

Deno.test("a database that vanishes ends the process at the next thing to remember", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").otherwise(LIMITED);
  await rig.start();
  for (const file of Deno.readDirSync(rig.folder.file("state"))) {
    Deno.removeSync(rig.folder.file(`state/${file.name}`));
  }
  await rig.call().then((answer) => answer.body?.cancel(), () => {});
  await endsLoudly(rig, /gone|vanish|no longer|not the file|missing|removed|replaced/i);
});

Deno.test("a damaged database keeps the program from starting, and is left as it is", async () => {
  await using rig = await ProcessRig.create(["A"]);
  rig.provider.account("SENT-tok-A").otherwise(ok("A"));
  await rig.start();
  await (await rig.call()).body?.cancel();
  rig.signal("SIGTERM");
  await rig.ended();
  const path = rig.folder.file("state/holdfast.db");
  const bytes = Deno.readFileSync(path);
  bytes.fill(0, 4_096, 8_192);
  Deno.writeFileSync(path, bytes);
  await rig.start();
  await endsLoudly(rig, /damaged|corrupt|malformed|not sound|repair|restore/i);
  assertEquals(Deno.readFileSync(path), bytes);
});
