/** Client users and their usage, the key of the first start, and which account made which upstream resource. */
import type { AccountId } from "../core/domain.ts";
import {
  type AccountStore,
  type ManagedUser,
  StoreConflict,
  type UsageCount,
  type UsageKey,
  type UsageQuery,
} from "../ports.ts";
import {
  columnsOf,
  COUNT,
  decode,
  decodeField,
  encode,
  FLAG,
  integer,
  requireField,
  secret,
  type Shape,
  text,
  TIME_MS,
  upsertSql,
} from "./codec.ts";
import type { Database } from "./database.ts";
import { ACCOUNT } from "./pool_shapes.ts";

/** Usage is counted in buckets of this length, beginning at whole multiples of it in UTC. */
export const USAGE_BUCKET_MS = 600_000;

const KEY_HASH = secret(text(1, 256));

const USER: Shape<ManagedUser> = {
  id: text(1, 256),
  name: text(1, 256),
  enabled: FLAG,
  keyHash: KEY_HASH,
  keyHint: text(0, 64),
  createdAtMs: TIME_MS,
  keyCreatedAtMs: TIME_MS,
};

const USAGE_KEY: Shape<UsageKey> = {
  tenant: text(0, 256),
  keyHint: text(0, 64),
  provider: text(0, 256),
  model: text(0, 1_024),
  effort: text(0, 64),
};

const USAGE_COUNT: Shape<UsageCount> = {
  requests: COUNT,
  failures: COUNT,
  inputTokens: COUNT,
  cachedTokens: COUNT,
  outputTokens: COUNT,
  reasoningTokens: COUNT,
};

const RESOURCE = text(1, 512);
const FIRST_RUN_KEY = "first_run_key_hash";

const PUT_USER = upsertSql("managed_user", ["id"], omitId(USER));
const USAGE_COLUMNS = ["bucket_at_ms", ...columnsOf(USAGE_KEY)];
const ADD_USAGE = `INSERT INTO usage_bucket (${[...USAGE_COLUMNS, ...columnsOf(USAGE_COUNT)].join(", ")})
  VALUES (${[...USAGE_COLUMNS, ...columnsOf(USAGE_COUNT)].map(() => "?").join(", ")})
  ON CONFLICT (${USAGE_COLUMNS.join(", ")}) DO UPDATE SET
  ${columnsOf(USAGE_COUNT).map((column) => `${column} = ${column} + excluded.${column}`).join(", ")}`;

const IN_RANGE = "WHERE bucket_at_ms >= ? AND bucket_at_ms < ? AND (? IS NULL OR tenant = ?)";
/** SQLite's own word for no limit is -1. */
const LIMIT = integer(-1, 1_000_000);

export class SqliteAccountStore implements AccountStore {
  readonly #database: Database;
  /** All users are held in memory: every request asks for one. Replaced as a whole after a change was kept. */
  #users: readonly ManagedUser[];
  #byKeyHash: ReadonlyMap<string, ManagedUser>;

