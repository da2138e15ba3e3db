import { assert, assertEquals, assertRejects } from "@std/assert";
import { join } from "node:path";
import { parseCredentialFile } from "../../lib/core/credential.ts";
import { mergeTokens } from "../../lib/core/credential_merge.ts";
import { StoreFailure } from "../../lib/ports.ts";
import { denoDisk, type Disk } from "../../lib/store/credential_disk.ts";
import { createCredentialFiles } from "../../lib/store/credential_files.ts";
import { codexAuthText } from "../support/credential_texts.ts";
import { Crash, MemoryDisk } from "../support/memory_disk.ts";

const PATH = "/auth/a.json";
const OLD = codexAuthText({ account: "acc", user: "user", refreshToken: "rt_SENT-OLD" });
const NOW_MS = 1_800_000_000_000;
const NEW_TOKENS = { accessToken: "SENT-A2", refreshToken: "rt_SENT-NEW", expiresAtMs: NOW_MS + 3_600_000 };
const rotate = (text: string) => mergeTokens(text, NEW_TOKENS, NOW_MS);

async function inTempDir(body: (dir: string) => Promise<void>): Promise<void> {
  const outer = await Deno.makeTempDir({ prefix: "holdfast" });
  try {
    // Field case B131: no character of a folder's name may lead elsewhere.
    const dir = join(
      await Deno.realPath(outer),
      Deno.build.os === "windows" ? "a b%20c#d é" : "a b%20c#d?e é",
    );
    await Deno.mkdir(dir);
    await body(dir);
  } finally {
    await Deno.remove(outer, { recursive: true });
  }
}

function refreshTokenIn(text: string | null): string | null {
  const parsed = parseCredentialFile(text ?? "");
  return parsed.kind === "credential" ? parsed.record.tokens.refreshToken : null;
}

Deno.test("update() replaces the file through two renames and leaves nothing beside it", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  assertEquals(await createCredentialFiles(disk).update(PATH, rotate), "replaced");
  assertEquals(refreshTokenIn(disk.text(PATH)), "rt_SENT-NEW");
  assertEquals([...disk.files.keys()], [PATH]);
  assertEquals(disk.writes, [
    "writeNew .a.json.pending.new",
    "rename .a.json.pending.new",
    "rename .a.json.pending",
    "flushDirectory auth",
  ]);
});

Deno.test("update() writes nothing when the change is refused, and nothing when there is no file", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  const files = createCredentialFiles(disk);
  assertEquals(await files.update(PATH, () => null), "kept");
  assertEquals(await files.update("/auth/none.json", rotate), "missing");
  assertEquals(disk.text(PATH), OLD);
  assertEquals([...disk.files.keys()], [PATH]);
});

/** Field case B052: an edit made while the new tokens are being saved. */
Deno.test("update() merges again when somebody wrote meanwhile, and keeps both", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  let editsLeft = 2;
  disk.before = (operation, path) => {
    if (operation !== "rename" || !path.endsWith(".new") || editsLeft-- <= 0) return;
    disk.put(PATH, JSON.stringify({ ...JSON.parse(disk.text(PATH)!), [`edit_${editsLeft}`]: "kept" }));
  };
  assertEquals(await createCredentialFiles(disk).update(PATH, rotate), "replaced");
  const root = JSON.parse(disk.text(PATH)!);
  assertEquals([root.edit_0, root.edit_1, root.tokens.refresh_token], ["kept", "kept", "rt_SENT-NEW"]);
  assertEquals([...disk.files.keys()], [PATH]);
});

Deno.test("update() gives up merging after five tries and writes: a busy writer cannot keep tokens off the disk", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  let serial = 0;
  disk.before = (operation, path) => {
    if (operation === "rename" && path.endsWith(".new")) {
      disk.put(PATH, codexAuthText({ serial: `${serial++}` }));
    }
  };
  assertEquals(await createCredentialFiles(disk).update(PATH, rotate), "replaced");
  assertEquals(serial, 5);
  assertEquals(refreshTokenIn(disk.text(PATH)), "rt_SENT-NEW");
});

