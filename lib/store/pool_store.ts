/** Durable effects of the machine's transitions: written before they are acted on, read back once at start. */
import type { CredentialBlock, DurableChange, DurableState } from "../core/records.ts";
import type { PoolStore } from "../ports.ts";
import {
  COUNT,
  decode,
  decodeField,
  encode,
  type Field,
  poisonedRow,
  type RawRow,
  requireField,
  type Shape,
  text,
  TIME_MS,
  upsertSql,
} from "./codec.ts";
import type { Connection, Database, Durability } from "./database.ts";
import { loadOpenLedgers, putLedger } from "./ledger_rows.ts";
import {
  ACCOUNT,
  COOLDOWN,
  cooldownProblem,
  CREDENTIAL,
  CREDITS,
  DEADLINE,
  type DurableCredentialBlock,
  MODEL,
  NETWORK,
  networkProblem,
  POOL,
  PROVIDER,
  READING,
} from "./pool_shapes.ts";

const PUT_DEADLINE = upsertSql("deadline", ["account", "model"], DEADLINE);
const PUT_CREDENTIAL = upsertSql("credential_block", ["account"], CREDENTIAL);
const PUT_CREDITS = upsertSql("credits_block", ["account"], CREDITS);
const PUT_READING = upsertSql("quota_reading", ["account"], READING);
const PUT_COOLDOWN = upsertSql("provider_cooldown", ["provider"], COOLDOWN);
const PUT_NETWORK = upsertSql("network", ["id"], NETWORK);

/** Every table with rows of one account. */
const ACCOUNT_TABLES = ["deadline", "credential_block", "credits_block", "disabled_account", "quota_reading"];

/** A replayed result must still find the charge it would repeat. */
const CLOSED_LEDGER_KEPT_MS = 3_600_000;
/** A ledger that a crash left open can be resumed by its Idempotency-Key for this long. */
const OPEN_LEDGER_KEPT_MS = 86_400_000;
/** Deadlines outlive their end by this much: a clock set back must not find them gone. */
const ENDED_DEADLINE_KEPT_MS = 86_400_000;
const AUDIT_LINES_KEPT = 10_000;
const PRUNE_BATCH = 500;
/** Per call; the next call goes on. */
const PRUNE_BATCH_LIMIT = 20;

export interface AuditLine {
  readonly atMs: number;
  readonly action: string;
  readonly subject: string;
  readonly detail: string;
}

const AUDIT_LINE: Shape<AuditLine> = {
  atMs: TIME_MS,
  action: text(1, 128),
  subject: text(0, 4_096),
  detail: text(0, 4_096),
};

