/**
 * A disk in memory on which any single operation can be made to fail, or to be the last one of the process.
 *
 * A crash in the middle of a write leaves half of the text, as a real one may.
 */
import { basename, dirname } from "node:path";
import type { Disk, DiskEntry, DiskInfo } from "../../lib/store/credential_disk.ts";

export class Crash extends Error {
  override readonly name = "Crash";
}

interface StoredFile {
  text: string;
  modifiedAtMs: number;
  readonly inode: number;
}

export class MemoryDisk implements Disk {
  readonly files = new Map<string, StoredFile>();
  /** Operations that change something, in order. */
  readonly writes: string[] = [];
  /** Runs before each operation; throwing makes it fail. */
  before: (operation: string, path: string) => void | Promise<void> = () => {};
  /** Runs after a text was read and before the reader has it. */
  afterRead: (path: string) => void | Promise<void> = () => {};
  #nowMs: () => number;
  #crashAt = Infinity;
  #failAt = Infinity;
  #failCode = "EIO";
  #operationCount = 0;
  #crashed = false;
  #lastInode = 0;

  constructor(nowMs: () => number = () => 0) {
    this.#nowMs = nowMs;
  }

  /** The Nth operation from now on (from 1) is the last; it and all later ones throw `Crash`. */
  crashAt(n: number): void {
    this.#operationCount = 0;
    this.#crashAt = n;
  }

  /** The Nth operation from now on (from 1) fails with a system error. */
  failAt(n: number, code = "EIO"): void {
    this.#operationCount = 0;
    this.#failAt = n;
    this.#failCode = code;
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  /** The process starts again on what is left. */
  restart(): void {
    this.#crashed = false;
    this.#crashAt = Infinity;
    this.#failAt = Infinity;
  }

  /** Somebody else's write. */
  put(path: string, text: string): void {
    this.files.set(path, { text, modifiedAtMs: this.#nowMs(), inode: ++this.#lastInode });
  }

  text(path: string): string | null {
    return this.files.get(path)?.text ?? null;
  }

  async exists(path: string): Promise<boolean> {
    await this.#step("exists", path);
    return this.files.has(path);
  }

  async info(path: string): Promise<DiskInfo> {
    await this.#step("info", path);
    const file = this.files.get(path);
    if (file === undefined) {
      if (this.#isDirectory(path)) return info("directory", 0, 0, "");
      throw systemError("ENOENT");
    }
    return info(
      "file",
      file.text.length,
      file.modifiedAtMs,
      `${file.inode}:${file.modifiedAtMs}:${file.text.length}`,
    );
  }

  async realPath(path: string): Promise<string> {
    await this.#step("realPath", path);
    if (!this.files.has(path) && !this.#isDirectory(path)) throw systemError("ENOENT");
    return path;
  }

  async entries(directory: string): Promise<readonly DiskEntry[]> {
    await this.#step("entries", directory);
    const names = [...this.files.keys()].filter((path) => dirname(path) === directory).map((path) =>
      basename(path)
    );
    return names.map((name) => ({ name, kind: "file" }));
  }

  async readText(path: string): Promise<string> {
    await this.#step("readText", path);
    const { text } = this.#file(path);
    await this.afterRead(path);
    return text;
  }

  async writeNew(path: string, text: string): Promise<void> {
    if (await this.#step("writeNew", path)) {
      this.put(path, text.slice(0, Math.floor(text.length / 2)));
      throw new Crash();
    }
    if (this.files.has(path)) throw systemError("EEXIST");
    this.put(path, text);
  }

  async openForWriting(path: string): Promise<void> {
    await this.#step("openForWriting", path);
    this.#file(path);
  }

  async overwrite(path: string, text: string): Promise<void> {
    const file = this.#file(path);
    if (await this.#step("overwrite", path)) {
      Object.assign(file, { text: text.slice(0, Math.floor(text.length / 2)), modifiedAtMs: this.#nowMs() });
      throw new Crash();
    }
    Object.assign(file, { text, modifiedAtMs: this.#nowMs() });
  }

  async rename(from: string, to: string): Promise<void> {
    if (await this.#step("rename", from)) throw new Crash();
    this.files.set(to, this.#file(from));
    this.files.delete(from);
  }

  async remove(path: string): Promise<void> {
    if (await this.#step("remove", path)) throw new Crash();
    if (!this.files.delete(path)) throw systemError("ENOENT");
  }

  async flushDirectory(path: string): Promise<void> {
    if (await this.#step("flushDirectory", path)) throw new Crash();
  }

  /** @returns true when the process ends in this very operation (only asked for by those that change something). */
  async #step(operation: string, path: string): Promise<boolean> {
    if (this.#crashed) throw new Crash();
    await this.before(operation, path);
    this.#operationCount += 1;
    if (/^(write|over|rename|remove|flush)/.test(operation)) {
      this.writes.push(`${operation} ${basename(path)}`);
    }
    if (this.#operationCount === this.#failAt) throw systemError(this.#failCode);
    if (this.#operationCount !== this.#crashAt) return false;
    this.#crashed = true;
    if (/^(write|over|rename|remove|flush)/.test(operation)) return true;
    throw new Crash();
  }

  #file(path: string): StoredFile {
    const file = this.files.get(path);
    if (file === undefined) throw systemError("ENOENT");
    return file;
  }

  #isDirectory(path: string): boolean {
    return [...this.files.keys()].some((one) => dirname(one) === path);
  }
}

function info(kind: DiskInfo["kind"], sizeBytes: number, modifiedAtMs: number, mark: string): DiskInfo {
  return { kind, sizeBytes, modifiedAtMs, mark, uid: null, gid: null };
}

export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code });
}