Deno.test("update() leaves no copy beside a file that somebody else's login took over in the middle", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  const theirs = codexAuthText({ account: "acc", user: "user", refreshToken: "rt_SENT-LOGIN" });
  disk.before = (operation, path) => {
    if (operation === "rename" && path.endsWith(".new")) disk.put(PATH, theirs);
  };
  const change = (text: string) => text === OLD ? rotate(text) : null;
  assertEquals(await createCredentialFiles(disk).update(PATH, change), "kept");
  assertEquals([...disk.files.entries()].map(([path, file]) => [path, file.text]), [[PATH, theirs]]);
});

Deno.test("update() answers missing when the file goes away in the middle", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  disk.put("/auth/other.json", OLD);
  disk.before = (operation, path) => {
    if (operation === "rename" && path.endsWith(".new")) disk.files.delete(PATH);
  };
  assertEquals(await createCredentialFiles(disk).update(PATH, rotate), "missing");
  assertEquals(disk.text(PATH), null);
});

Deno.test("update() over a file that is a mount of its own writes in place, with the copy beside it until done", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  disk.before = (operation, path) => {
    if (operation === "rename" && path.endsWith(".pending")) {
      throw Object.assign(new Error("busy"), { code: "EBUSY" });
    }
  };
  assertEquals(await createCredentialFiles(disk).update(PATH, rotate), "replaced");
  assertEquals(refreshTokenIn(disk.text(PATH)), "rt_SENT-NEW");
  assertEquals([...disk.files.keys()], [PATH]);
});

for (const mount of [false, true]) {
  const place = mount ? "a mounted file" : "an ordinary file";
  Deno.test(`a crash at any operation of update() on ${place} loses neither the old nor a complete new token`, async () => {
    let finished = false;
    for (let n = 1; !finished; n++) {
      const disk = new MemoryDisk(() => NOW_MS);
      disk.put(PATH, OLD);
      let newTextWasComplete = false;
      disk.before = (operation, path) => {
        if (operation === "rename" && path.endsWith(".new")) newTextWasComplete = true;
        if (mount && operation === "rename" && path.endsWith(".pending")) {
          throw Object.assign(new Error("busy"), { code: "EBUSY" });
        }
      };
      disk.crashAt(n);
      await createCredentialFiles(disk).update(PATH, rotate).catch(() => {});
      finished = !disk.crashed;
      disk.restart();
      disk.before = () => {};
      const files = createCredentialFiles(disk);
      await files.recover(PATH);
      assertEquals(await files.recover(PATH), false);
      const found = refreshTokenIn(disk.text(PATH));
      // The crash may fall just before the first rename: then the copy has no trusted name yet, and the old token stays.
      const allowed = finished
        ? ["rt_SENT-NEW"]
        : newTextWasComplete
        ? ["rt_SENT-NEW", "rt_SENT-OLD"]
        : ["rt_SENT-OLD"];
      assert(allowed.includes(found!), `crash at ${n}: ${found}`);
      if (disk.writes.includes("rename .a.json.pending")) assertEquals(found, "rt_SENT-NEW", `crash at ${n}`);
      assertEquals([...disk.files.keys()], [PATH], `crash at ${n}`);
    }
  });
}

Deno.test("a failing operation of update() is a StoreFailure that names the cause and no path", async () => {
  let failures = 0;
  for (let n = 1;; n++) {
    const disk = new MemoryDisk(() => NOW_MS);
    disk.put(PATH, OLD);
    disk.failAt(n, "ENOSPC");
    const outcome = await createCredentialFiles(disk).update(PATH, rotate).catch((error) => error);
    if (outcome === "replaced") break;
    assert(outcome instanceof StoreFailure, String(outcome));
    assertEquals(outcome.message, "Cannot save a credential file: ENOSPC");
    assert(refreshTokenIn(disk.text(PATH)) !== null);
    failures += 1;
  }
  assert(failures >= 8, `${failures}`);
});

