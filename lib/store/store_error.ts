/** What an error of SQLite or of the file system means, in words an operator can act on. */
import { StoreFailure } from "../ports.ts";

/** SQLite's primary result codes (sqlite.org/rescode.html) that can reach us, each with its cause and the way out. */
const BY_RESULT_CODE: Readonly<Record<number, string>> = {
  5: "another program keeps the database locked; close it and start again",
  6: "another program keeps the database locked; close it and start again",
  7: "out of memory",
  8: "the file or its file system is read-only; make it writable",
  10: "the disk reports an input/output error; check the disk and its free space",
  11: "the file is damaged; restore a backup, or move the file away to start empty",
  13: "the disk is full; free some space and start again",
  14: "the file cannot be opened; check that it exists and may be read and written",
  26: "the file is not a SQLite database; restore a backup, or move the file away to start empty",
};

const INTERRUPTED = "a write was interrupted and has to be undone; start the service once";

/** Extended codes that say more than their primary one. */
const BY_EXTENDED_CODE: Readonly<Record<number, string>> = {
  // SQLITE_IOERR_SHMSIZE: the log's index could not be made larger. Only a full disk does that.
  4874: BY_RESULT_CODE[13]!,
  // SQLITE_READONLY_RECOVERY, SQLITE_READONLY_ROLLBACK: a reader may not do what the next writer will.
  264: INTERRUPTED,
  776: INTERRUPTED,
};

/** `exec` and the constructor give no result code, only SQLite's fixed English text. */
const BY_TEXT: readonly (readonly [RegExp, number])[] = [
  [/database (table )?is locked/, 5],
  [/readonly database/, 8],
  [/disk I\/O error/, 10],
  [/malformed/, 11],
  [/disk is full/, 13],
  [/unable to open database file/, 14],
  [/not a database/, 26],
];

/** Errors of the operating system, by the code Deno gives. */
const BY_SYSTEM_CODE: Readonly<Record<string, string>> = {
  EACCES: "permission denied; make it readable and writable for this user",
  EPERM: "permission denied; make it readable and writable for this user",
  EROFS: "the file system is read-only; make it writable",
  ENOSPC: "the disk is full; free some space and start again",
  EDQUOT: "the disk quota is used up; free some space and start again",
  ENOTDIR: "a part of the path is a file, not a folder",
  EEXIST: "the path exists already",
  EISDIR: "a folder is in the file's place; move it away",
  ENOENT: "there is no such file",
  EMFILE: "too many open files",
  ENAMETOOLONG: "the path is too long",
};

/** @returns true for errors thrown by `node:sqlite` about the database, not about our use of it. */
export function isSqliteError(error: unknown): error is Error {
  const code = codeOf(error);
  // ERR_OUT_OF_RANGE: a stored integer too large for a number, so a row we never wrote.
  return code === "ERR_SQLITE_ERROR" || code === "ERR_OUT_OF_RANGE";
}

export function isSystemError(error: unknown): boolean {
  return codeOf(error) in BY_SYSTEM_CODE;
}

/**
 * @param action  what was tried, to follow "Cannot"
 * @param path    the file, named in the message
 */
export function storeFailure(action: string, path: string, error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const raw = error instanceof Error ? error.message : String(error);
  const resultCode = resultCodeOf(error, raw);
  const known = BY_EXTENDED_CODE[extendedCodeOf(error) ?? -1] ?? BY_RESULT_CODE[resultCode ?? -1] ??
    BY_SYSTEM_CODE[codeOf(error)];
  return new StoreFailure(action, `${known ?? firstLine(raw)} (${path})`, { cause: error });
}

function resultCodeOf(error: unknown, raw: string): number | null {
  if (codeOf(error) !== "ERR_SQLITE_ERROR") return null;
  const extended = extendedCodeOf(error);
  // The low byte is the primary code; the rest only refines it.
  if (extended !== null) return extended & 0xff;
  return BY_TEXT.find(([pattern]) => pattern.test(raw))?.[1] ?? null;
}

function extendedCodeOf(error: unknown): number | null {
  const code = error instanceof Error ? (error as { errcode?: unknown }).errcode : undefined;
  return typeof code === "number" ? code : null;
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

function firstLine(raw: string): string {
  return raw.split("\n", 1)[0]!;
}