  /** @throws StoreFailure on a user row that does not parse */
  constructor(database: Database) {
    this.#database = database;
    this.#users = database.read(
      "load the users",
      (connection) =>
        connection.wideRows("SELECT * FROM managed_user ORDER BY created_at_ms, id")
          .map((row) => decode("managed_user", ["id"], USER, row)),
    );
    this.#byKeyHash = indexByKeyHash(this.#users);
  }

  users(): readonly ManagedUser[] {
    return this.#users;
  }

  userByKeyHash(keyHash: string): ManagedUser | null {
    return this.#byKeyHash.get(keyHash) ?? null;
  }

  createUser(user: ManagedUser): void {
    if (this.#users.some((other) => other.id === user.id)) {
      throw new StoreConflict(`Cannot create user: the id is taken, got ${JSON.stringify(user.id)}`);
    }
    this.#saveUser("create user", user);
  }

  updateUser(user: ManagedUser): void {
    if (!this.#users.some((other) => other.id === user.id)) {
      throw new RangeError(`Cannot update user: there is none with this id, got ${JSON.stringify(user.id)}`);
    }
    this.#saveUser("update user", user);
  }

  addUsage(
    rows: readonly { readonly key: UsageKey; readonly atMs: number; readonly count: UsageCount }[],
  ): void {
    if (rows.length === 0) return;
    const values = rows.map(({ key, atMs, count }) => {
      requireField("usage.atMs", TIME_MS, atMs);
      return [bucketOf(atMs), ...encode("usage", USAGE_KEY, key), ...encode("usage", USAGE_COUNT, count)];
    });
    this.#database.write("normal", "save usage", (connection) => {
      for (const row of values) connection.run(ADD_USAGE, ...row);
    });
  }

  usage(
    query: UsageQuery & { readonly limit?: number },
  ): { bucketAtMs: number; key: UsageKey; count: UsageCount }[] {
    const range = usageRange(query);
    const limit = query.limit ?? -1;
    requireField("limit", LIMIT, limit);
    const key = USAGE_COLUMNS;
    return this.#database.read("read usage", (connection) =>
      connection.wideRows(
        `SELECT * FROM (SELECT * FROM usage_bucket ${IN_RANGE} ORDER BY ${key.join(" DESC, ")} DESC LIMIT ?)
         ORDER BY ${key.join(", ")}`,
        ...range,
        limit,
      ).map((row) => ({
        bucketAtMs: decodeField("usage_bucket", key, "bucket_at_ms", TIME_MS, row),
        key: decode("usage_bucket", key, USAGE_KEY, row),
        count: decode("usage_bucket", key, USAGE_COUNT, row),
      })));
  }

  usageTotals(query: UsageQuery): { key: UsageKey; count: UsageCount }[] {
    const range = usageRange(query);
    const key = columnsOf(USAGE_KEY);
    const sums = columnsOf(USAGE_COUNT).map((column) => `SUM(${column}) AS ${column}`);
    return this.#database.read("add up usage", (connection) =>
      connection.wideRows(
        `SELECT ${[...key, ...sums].join(", ")} FROM usage_bucket ${IN_RANGE}
         GROUP BY ${key.join(", ")} ORDER BY ${key.join(", ")}`,
        ...range,
      ).map((row) => ({
        key: decode("usage_bucket", key, USAGE_KEY, row),
        count: decode("usage_bucket", key, USAGE_COUNT, row),
      })));
  }

  dropUsageBefore(beforeMs: number, limit: number): number {
    requireField("beforeMs", TIME_MS, beforeMs);
    return this.#database.write("normal", "drop old usage", (connection) =>
      connection.run(
        `DELETE FROM usage_bucket WHERE (${USAGE_COLUMNS.join(", ")}) IN
           (SELECT ${USAGE_COLUMNS.join(", ")} FROM usage_bucket
            WHERE bucket_at_ms < ? ORDER BY bucket_at_ms LIMIT ?)`,
        beforeMs,
        limit,
      ));
  }

  firstRunKeyHash(): string | null {
    return this.#database.read("read the key of the first start", (connection) => {
      const row = connection.wideRows("SELECT name, value FROM setting WHERE name = ?", FIRST_RUN_KEY)[0];
      return row === undefined ? null : decodeField("setting", ["name"], "value", KEY_HASH, row);
    });
  }

  saveFirstRunKeyHash(hash: string): void {
    requireField("first-run key hash", KEY_HASH, hash);
    this.#database.write("full", "save the key of the first start", (connection) => {
      connection.run(
        `INSERT INTO setting (name, value) VALUES (?, ?)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
        FIRST_RUN_KEY,
        hash,
      );
    });
  }

  pin(resource: string, account: AccountId, expiresAtMs: number): void {
    requireField("resource", RESOURCE, resource);
    requireField("account", ACCOUNT, account);
    requireField("expiresAtMs", TIME_MS, expiresAtMs);
    this.#database.write("normal", "pin a resource", (connection) => {
      connection.run(
        `INSERT INTO resource_pin (resource, account, expires_at_ms) VALUES (?, ?, ?)
         ON CONFLICT (resource) DO UPDATE SET account = excluded.account, expires_at_ms = excluded.expires_at_ms`,
        resource,
        account,
        expiresAtMs,
      );
    });
  }

  pinned(resource: string, nowMs: number): AccountId | null {
    return this.#database.read("read a pin", (connection) => {
      const row = connection.wideRows(
        "SELECT resource, account FROM resource_pin WHERE resource = ? AND expires_at_ms > ?",
        resource,
        nowMs,
      )[0];
      return row === undefined ? null : decodeField("resource_pin", ["resource"], "account", ACCOUNT, row);
    });
  }

  dropExpiredPins(nowMs: number, limit: number): number {
    requireField("nowMs", TIME_MS, nowMs);
    return this.#database.write("normal", "drop expired pins", (connection) =>
      connection.run(
        `DELETE FROM resource_pin WHERE resource IN
           (SELECT resource FROM resource_pin WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)`,
        nowMs,
        limit,
      ));
  }

  #saveUser(action: string, user: ManagedUser): void {
    const others = this.#users.filter((other) => other.id !== user.id);
    if (others.some((other) => other.name === user.name)) {
      throw new StoreConflict(`Cannot ${action}: the name is taken, got ${JSON.stringify(user.name)}`);
    }
    if (others.some((other) => other.keyHash === user.keyHash)) {
      throw new StoreConflict(`Cannot ${action}: the key is in use by another user`);
    }
    const values = encode("user", USER, user);
    this.#database.write("full", action, (connection) => {
      connection.run(PUT_USER, ...values);
    });
    this.#users = [...others, user].sort(byAge);
    this.#byKeyHash = indexByKeyHash(this.#users);
  }
}

function omitId(shape: Shape<ManagedUser>): Shape<Omit<ManagedUser, "id">> {
  const { id: _, ...rest } = shape;
  return rest;
}

function indexByKeyHash(users: readonly ManagedUser[]): ReadonlyMap<string, ManagedUser> {
  return new Map(users.map((user) => [user.keyHash, user]));
}

function byAge(a: ManagedUser, b: ManagedUser): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1);
}

function usageRange({ fromMs, toMs, tenant }: UsageQuery): [number, number, string | null, string | null] {
  requireField("fromMs", TIME_MS, fromMs);
  requireField("toMs", TIME_MS, toMs);
  return [bucketOf(fromMs), toMs, tenant, tenant];
}

function bucketOf(atMs: number): number {
  return atMs - atMs % USAGE_BUCKET_MS;
}
