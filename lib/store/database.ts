/**
 * One SQLite file, opened so that what was acknowledged stays and what cannot be kept is said.
 *
 * The only file that imports SQLite. Two connections share the file: one syncs to the platter at each commit (deadlines,
 * credentials, ledger), the other when the log is folded in (bindings, usage, readings). Durability belongs to the
 * connection, so no code path can forget to switch it. A first failure is final: every later call repeats it, because
 * a process that goes on in memory would acknowledge what a restart does not know.
 */
import { backup, DatabaseSync, type StatementSync } from "node:sqlite";
import { resolve } from "node:path";
import { StoreFailure } from "../ports.ts";
import type { RawRow, SqlValue } from "./codec.ts";
import { DatabaseFile, inspectFile } from "./database_file.ts";
import { APPLICATION_ID, migrationSql, SCHEMA_VERSION } from "./migrations.ts";
import { isSqliteError, isSystemError, storeFailure } from "./store_error.ts";

/** How long a statement waits for another program's lock. It blocks the process, so it is short. */
const BUSY_TIMEOUT_MS = 2_000;
/** The log is cut back to this size once it was folded into the file. */
const LOG_SIZE_LIMIT_BYTES = 67_108_864;

export type Durability = "full" | "normal";

export interface OpenOptions {
  /** Looks without changing anything, also while another process owns the file. */
  readonly readOnly?: boolean;
  readonly busyTimeoutMs?: number;
  /** Called before each statement that writes; what it throws takes the place of the write (tests of failing disks). */
  readonly beforeWrite?: (sql: string) => void;
}

/** Prepared statements of one connection, each made once. */
export class Connection implements Disposable {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #wideStatements = new Map<string, StatementSync>();
  readonly #beforeWrite: (sql: string) => void;

