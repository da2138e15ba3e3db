/**
 * The few disk operations that credential files need, one system call or a fixed handful each.
 *
 * Kept apart from `credential_files.ts` so that its tests can let any single one of them fail, or end the process there.
 */

export interface DiskInfo {
  readonly kind: "file" | "directory" | "other";
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** Differs for a file that was replaced or changed. */
  readonly mark: string;
  readonly uid: number | null;
  readonly gid: number | null;
}

export interface DiskEntry {
  readonly name: string;
  readonly kind: "file" | "directory" | "symlink" | "other";
}

/** Every method rejects with the runtime's own error; `errorCode` reads it. */
export interface Disk {
  /** Also true for a dangling symlink. */
  exists(path: string): Promise<boolean>;
  /** Follows symlinks. */
  info(path: string): Promise<DiskInfo>;
  realPath(path: string): Promise<string>;
  entries(directory: string): Promise<readonly DiskEntry[]>;
  readText(path: string): Promise<string>;
  /** Fails if the path exists, also as a dangling symlink. Mode 0600, owned like `owner`, flushed to the disk. */
  writeNew(path: string, text: string, owner: Pick<DiskInfo, "uid" | "gid">): Promise<void>;
  /** Opens the file for writing and changes nothing. */
  openForWriting(path: string): Promise<void>;
  /** In place, keeping the inode, flushed to the disk. */
  overwrite(path: string, text: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes renames in the directory durable. */
  flushDirectory(path: string): Promise<void>;
}

export const denoDisk: Disk = {
  async exists(path) {
    try {
      await Deno.lstat(path);
      return true;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return false;
      throw error;
    }
  },

  async info(path) {
    const info = await Deno.stat(path);
    return {
      kind: info.isFile ? "file" : info.isDirectory ? "directory" : "other",
      sizeBytes: info.size,
      modifiedAtMs: info.mtime?.getTime() ?? 0,
      mark: `${info.mtime?.getTime()}:${info.ctime?.getTime()}:${info.size}:${info.ino}:${info.dev}`,
      uid: info.uid,
      gid: info.gid,
    };
  },

  realPath: (path) => Deno.realPath(path),

  async entries(directory) {
    const entries: DiskEntry[] = [];
    for await (const entry of Deno.readDir(directory)) {
      const kind = entry.isSymlink
        ? "symlink"
        : entry.isFile
        ? "file"
        : entry.isDirectory
        ? "directory"
        : "other";
      entries.push({ name: entry.name, kind });
    }
    return entries;
  },

  readText: (path) => Deno.readTextFile(path),

  async writeNew(path, text, owner) {
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    await writeAll(file, text);
    const uid = Deno.build.os === "windows" ? null : Deno.uid();
    // Run as root for somebody else: the file must stay theirs, or their own program cannot read it any more.
    if (uid !== null && owner.uid !== null && owner.uid !== uid) await Deno.chown(path, owner.uid, owner.gid);
    await file.sync();
  },

  async openForWriting(path) {
    (await Deno.open(path, { read: true, write: true })).close();
  },

  async overwrite(path, text) {
    using file = await Deno.open(path, { write: true, truncate: true });
    await writeAll(file, text);
    await file.sync();
  },

  rename: (from, to) => Deno.rename(from, to),
  remove: (path) => Deno.remove(path),

  async flushDirectory(path) {
    // Windows has no such call, and makes renames durable by itself.
    if (Deno.build.os === "windows") return;
    using directory = await Deno.open(path, { read: true });
    await directory.sync();
  },
};

async function writeAll(file: Deno.FsFile, text: string): Promise<void> {
  let rest = new TextEncoder().encode(text);
  while (rest.length > 0) rest = rest.subarray(await file.write(rest));
}

/** No descriptor is left, here or in the whole system: over as soon as something is closed. */
export function isOutOfDescriptors(error: unknown): boolean {
  const code = errorCode(error);
  return code === "EMFILE" || code === "ENFILE";
}

/** `ENOENT`, `ENOSPC` …, or the error's class where the system gave no code. Never a path. */
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error instanceof Deno.errors.NotFound ? "ENOENT" : error.name;
}