Deno.test("tryRoom() leaves nothing behind, and tells a place that is not ours from a disk that fails", async () => {
  for (const code of ["EROFS", "EACCES", "ENOSPC", "EIO"]) {
    let failures = 0;
    for (let n = 1;; n++) {
      const disk = new MemoryDisk(() => NOW_MS);
      disk.put(PATH, OLD);
      disk.put("/auth/.a.json.pending.new", "left by a crash");
      disk.failAt(n, code);
      const files = createCredentialFiles(disk);
      const outcome = await files.tryRoom(PATH).catch((error) => error);
      disk.restart();
      await files.recover(PATH);
      assertEquals([...disk.files.entries()].map(([path, { text }]) => [path, text]), [[PATH, OLD]]);
      if (outcome === "ready") break;
      const isPlace = code.startsWith("ER") || code.startsWith("EA");
      assertEquals(
        outcome instanceof StoreFailure ? outcome.message : outcome,
        {
          true: "read_only",
          false: `Cannot save a credential file: ${code}`,
        }[`${isPlace}`],
      );
      failures += 1;
    }
    assert(failures >= 5, `${code}: ${failures}`);
  }
  assertEquals(await createCredentialFiles(new MemoryDisk()).tryRoom(PATH), "missing");
});

Deno.test("recover() drops a copy that is older than the file, or belongs to somebody else", async () => {
  for (const left of [OLD.slice(0, 50), codexAuthText({ account: "other", user: "user" }), ""]) {
    const disk = new MemoryDisk(() => NOW_MS);
    disk.put("/auth/.a.json.pending", left);
    disk.put("/auth/.a.json.pending.new", "half");
    disk.put(PATH, OLD);
    assertEquals(await createCredentialFiles(disk).recover(PATH), false);
    assertEquals([...disk.files.entries()].map(([path, file]) => [path, file.text]), [[PATH, OLD]]);
  }
});

Deno.test("recover() on a disk that fails is a StoreFailure", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  disk.put("/auth/.a.json.pending", rotate(OLD)!);
  disk.before = (operation) => {
    if (operation === "rename") throw Object.assign(new Error("x"), { code: "EROFS" });
  };
  await assertRejects(() => createCredentialFiles(disk).recover(PATH), StoreFailure, "EROFS");
});

Deno.test("Crash is not taken for a missing file", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, OLD);
  disk.crashAt(1);
  const error = await createCredentialFiles(disk).update(PATH, rotate).catch((e) => e);
  assert(error instanceof StoreFailure && error.cause instanceof Crash);
});

Deno.test("list() finds *.json of the folder and its sub-folders, and skips what is none of ours", async () => {
  await inTempDir(async (dir) => {
    const names = [
      "auth.json",
      "team/b.json",
      "team/deep/c.json",
      "team/deep/deeper/d.json",
      ".hidden.json",
      ".git/x.json",
      "sessions/s.json",
      "logs/l.json",
      "archived/x.json",
      "archived_sessions/y.json",
      "old.archived.json",
      "auth.json.bak",
      "auth.bak.json",
      "history.jsonl",
      "config.toml",
      "node_modules/n.json",
      "march.json",
    ];
    for (const name of names) {
      await Deno.mkdir(join(dir, name, ".."), { recursive: true });
      await Deno.writeTextFile(join(dir, name), "{}");
    }
    await Deno.mkdir(join(dir, "folder.json"));
    const listing = await createCredentialFiles().list(dir);
    assertEquals(
      listing?.files.map((file) => file.path.slice(dir.length + 1)),
      ["auth.json", "march.json", "team/b.json", "team/deep/c.json"],
    );
    assertEquals(listing?.truncated, false);
  });
});

Deno.test("list() of a folder that does not exist is empty; of a file it is null", async () => {
  await inTempDir(async (dir) => {
    const files = createCredentialFiles();
    assertEquals(await files.list(join(dir, "none")), { files: [], truncated: false });
    await Deno.writeTextFile(join(dir, "file"), "");
    assertEquals(await files.list(join(dir, "file")), null);
  });
});

Deno.test("list() reads through symlinks but marks those that lead outside as not writable", async () => {
  await inTempDir(async (dir) => {
    await Deno.mkdir(join(dir, "auth"));
    await Deno.writeTextFile(join(dir, "outside.json"), OLD);
    await Deno.writeTextFile(join(dir, "auth", "real.json"), OLD);
    await Deno.symlink(join(dir, "outside.json"), join(dir, "auth", "out.json"));
    await Deno.symlink("real.json", join(dir, "auth", "in.json"));
    await Deno.symlink("nowhere.json", join(dir, "auth", "dangling.json"));
    await Deno.symlink(join(dir), join(dir, "auth", "loop.json"));
    const listing = await createCredentialFiles().list(join(dir, "auth"));
    assertEquals(listing?.files.map((file) => [file.path.slice(dir.length), file.writable]), [
      ["/auth/in.json", true],
      ["/auth/out.json", false],
      ["/auth/real.json", true],
    ]);
  });
});