export class SqlitePoolStore implements PoolStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  load(): DurableState {
    return this.#database.read("load the pool", (connection) => ({
      deadlines: connection.wideRows("SELECT * FROM deadline ORDER BY account, model").map(readDeadline),
      credentials: connection.wideRows("SELECT * FROM credential_block ORDER BY account").map((row) => ({
        account: accountOf("credential_block", row),
        block: decode("credential_block", ["account"], CREDENTIAL, row),
      })),
      credits: connection.wideRows("SELECT * FROM credits_block ORDER BY account").map((row) => ({
        account: accountOf("credits_block", row),
        block: decode("credits_block", ["account"], CREDITS, row),
      })),
      disabled: connection.wideRows("SELECT * FROM disabled_account ORDER BY account")
        .map((row) => accountOf("disabled_account", row)),
      readings: connection.wideRows("SELECT * FROM quota_reading ORDER BY account").map((row) => ({
        account: accountOf("quota_reading", row),
        reading: decode("quota_reading", ["account"], READING, row),
      })),
      providerCooldowns: connection.wideRows("SELECT * FROM provider_cooldown ORDER BY provider")
        .map(readCooldown),
      network: connection.wideRows("SELECT * FROM network").map(readNetwork)[0] ?? null,
      openLedgers: loadOpenLedgers(connection),
      ringCursors: connection.wideRows("SELECT * FROM ring_cursor ORDER BY pool").map((row) => ({
        pool: keyOf("ring_cursor", "pool", POOL, row),
        cursor: decodeField("ring_cursor", ["pool"], "cursor", COUNT, row),
      })),
    }));
  }

  /**
   * @throws StoreFailure
   * @throws TypeError, RangeError for a change that no row may hold; nothing of the list is then kept
   */
  apply(changes: readonly DurableChange[], nowMs: number): void {
    if (changes.length === 0) return;
    requireField("nowMs", TIME_MS, nowMs);
    const durability: Durability = changes.every(isReplaceable) ? "normal" : "full";
    this.#database.write(durability, "save pool changes", (connection) => {
      for (const change of changes) applyChange(connection, change, nowMs);
    });
  }

  prune(nowMs: number): void {
    const tasks: readonly (readonly [string, number])[] = [
      [
        `DELETE FROM ledger WHERE request IN
           (SELECT request FROM ledger WHERE touched_at_ms < ? AND closed = 1 LIMIT ${PRUNE_BATCH})`,
        nowMs - CLOSED_LEDGER_KEPT_MS,
      ],
      [
        `DELETE FROM ledger WHERE request IN
           (SELECT request FROM ledger WHERE touched_at_ms < ? LIMIT ${PRUNE_BATCH})`,
        nowMs - OPEN_LEDGER_KEPT_MS,
      ],
      [
        `DELETE FROM deadline WHERE (account, model) IN
           (SELECT account, model FROM deadline WHERE until_ms < ? LIMIT ${PRUNE_BATCH})`,
        nowMs - ENDED_DEADLINE_KEPT_MS,
      ],
      [
        `DELETE FROM audit WHERE id IN
           (SELECT id FROM audit WHERE id <= (SELECT max(id) FROM audit) - ? LIMIT ${PRUNE_BATCH})`,
        AUDIT_LINES_KEPT,
      ],
    ];
    for (const [sql, limit] of tasks) this.#deleteInBatches(sql, limit);
  }

  /** Newest first. */
  auditLines(limit: number): AuditLine[] {
    return this.#database.read(
      "read the audit lines",
      (connection) =>
        connection.wideRows("SELECT * FROM audit ORDER BY id DESC LIMIT ?", limit)
          .map((row) => decode("audit", ["id"], AUDIT_LINE, row)),
    );
  }

  #deleteInBatches(sql: string, value: number): void {
    for (let batch = 0; batch < PRUNE_BATCH_LIMIT; batch++) {
      const removed = this.#database.write(
        "normal",
        "prune the pool",
        (connection) => connection.run(sql, value),
      );
      if (removed < PRUNE_BATCH) return;
    }
  }
}

/**
 * Lost with the power, these are read or counted anew; they need no wait for the disk (ruling 9). A ledger that was
 * closed and is open again only grants less: what was charged to it stays charged.
 */
function isReplaceable(change: DurableChange): boolean {
  return change.kind === "put_reading" || change.kind === "put_ring_cursor" ||
    (change.kind === "put_ledger" && change.row.closed);
}

