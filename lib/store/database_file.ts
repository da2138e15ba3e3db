/**
 * The database as a file: who may use it, whether it is new, and whether it is still there.
 *
 * Beside `NAME` lies `NAME.lock`. Its operating-system lock belongs to one process and dies with it, also on
 * `kill -9`; its text names that process and says whether a database was ever made here. The lock is not taken on
 * the database itself: closing any handle on that file would drop SQLite's own locks in this process (POSIX).
 */
import { basename, dirname } from "node:path";
import { StoreFailure } from "../ports.ts";
import { storeFailure } from "./store_error.ts";

const LOCK_TEXT_BYTES = 64;
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

interface Identity {
  readonly device: number;
  readonly inode: number | null;
}

/** A database file this process alone may write, until `release`. */
export class DatabaseFile implements Disposable {
  readonly path: string;
  /** No database was ever here; the file is made, empty and private. */
  readonly isNew: boolean;
  #lock: Deno.FsFile;
  #opened: ReadonlyMap<string, Identity> = new Map();

  /** @throws StoreFailure when another process holds the file or what lies there is no database of ours */
  constructor(path: string) {
    this.path = path;
    try {
      Deno.mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
      this.#lock = takeLock(path);
    } catch (error) {
      throw storeFailure("open the database", path, error);
    }
    try {
      this.isNew = inspectFile(path, this.#wasInitialised());
      if (this.isNew) Deno.openSync(path, { create: true, write: true, mode: PRIVATE_FILE }).close();
      makePrivate(path);
    } catch (error) {
      this.release();
      throw storeFailure("open the database", path, error);
    }
  }

  /** A start was killed while it switched the file to its log; only a connection that may write can undo that. */
  hasInterruptedWrite(): boolean {
    return statOrNull(`${this.path}-journal`) !== null;
  }

  /** Remembers that a schema is in the file: from now on an empty one is damage, not a fresh start. */
  markInitialised(): void {
    writeLockText(this.#lock, true);
  }

  /** Takes the identity of the open files, for `requirePresent`. */
  remember(): void {
    const files = [this.path, `${this.path}-wal`, `${this.path}.lock`];
    this.#opened = new Map(files.map((file) => [file, identityOf(file, "open the database", this.path)]));
  }

  /**
   * SQLite goes on writing into a file that was deleted or replaced, where nobody will ever find it. Without the
   * lock file a second process could start beside this one.
   *
   * @throws StoreFailure unless the paths still lead to the files that were opened
   */
  requirePresent(action: string): void {
    for (const [file, opened] of this.#opened) {
      const now = identityOf(file, action, this.path);
      if (now.device !== opened.device || now.inode !== opened.inode) {
        throw new StoreFailure(
          action,
          `the file was replaced while in use; restore a backup and start again (${file})`,
        );
      }
    }
  }

  release(): void {
    // Closing is not enough: a child being spawned at this moment holds a copy of the handle until it executes.
    this.#lock.unlockSync();
    this.#lock.close();
  }

  [Symbol.dispose](): void {
    this.release();
  }

  #wasInitialised(): boolean {
    const initialised = readLockText(this.#lock).includes("initialised yes");
    writeLockText(this.#lock, initialised);
    return initialised;
  }
}

/**
 * Looks at the path without opening it: a handle of ours, when closed, would take SQLite's locks with it.
 *
 * @param wasInitialised  whether a database was made here before
 * @returns true when nothing is there and nothing says that something was; false for a file that SQLite can judge
 * @throws StoreFailure for anything else
 */
export function inspectFile(path: string, wasInitialised: boolean): boolean {
  const refuse = (problem: string): never => {
    throw new StoreFailure("open the database", `${problem} (${path})`);
  };
  const info = statOrNull(path);
  if (info?.isDirectory) refuse("a folder is in the file's place; move it away");
  if (info !== null && !info.isFile) refuse("it is not a regular file; move it away");
  if (info === null || info.size === 0) {
    const state = info === null ? "missing" : "empty";
    const backup = backupBeside(path);
    if (backup !== null) {
      refuse(
        `the file is ${state} but a backup lies beside it; restore "${backup}", or move it away to start empty`,
      );
    }
    if ((statOrNull(`${path}-wal`)?.size ?? 0) > 0) {
      refuse(
        `the file is ${state} but its write-ahead log is not; restore a backup, or move "${
          basename(path)
        }-wal" away to start empty`,
      );
    }
    if (info !== null && wasInitialised) {
      refuse("the file is empty but held a database before; restore a backup, or delete it to start empty");
    }
    return true;
  }
  return false;
}

/**
 * Which process has the database of that path in use, without touching the database.
 *
 * @returns null when none has; a `pid` of null when one has that does not say who it is.
 * @throws the system's error when the lock file cannot be looked at
 */
export function databaseHolder(path: string): { readonly pid: number | null } | null {
  if (statOrNull(`${path}.lock`) === null) return null;
  using file = Deno.openSync(`${path}.lock`, { read: true, write: true });
  if (file.tryLockSync(true)) {
    file.unlockSync();
    return null;
  }
  const pid = /pid (\d+)/.exec(readLockText(file))?.[1];
  return { pid: pid === undefined ? null : Number(pid) };
}

function takeLock(path: string): Deno.FsFile {
  const file = Deno.openSync(`${path}.lock`, {
    create: true,
    read: true,
    write: true,
    mode: PRIVATE_FILE,
  });
  if (file.tryLockSync(true)) return file;
  const holder = /pid (\d+)/.exec(readLockText(file))?.[1];
  file.close();
  throw new StoreFailure(
    "open the database",
    `another process${
      holder === undefined ? "" : ` (pid ${holder})`
    } is using it; stop that one, or give this one another "database.path" (${path})`,
  );
}

/** Always the same length, so that rewriting it needs no new space on a full disk and is never half cut. */
function writeLockText(file: Deno.FsFile, initialised: boolean): void {
  const text = `holdfast database lock\npid ${Deno.pid}\ninitialised ${initialised ? "yes" : "no"}\n`;
  file.seekSync(0, Deno.SeekMode.Start);
  writeAllSync(file, new TextEncoder().encode(text.padEnd(LOCK_TEXT_BYTES - 1) + "\n"));
}

function readLockText(file: Deno.FsFile): string {
  const buffer = new Uint8Array(LOCK_TEXT_BYTES);
  file.seekSync(0, Deno.SeekMode.Start);
  try {
    return new TextDecoder().decode(buffer.subarray(0, file.readSync(buffer) ?? 0));
  } catch {
    // On Windows a locked range cannot be read by others; the pid is only a courtesy.
    return "";
  }
}

function writeAllSync(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) written += file.writeSync(bytes.subarray(written));
}

/** Key hashes and session digests are in it. Where modes mean nothing (FAT, some mounts) there is nothing to do. */
function makePrivate(path: string): void {
  const mode = Deno.statSync(path).mode;
  if (mode === null || (mode & 0o077) === 0) return;
  try {
    Deno.chmodSync(path, PRIVATE_FILE);
  } catch (error) {
    if (!(error instanceof Deno.errors.PermissionDenied) && !(error instanceof Deno.errors.NotSupported)) {
      throw error;
    }
  }
}

function backupBeside(path: string): string | null {
  const name = basename(path);
  for (const entry of Deno.readDirSync(dirname(path))) {
    if (entry.name.startsWith(`${name}.`) && entry.name.endsWith(".bak")) return entry.name;
  }
  return null;
}

function statOrNull(path: string): Deno.FileInfo | null {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function identityOf(file: string, action: string, path: string): Identity {
  const info = statOrNull(file);
  if (info === null) {
    throw new StoreFailure(
      action,
      `the file vanished while in use; restore a backup and start again (${file})`,
    );
  }
  if (!info.isFile) throw new StoreFailure(action, `the file was replaced while in use (${path})`);
  return { device: info.dev, inode: info.ino };
}