Deno.test("update() on a real disk gives mode 0600, keeps a symlink a symlink, and changes the version", async () => {
  await inTempDir(async (dir) => {
    const files = createCredentialFiles();
    const real = join(dir, "real.json");
    const link = join(dir, "link.json");
    await Deno.writeTextFile(real, OLD, { mode: 0o644 });
    await Deno.symlink(real, link);
    const before = await files.look(link);
    assertEquals(await files.update(link, rotate), "replaced");
    assertEquals((await Deno.lstat(link)).isSymlink, true);
    const info = await Deno.stat(real);
    if (Deno.build.os !== "windows") assertEquals(info.mode! & 0o777, 0o600);
    assertEquals(refreshTokenIn(await Deno.readTextFile(real)), "rt_SENT-NEW");
    assert((await files.look(link))?.version !== before?.version);
    assertEquals((await Array.fromAsync(Deno.readDir(dir))).map((entry) => entry.name).sort(), [
      "link.json",
      "real.json",
    ]);
  });
});

Deno.test("a symlink planted where the copy goes is not written through", async () => {
  await inTempDir(async (dir) => {
    const path = join(dir, "a.json");
    await Deno.writeTextFile(path, OLD);
    await Deno.writeTextFile(join(dir, "victim"), "untouched");
    await Deno.symlink(join(dir, "victim"), join(dir, ".a.json.pending.new"));
    await Deno.symlink(join(dir, "victim"), join(dir, ".a.json.pending"));
    assertEquals(await createCredentialFiles().update(path, rotate), "replaced");
    assertEquals(await Deno.readTextFile(join(dir, "victim")), "untouched");
    assertEquals((await Deno.lstat(path)).isSymlink, false);
  });
});

Deno.test("a file whose name leaves no room for a copy beside it is read, not written, and stops no start", async () => {
  await inTempDir(async (dir) => {
    const files = createCredentialFiles();
    const cases = [[237, true], [238, false]] as const;
    for (const [nameLength, writable] of cases) {
      const path = join(dir, `${"n".repeat(nameLength)}.json`);
      await Deno.writeTextFile(path, OLD);
      assertEquals((await files.look(path))?.writable, writable);
      assertEquals(await files.recover(path), false);
      await Deno.remove(path);
    }
  });
});

Deno.test("read() tells text, missing, too large and unreadable apart", async () => {
  await inTempDir(async (dir) => {
    const files = createCredentialFiles();
    await Deno.writeTextFile(join(dir, "limit.json"), "x".repeat(1_048_576));
    await Deno.writeTextFile(join(dir, "more.json"), "x".repeat(1_048_577));
    assertEquals((await files.read(join(dir, "limit.json"))).kind, "text");
    assertEquals((await files.read(join(dir, "more.json"))).kind, "too_large");
    assertEquals((await files.read(join(dir, "none.json"))).kind, "missing");
    assertEquals((await files.read(dir)).kind, "unreadable");
  });
});

Deno.test("watch() calls back when a credential file appears, and stops when closed", async () => {
  await inTempDir(async (dir) => {
    const seen = Promise.withResolvers<void>();
    const watching = createCredentialFiles().watch([dir, dir, join(dir, "none")], () => seen.resolve());
    await Deno.writeTextFile(join(dir, "a.json"), "{}");
    await seen.promise;
    watching.close();
    watching.close();
  });
});

Deno.test("list() of a folder inside that cannot be opened: hidden when forbidden, unknown without descriptors", async () => {
  await inTempDir(async (dir) => {
    await Deno.mkdir(join(dir, "inside"));
    await Deno.writeTextFile(join(dir, "inside", "a.json"), OLD);
    const listing = async (code: string) => {
      const entries: Disk["entries"] = (path) =>
        path.endsWith("inside")
          ? Promise.reject(Object.assign(new Error(), { code }))
          : denoDisk.entries(path);
      return (await createCredentialFiles({ ...denoDisk, entries }).list(dir))?.files.length ?? null;
    };
    assertEquals([await listing("EACCES"), await listing("EMFILE"), await listing("ENFILE")], [
      0,
      null,
      null,
    ]);
  });
});
