/**
 * A process that writes and says what it has written, for tests that kill it.
 *
 * `deno run -A store_writer.ts FILE FIRST` opens FILE and from number FIRST on keeps a deadline, a credential block,
 * a ledger and a binding for each number; a line with the number on stdout acknowledges all four. Ends only by force
 * or by a StoreFailure, whose line goes to stderr with exit code 70. `readNumbers` checks what a file holds.
 */
import { assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { StoreFailure } from "../../lib/ports.ts";
import { SqliteAffinityStore } from "../../lib/store/affinity_store.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { SqlitePoolStore } from "../../lib/store/pool_store.ts";

export const WRITER = fileURLToPath(import.meta.url);

/** Every record of a number carries it in its times, so that a mixed-up row is seen. */
const EPOCH_MS = 1_800_000_000_000;

function accountOf(number: number): string {
  return `account-${number}`;
}

function timeOf(number: number): number {
  return EPOCH_MS + number;
}

/** @returns the last number kept, after making sure that all up to it are there in full. */
export function readNumbers(path: string): number {
  using database = openDatabase(path);
  assertEquals(database.read("check", (connection) => connection.pragma("integrity_check")), "ok");
  const state = new SqlitePoolStore(database).load();
  const count = state.deadlines.length;
  const want = Array.from({ length: count }, (_, i) => i + 1);
  const ends = new Map(state.deadlines.map((row) => [row.account, row.deadline.untilMs]));
  assertEquals(want.map((number) => ends.get(accountOf(number))), want.map(timeOf));
  const credentials = new Set(state.credentials.map((row) => row.account));
  assertEquals([credentials.size, want.every((number) => credentials.has(accountOf(number)))], [count, true]);
  const charged = new Set(state.openLedgers.flatMap((row) => row.charged));
  assertEquals([charged.size, want.every((number) => charged.has(`req_${number}:1`))], [count, true]);
  const affinity = new SqliteAffinityStore(database);
  // The binding is a second transaction: only the last may still be without it, when it was not acknowledged.
  const bound = want.filter((number) => affinity.get(`session-${number}`)?.account === accountOf(number));
  assertEquals(bound, want.slice(0, bound.length));
  return bound.length;
}

function write(pool: SqlitePoolStore, affinity: SqliteAffinityStore, number: number): void {
  const account = accountOf(number);
  const atMs = timeOf(number);
  const request = `req_${number}`;
  pool.apply([
    {
      kind: "put_deadline",
      account,
      model: null,
      deadline: {
        untilMs: atMs,
        source: "retry_after",
        status: 429,
        code: "rate_limit_exceeded",
        attempt: `${request}:1`,
        launchedAtMs: atMs,
        writtenAtMs: atMs,
      },
    },
    {
      kind: "put_credential",
      account,
      block: { kind: "unauthorized", fingerprint: "f", code: "unauthorized", writtenAtMs: atMs },
    },
    {
      kind: "put_ledger",
      row: {
        request,
        idempotency: null,
        counter: 2,
        charged: [`${request}:1`],
        maxLaunches: 25,
        openedAtMs: atMs,
        closed: false,
      },
    },
  ], atMs);
  affinity.bind({ session: `session-${number}`, account, createdAtMs: atMs, expiresAtMs: atMs + 3_600_000 });
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

function main(path: string, first: number): void {
  say("opening");
  using database = openDatabase(path);
  const pool = new SqlitePoolStore(database);
  const affinity = new SqliteAffinityStore(database);
  say("open");
  for (let number = first;; number++) {
    write(pool, affinity, number);
    say(`${number}`);
  }
}

if (import.meta.main) {
  try {
    main(Deno.args[0]!, Number(Deno.args[1]));
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error;
    console.error(error.message);
    Deno.exit(70);
  }
}
