/**
 * Credential files on disk: found, read, and replaced so that a crash at any moment loses no token.
 *
 * A replacement goes `.<name>.pending.new` (written, flushed) → `.<name>.pending` (now complete) → `<name>`. Both
 * steps are renames, so each of these names always holds a whole text; what a crash leaves in `.pending` is put in
 * place at the next start. Where the file itself cannot be renamed over (a bind-mounted single file), it is
 * overwritten in place while `.pending` still holds the whole text.
 */
import { basename, dirname, join, relative } from "node:path";
import { isNewerState } from "../core/credential_merge.ts";
import {
  type CredentialFiles,
  type CredentialFileState,
  type CredentialListing,
  type CredentialRead,
  StoreFailure,
} from "../ports.ts";
import { denoDisk, type Disk, type DiskInfo, errorCode, isOutOfDescriptors } from "./credential_disk.ts";

const FILE_LIMIT_BYTES = 1_048_576;
/** Sub-folders of sub-folders are enough for people who sort their accounts. */
const DEPTH_LIMIT = 3;
const ENTRY_LIMIT = 20_000;
/** How often a change is merged again because the file was written meanwhile; the last one is written regardless. */
const WRITE_TRIES = 5;
const SKIPPED_DIRECTORIES = new Set(["sessions", "logs", "log", "node_modules"]);
const ARCHIVED = /(^|[._-])archived?([._-]|$)|\.bak(\.|$)/i;
/** Longest name a folder holds; the names of a replacement are longer than the file's own. */
const NAME_LIMIT_BYTES = 255;
/** Renaming over a file fails with these where the file is a mount of its own. */
const CANNOT_RENAME_OVER = new Set(["EBUSY", "EXDEV"]);
/** The place is not ours to write, which says nothing about the disk. */
const READ_ONLY = new Set(["EROFS", "EACCES", "EPERM", "NotCapable"]);
/** New tokens may be longer than the old ones. */
const SPARE_BYTES = 16_384;

export function createCredentialFiles(disk: Disk = denoDisk): CredentialFiles {
  return new DiskCredentialFiles(disk);
}

class DiskCredentialFiles implements CredentialFiles {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  async list(directory: string): Promise<CredentialListing | null> {
    try {
      const root = await this.#disk.realPath(directory);
      const walk: Walk = { root, files: [], entryCount: 0 };
      await this.#walk(walk, directory, 1);
      return {
        files: walk.files.sort((a, b) => a.path < b.path ? -1 : 1),
        truncated: walk.entryCount > ENTRY_LIMIT,
      };
    } catch (error) {
      return errorCode(error) === "ENOENT" ? { files: [], truncated: false } : null;
    }
  }