function applyChange(connection: Connection, change: DurableChange, nowMs: number): void {
  switch (change.kind) {
    case "put_deadline":
      connection.run(
        PUT_DEADLINE,
        account(change),
        modelKey(change),
        ...encode("deadline", DEADLINE, change.deadline),
      );
      return;
    case "drop_deadline":
      connection.run(
        "DELETE FROM deadline WHERE account = ? AND model = ?",
        account(change),
        modelKey(change),
      );
      return;
    case "put_credential":
      connection.run(
        PUT_CREDENTIAL,
        account(change),
        ...encode("credential block", CREDENTIAL, durable(change.block)),
      );
      return;
    case "drop_credential":
      connection.run("DELETE FROM credential_block WHERE account = ?", account(change));
      return;
    case "put_credits":
      connection.run(PUT_CREDITS, account(change), ...encode("credits block", CREDITS, change.block));
      return;
    case "drop_credits":
      connection.run("DELETE FROM credits_block WHERE account = ?", account(change));
      return;
    case "set_enabled":
      if (change.enabled) connection.run("DELETE FROM disabled_account WHERE account = ?", account(change));
      else {
        connection.run(
          "INSERT INTO disabled_account (account, disabled_at_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
          account(change),
          nowMs,
        );
      }
      return;
    case "forget_account":
      for (const table of ACCOUNT_TABLES) {
        connection.run(`DELETE FROM ${table} WHERE account = ?`, account(change));
      }
      return;
    case "put_reading":
      connection.run(PUT_READING, account(change), ...encode("quota reading", READING, change.reading));
      return;
    case "put_provider_cooldown":
      requireField("provider", PROVIDER, change.provider);
      refuseProblem("provider cooldown", cooldownProblem(change.cooldown));
      connection.run(
        PUT_COOLDOWN,
        change.provider,
        ...encode("provider cooldown", COOLDOWN, change.cooldown),
      );
      return;
    case "drop_provider_cooldown":
      connection.run("DELETE FROM provider_cooldown WHERE provider = ?", change.provider);
      return;
    case "put_network": {
      const { evidence, lastSuccessAtMs, pause, generation } = change.network;
      const values = encode("network", NETWORK, { evidence, lastSuccessAtMs, pause, generation });
      refuseProblem("network", networkProblem(change.network));
      connection.run(PUT_NETWORK, 1, ...values);
      return;
    }
    case "put_ledger":
      putLedger(connection, change.row, nowMs);
      return;
    case "put_ring_cursor":
      requireField("pool", POOL, change.pool);
      requireField("cursor", COUNT, change.cursor);
      connection.run(
        `INSERT INTO ring_cursor (pool, cursor) VALUES (?, ?)
         ON CONFLICT (pool) DO UPDATE SET cursor = excluded.cursor`,
        change.pool,
        change.cursor,
      );
      return;
    case "audit": {
      const { action, subject, detail } = change;
      const values = encode("audit", AUDIT_LINE, { atMs: nowMs, action, subject, detail });
      connection.run("INSERT INTO audit (at_ms, action, subject, detail) VALUES (?, ?, ?, ?)", ...values);
      return;
    }
    default:
      change satisfies never;
      throw new TypeError(`Cannot save pool changes: unknown change ${JSON.stringify(change)}`);
  }
}

function account(change: { readonly account: string }): string {
  requireField("account", ACCOUNT, change.account);
  return change.account;
}

/** A NULL would make each row of the primary key unique; model ids are never empty. */
function modelKey(change: { readonly model: string | null }): string {
  if (change.model === null) return "";
  requireField("model", MODEL, change.model);
  return change.model;
}

function durable(block: CredentialBlock): DurableCredentialBlock {
  // The field check refuses `credential_invalid` by name.
  return block as DurableCredentialBlock;
}

function refuseProblem(what: string, problem: string | null): void {
  if (problem !== null) throw new RangeError(`Cannot store ${what}: ${problem}`);
}

function readDeadline(row: RawRow): DurableState["deadlines"][number] {
  return {
    account: keyOf("deadline", "account", ACCOUNT, row),
    model: row.model === "" ? null : keyOf("deadline", "model", MODEL, row),
    deadline: decode("deadline", ["account", "model"], DEADLINE, row),
  };
}

function readCooldown(row: RawRow): DurableState["providerCooldowns"][number] {
  const cooldown = decode("provider_cooldown", ["provider"], COOLDOWN, row);
  const problem = cooldownProblem(cooldown);
  if (problem !== null) throw poisonedRow("provider_cooldown", ["provider"], row, problem);
  return { provider: keyOf("provider_cooldown", "provider", PROVIDER, row), cooldown };
}

function readNetwork(row: RawRow): NonNullable<DurableState["network"]> {
  const network = decode("network", ["id"], NETWORK, row);
  const problem = networkProblem(network);
  if (problem !== null) throw poisonedRow("network", ["id"], row, problem);
  return network;
}

function accountOf(table: string, row: RawRow): string {
  return keyOf(table, "account", ACCOUNT, row);
}

function keyOf(table: string, column: string, field: Field<string>, row: RawRow): string {
  return decodeField(table, [column], column, field, row);
}