  constructor(path: string, options: OpenOptions) {
    this.#db = new DatabaseSync(path, {
      readOnly: options.readOnly ?? false,
      enableForeignKeyConstraints: true,
    });
    // As a pragma: Deno 2.9.6 does not hear the constructor's `timeout` for readers and lets them wait 5 s.
    this.pragma(`busy_timeout = ${options.busyTimeoutMs ?? BUSY_TIMEOUT_MS}`);
    this.#beforeWrite = options.beforeWrite ?? (() => {});
  }

  /** @returns the first row, or null */
  get(sql: string, ...values: SqlValue[]): Record<string, SqlValue> | null {
    return (this.#prepare(sql).get(...values) ?? null) as Record<string, SqlValue> | null;
  }

  all(sql: string, ...values: SqlValue[]): Record<string, SqlValue>[] {
    return this.#prepare(sql).all(...values) as Record<string, SqlValue>[];
  }

  /** Rows with integers in full width, so that an absurd one can be reported with its row. */
  wideRows(sql: string, ...values: SqlValue[]): RawRow[] {
    let statement = this.#wideStatements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      statement.setReadBigInts(true);
      this.#wideStatements.set(sql, statement);
    }
    return statement.all(...values) as RawRow[];
  }

  /** @returns how many rows were changed */
  run(sql: string, ...values: SqlValue[]): number {
    this.#beforeWrite(sql);
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /** Several statements without values. */
  script(sql: string): void {
    this.#beforeWrite(sql);
    this.#db.exec(sql);
  }

  pragma(name: string): SqlValue {
    const row = this.#db.prepare(`PRAGMA ${name}`).get() as Record<string, SqlValue> | undefined;
    return row === undefined ? null : Object.values(row)[0] ?? null;
  }

  /** All of `body` or nothing of it. */
  transaction<T>(body: () => T): T {
    // Prepared, not `exec`: only statements tell SQLite's result code. IMMEDIATE: the lock is taken or refused here.
    this.run("BEGIN IMMEDIATE");
    try {
      const result = body();
      this.run("COMMIT");
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  /**
   * Writes a copy of the committed content, also beside writers. Not by `VACUUM INTO`: that attaches a database, which
   * the runtime allows only to programs that may do everything.
   */
  async copyTo(path: string): Promise<void> {
    await backup(this.#db, path);
  }

  close(): void {
    this.#statements.clear();
    this.#wideStatements.clear();
    this.#db.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #rollBack(): void {
    try {
      this.#prepare("ROLLBACK").run();
    } catch {
      // SQLite has rolled back by itself on most disk errors; the error that led here is the one to report.
    }
  }
}

/** The open store. Pool, affinity and account stores share one. */
export class Database implements Disposable {
  readonly path: string;
  readonly #full: Connection;
  readonly #normal: Connection;
  readonly #file: DatabaseFile | null;
  #failure: StoreFailure | null = null;
  #closed = false;

  constructor(path: string, full: Connection, normal: Connection, file: DatabaseFile | null) {
    this.path = path;
    this.#full = full;
    this.#normal = normal;
    this.#file = file;
  }

  /** @throws StoreFailure */
  read<T>(action: string, body: (connection: Connection) => T): T {
    this.#requireUsable(action);
    try {
      return body(this.#normal);
    } catch (error) {
      throw this.#failed(action, error);
    }
  }

  /**
   * One transaction; when this returns, the change is on disk ("full") or survives the process ("normal").
   *
   * @throws StoreFailure when it cannot be kept; anything else thrown by `body` undoes the transaction and passes
   */
  write<T>(durability: Durability, action: string, body: (connection: Connection) => T): T {
    this.#requireUsable(action);
    const connection = durability === "full" ? this.#full : this.#normal;
    try {
      const result = connection.transaction(() => body(connection));
      this.#file?.requirePresent(action);
      return result;
    } catch (error) {
      throw this.#failed(action, error);
    }
  }

  /** Copies the committed content to a new private file that is complete when it has its name. @throws StoreFailure */
  async copyTo(to: string, action: string): Promise<void> {
    this.#requireUsable(action);
    await intoPrivateFile(to, (partial) => this.#normal.copyTo(partial));
  }

  /** Folds the log into the file and lets the next process in. Safe to call twice, also after a failure. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      if (this.#normal !== this.#full) this.#normal.close();
      this.#full.close();
    } finally {
      this.#file?.release();
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #requireUsable(action: string): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#closed) throw new StoreFailure(action, `the database is closed (${this.path})`);
  }

  #failed(action: string, error: unknown): unknown {
    if (!(error instanceof StoreFailure) && !isSqliteError(error) && !isSystemError(error)) return error;
    this.#failure ??= storeFailure(action, this.path, error);
    return this.#failure;
  }
}

/**
 * Opens, checks and if need be creates or migrates the database.
 *
 * @param path  a file, relative to the working folder or absolute, taken literally; or ":memory:"
 * @throws StoreFailure with one line saying what is wrong and what to do; the file is then untouched
 * @throws TypeError for a path that names no file
 */
export function openDatabase(path: string, options: OpenOptions = {}): Database {
  if (path === "" || path.includes("\0")) {
    throw new TypeError(`Cannot open the database: its path must name a file, got ${JSON.stringify(path)}`);
  }
  if (path === ":memory:") return openInMemory(options);
  // Absolute, so that SQLite never reads the name as a URI ("file:…?mode=…").
  const absolute = resolve(path);
  try {
    return options.readOnly ? openForReading(absolute, options) : openForWriting(absolute, options);
  } catch (error) {
    throw storeFailure("open the database", absolute, error);
  }
}

function openInMemory(options: OpenOptions): Database {
  const connection = new Connection(":memory:", options);
  connection.transaction(() => migrationSql(0).forEach((sql) => connection.script(sql)));
  return new Database(":memory:", connection, connection, null);
}

function openForReading(path: string, options: OpenOptions): Database {
  if (inspectFile(path, false)) throw new StoreFailure("open the database", `there is no database (${path})`);
  const connection = new Connection(path, { ...options, readOnly: true });
  try {
    const version = requireOurSchema(connection, path);
    if (version !== SCHEMA_VERSION) {
      throw new StoreFailure(
        "open the database",
        `its schema ${version} is older than ${SCHEMA_VERSION}; start the service once to bring it up to date (${path})`,
      );
    }
    return new Database(path, connection, connection, null);
  } catch (error) {
    connection.close();
    throw error;
  }
}

function openForWriting(path: string, options: OpenOptions): Database {
  const file = new DatabaseFile(path);
  const opened: Connection[] = [];
  const connect = () => {
    const connection = new Connection(path, options);
    opened.push(connection);
    return connection;
  };
  try {
    // A connection that may write folds the log in when it closes; a damaged file is to be left as it was found.
    const readOnly = !file.hasInterruptedWrite();
    const version = file.isNew ? 0 : examine(path, { ...options, readOnly });
    const full = connect();
    configure(full, "FULL", path);
    if (version < SCHEMA_VERSION) migrate(full, version, path);
    const normal = connect();
    configure(normal, "NORMAL", path);
    file.remember();
    file.markInitialised();
    return new Database(path, full, normal, file);
  } catch (error) {
    for (const connection of opened) connection.close();
    file.release();
    throw error;
  }
}

/** @returns the schema version of a sound file of ours; 0 when it was created but never filled */
function examine(path: string, options: OpenOptions): number {
  using connection = new Connection(path, options);
  return requireOurSchema(connection, path);
}

function requireOurSchema(connection: Connection, path: string): number {
  const refuse = (problem: string): never => {
    throw new StoreFailure("open the database", `${problem} (${path})`);
  };
  const verdict = connection.pragma("quick_check(1)");
  if (verdict !== "ok") {
    const detail = String(verdict).split("\n").at(-1);
    refuse(`the file is damaged; restore a backup, or move the file away to start empty: ${detail}`);
  }
  const application = Number(connection.pragma("application_id"));
  const version = Number(connection.pragma("user_version"));
  const isBlank = application === 0 && version === 0 &&
    connection.get("SELECT 1 FROM sqlite_schema LIMIT 1") === null;
  if (isBlank) return 0;
  if (application !== APPLICATION_ID) {
    refuse(`the file belongs to another program; give "database.path" another name`);
  }
  if (version < 1) {
    refuse(`the file is damaged; restore a backup, or move the file away to start empty: schema ${version}`);
  }
  if (version > SCHEMA_VERSION) {
    refuse(
      `its schema ${version} is newer than ${SCHEMA_VERSION}, the newest this version knows; install the newer version, or restore a backup`,
    );
  }
  return version;
}

function configure(connection: Connection, synchronous: "FULL" | "NORMAL", path: string): void {
  const mode = connection.pragma("journal_mode = WAL");
  if (mode !== "wal") {
    throw new StoreFailure(
      "open the database",
      `the file system does not allow a write-ahead log; use a local disk (${path})`,
    );
  }
  connection.pragma(`synchronous = ${synchronous}`);
  connection.pragma(`journal_size_limit = ${LOG_SIZE_LIMIT_BYTES}`);
  connection.pragma("temp_store = MEMORY");
  connection.pragma("trusted_schema = OFF");
  connection.pragma("cell_size_check = ON");
}

/** One transaction, after a copy of what was there: a failure half-way leaves the older version as it was. */
function migrate(connection: Connection, version: number, path: string): void {
  if (version > 0) saveOlderVersion(connection, version, path);
  connection.transaction(() => migrationSql(version).forEach((sql) => connection.script(sql)));
}

/** Nobody else has the file yet: with its log folded in it is all there is. */
function saveOlderVersion(connection: Connection, version: number, path: string): void {
  const folded = connection.get("PRAGMA wal_checkpoint(TRUNCATE)");
  if (folded?.["busy"] !== 0) {
    throw new StoreFailure(
      "open the database",
      `another program keeps the database locked; close it (${path})`,
    );
  }
  const backup = `${path}.v${version}.bak`;
  const partial = beginPrivateFile(backup);
  try {
    Deno.copyFileSync(path, partial);
    Deno.chmodSync(partial, 0o600);
    completeFile(partial, backup);
  } catch (error) {
    removeIfThere(partial);
    throw error;
  }
}

async function intoPrivateFile(to: string, fill: (partial: string) => Promise<void>): Promise<void> {
  const partial = beginPrivateFile(to);
  try {
    await fill(partial);
    completeFile(partial, to);
  } catch (error) {
    removeIfThere(partial);
    throw error;
  }
}

/** Made first, so that it is private from its first byte. @returns the name it has until it is complete. */
function beginPrivateFile(to: string): string {
  const partial = `${to}.partial`;
  removeIfThere(partial);
  Deno.openSync(partial, { createNew: true, write: true, mode: 0o600 }).close();
  return partial;
}

/** Replaces `to` if it exists. */
function completeFile(partial: string, to: string): void {
  {
    using file = Deno.openSync(partial, { read: true, write: true });
    file.syncSync();
  }
  Deno.renameSync(partial, to);
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