  async #walk(walk: Walk, directory: string, depth: number): Promise<void> {
    for (const { name, kind } of await this.#disk.entries(directory)) {
      if (++walk.entryCount > ENTRY_LIMIT) return;
      if (name.startsWith(".") || ARCHIVED.test(name)) continue;
      const path = join(directory, name);
      if (kind === "directory") {
        if (depth >= DEPTH_LIMIT || SKIPPED_DIRECTORIES.has(name)) continue;
        // A folder that vanished or cannot be read hides its own files only; without descriptors nothing can be read.
        await this.#walk(walk, path, depth + 1).catch((error) => {
          if (isOutOfDescriptors(error)) throw error;
        });
      } else if ((kind === "file" || kind === "symlink") && name.endsWith(".json")) {
        const inside = kind === "file" || await this.#leadsInside(walk.root, path);
        const state = await this.#look(path, inside);
        if (state !== null) walk.files.push(state);
      }
    }
  }

  async #leadsInside(root: string, path: string): Promise<boolean> {
    try {
      const target = await this.#disk.realPath(path);
      return !relative(root, target).startsWith("..");
    } catch {
      return false;
    }
  }

  look(path: string): Promise<CredentialFileState | null> {
    return this.#look(path, true);
  }

  async #look(path: string, writable: boolean): Promise<CredentialFileState | null> {
    try {
      const info = await this.#disk.info(path);
      // Reading a pipe or a device would wait for ever.
      if (info.kind !== "file") return null;
      return {
        path,
        version: info.mark,
        modifiedAtMs: info.modifiedAtMs,
        writable: writable && isReplaceable(path),
      };
    } catch {
      return null;
    }
  }

  async read(path: string): Promise<CredentialRead> {
    try {
      const info = await this.#disk.info(path);
      if (info.kind !== "file") return { kind: "unreadable" };
      if (info.sizeBytes > FILE_LIMIT_BYTES) return { kind: "too_large" };
      return { kind: "text", text: await this.#disk.readText(path) };
    } catch (error) {
      return { kind: errorCode(error) === "ENOENT" ? "missing" : "unreadable" };
    }
  }

  async update(
    path: string,
    change: (text: string) => string | null,
  ): Promise<"replaced" | "kept" | "missing"> {
    try {
      const target = await this.#target(path);
      if (target === null) return "missing";
      for (let triesLeft = WRITE_TRIES; triesLeft > 0; triesLeft--) {
        const before = await this.#disk.readText(target.path);
        const text = change(before);
        if (text === null) {
          await this.#removeIfThere(pendingPath(target.path));
          return "kept";
        }
        await this.#prepare(target, text);
        // Looked at again as late as possible: somebody else's change can be lost only within the one rename. While
        // we merge again, `.pending` stays, for it may be the only place that holds the new tokens.
        if (triesLeft > 1 && await this.#disk.readText(target.path) !== before) continue;
        await this.#moveInto(target.path, text);
        return "replaced";
      }
      throw new TypeError("Cannot happen: the last try always writes");
    } catch (error) {
      if (errorCode(error) === "ENOENT" && await this.#target(path).catch(() => null) === null) {
        return "missing";
      }
      throw new StoreFailure("save a credential file", errorCode(error), { cause: error });
    }
  }

  async tryRoom(path: string): Promise<"ready" | "read_only" | "missing"> {
    try {
      const target = await this.#target(path);
      if (target === null) return "missing";
      if (!isReplaceable(target.path)) return "read_only";
      const trial = newPath(target.path);
      await this.#removeIfThere(trial);
      await this.#disk.writeNew(trial, " ".repeat(target.info.sizeBytes + SPARE_BYTES), target.info);
      await this.#disk.remove(trial);
      return await this.#isReadOnlyMount(target.path) ? "read_only" : "ready";
    } catch (error) {
      const code = errorCode(error);
      if (READ_ONLY.has(code)) return "read_only";
      await this.#removeIfThere(newPath(path)).catch(() => {});
      throw new StoreFailure("save a credential file", code, { cause: error });
    }
  }

  /** A file that is a mount of its own, in a folder that is not: replacing it fails at the very last step. */
  async #isReadOnlyMount(path: string): Promise<boolean> {
    try {
      await this.#disk.openForWriting(path);
      return false;
    } catch (error) {
      return errorCode(error) === "EROFS";
    }
  }

  async recover(path: string): Promise<boolean> {
    try {
      const target = await this.#target(path);
      if (target === null || !isReplaceable(target.path)) return false;
      await this.#removeIfThere(newPath(target.path));
      const pending = pendingPath(target.path);
      const leftBehind = await this.#dated(pending);
      if (leftBehind === null) return false;
      const current = await this.#dated(target.path);
      if (current === null || !isNewerState(current, leftBehind)) {
        await this.#removeIfThere(pending);
        return false;
      }
      await this.#moveInto(target.path, leftBehind.text);
      return true;
    } catch (error) {
      throw new StoreFailure("complete a credential file", errorCode(error), { cause: error });
    }
  }

  watch(paths: readonly string[], changed: () => void): { close(): void } {
    const watchers: Deno.FsWatcher[] = [];
    // Of a file its folder is watched: programs replace files, and a watch stays with the one that is gone.
    const folders = paths.map((path) => path.endsWith(".json") ? dirname(path) : path);
    for (const folder of new Set(folders)) {
      try {
        const watcher = Deno.watchFs(folder, { recursive: false });
        watchers.push(watcher);
        void report(watcher, changed);
      } catch {
        // Nothing there yet, or no watch left: the caller's own rounds find every change.
      }
    }
    return { close: () => watchers.splice(0).forEach((watcher) => watcher.close()) };
  }

  /** Where the bytes really are, or `null` when there is no such file. */
  async #target(path: string): Promise<{ path: string; info: DiskInfo } | null> {
    try {
      const real = await this.#disk.realPath(path);
      return { path: real, info: await this.#disk.info(real) };
    } catch (error) {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** Afterwards `.pending` holds the whole text, also after a crash at any moment before. */
  async #prepare(target: { path: string; info: DiskInfo }, text: string): Promise<void> {
    await this.#removeIfThere(newPath(target.path));
    await this.#disk.writeNew(newPath(target.path), text, target.info);
    await this.#disk.rename(newPath(target.path), pendingPath(target.path));
  }

  async #moveInto(target: string, text: string): Promise<void> {
    const pending = pendingPath(target);
    try {
      await this.#disk.rename(pending, target);
    } catch (error) {
      if (!CANNOT_RENAME_OVER.has(errorCode(error))) throw error;
      await this.#disk.overwrite(target, text);
      await this.#disk.remove(pending);
    }
    await this.#disk.flushDirectory(dirname(target));
  }

  async #dated(path: string): Promise<{ text: string; modifiedAtMs: number } | null> {
    try {
      const { modifiedAtMs } = await this.#disk.info(path);
      return { text: await this.#disk.readText(path), modifiedAtMs };
    } catch (error) {
      if (errorCode(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** Asks first: removing what is not there is an error of its own on a read-only mount. */
  async #removeIfThere(path: string): Promise<void> {
    if (await this.#disk.exists(path)) await this.#disk.remove(path);
  }
}

interface Walk {
  readonly root: string;
  readonly files: CredentialFileState[];
  entryCount: number;
}

function pendingPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.pending`);
}

function newPath(path: string): string {
  return `${pendingPath(path)}.new`;
}

/** False where there is no room for the names of a replacement: such a file is used until its token ends. */
function isReplaceable(path: string): boolean {
  return new TextEncoder().encode(basename(newPath(path))).length <= NAME_LIMIT_BYTES;
}

async function report(watcher: Deno.FsWatcher, changed: () => void): Promise<void> {
  for await (const event of watcher) {
    // A busy folder (Codex writes its history here) must not make us look again for nothing.
    if (event.kind !== "access" && event.paths.some(mayMatter)) changed();
  }
}

/** A credential file, or something without an extension: it may be a folder. */
function mayMatter(path: string): boolean {
  const name = basename(path);
  return name.endsWith(".json") || !name.includes(".");
}
