/**
 * The durable launch budget of one request (state-machine-facts 2C.5).
 *
 * A row only grows: a charge is never taken back, a closed ledger never opens again. So a replayed, late or made-up
 * result cannot refund or spend a budget, whatever the caller believes.
 */
import { formatAttemptId, parseAttemptId } from "../core/domain.ts";
import type { LedgerRow } from "../core/records.ts";
import { StoreFailure } from "../ports.ts";
import {
  COUNT,
  decode,
  encode,
  FLAG,
  integer,
  nullable,
  parsed,
  poisonedRow,
  type Shape,
  text,
  TIME_MS,
} from "./codec.ts";
import type { Connection } from "./database.ts";

type LedgerHead = Omit<LedgerRow, "charged">;

const LARGEST_COUNTER = 999_999_999;

const HEAD: Shape<LedgerHead> = {
  request: parsed("a request id", (value) => parseAttemptId(formatAttemptId(value, 1))?.request === value),
  idempotency: nullable(text(1, 256)),
  counter: integer(0, LARGEST_COUNTER),
  maxLaunches: COUNT,
  openedAtMs: TIME_MS,
  closed: FLAG,
};

const UPSERT = `INSERT INTO ledger
  (request, idempotency, counter, max_launches, opened_at_ms, closed, touched_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (request) DO UPDATE SET
    counter = excluded.counter, max_launches = excluded.max_launches, closed = excluded.closed,
    touched_at_ms = excluded.touched_at_ms`;

/** @throws StoreFailure for a ledger that breaks its rules: the state behind it is wrong and must launch nothing */
export function putLedger(connection: Connection, row: LedgerRow, nowMs: number): void {
  const { charged: _, ...head } = row;
  const values = encode("ledger", HEAD, head);
  const charges = chargedCounters(row);
  const stored = connection.get("SELECT counter, closed FROM ledger WHERE request = ?", row.request);
  const known = new Set(
    connection.all("SELECT attempt_counter FROM ledger_charge WHERE request = ?", row.request)
      .map((charge) => charge.attempt_counter as number),
  );
  if (stored !== null) requireGrowth(row, charges, stored, known);
  connection.run(UPSERT, ...values, nowMs);
  for (const counter of charges) {
    if (known.has(counter)) continue;
    connection.run(
      "INSERT INTO ledger_charge (request, attempt_counter) VALUES (?, ?)",
      row.request,
      counter,
    );
  }
}

/** @returns ledgers that were still open when the process ended */
export function loadOpenLedgers(connection: Connection): LedgerRow[] {
  const charges = new Map<string, string[]>();
  const rows = connection.wideRows(
    `SELECT c.request, c.attempt_counter FROM ledger_charge AS c JOIN ledger AS l ON l.request = c.request
     WHERE l.closed <> 1 ORDER BY c.request, c.attempt_counter`,
  );
  for (const row of rows) {
    const charge = decode("ledger_charge", ["request", "attempt_counter"], CHARGE, row);
    const list = charges.get(charge.request) ?? [];
    list.push(formatAttemptId(charge.request, charge.attemptCounter));
    charges.set(charge.request, list);
  }
  // `<> 1`, not `= 0`: a row whose flag is neither is poisoned and has to be seen.
  return connection.wideRows("SELECT * FROM ledger WHERE closed <> 1 ORDER BY request").map((row) => {
    const ledger = {
      ...decode("ledger", ["request"], HEAD, row),
      charged: charges.get(String(row.request)) ?? [],
    };
    const problem = ledgerProblem(ledger);
    if (problem !== null) throw poisonedRow("ledger", ["request"], row, problem);
    return ledger;
  });
}

const CHARGE: Shape<{ request: string; attemptCounter: number }> = {
  request: HEAD.request,
  attemptCounter: integer(1, LARGEST_COUNTER),
};

function chargedCounters(row: LedgerRow): number[] {
  const problem = ledgerProblem(row);
  if (problem !== null) throw invalidLedger(row, problem);
  return row.charged.map((attempt) => parseAttemptId(attempt)!.counter);
}

/** @returns which rule a ledger breaks, or null */
function ledgerProblem(row: LedgerRow): string | null {
  const seen = new Set<string>();
  for (const attempt of row.charged) {
    const id = parseAttemptId(attempt);
    if (id === null) return `a charge must be an attempt id, got ${JSON.stringify(attempt)}`;
    if (id.request !== row.request) return `charge "${attempt}" belongs to another request`;
    if (id.counter > row.counter) return `charge "${attempt}" was never minted (counter is ${row.counter})`;
    if (seen.has(attempt)) return `charge "${attempt}" appears twice`;
    seen.add(attempt);
  }
  return row.charged.length > row.maxLaunches
    ? `${row.charged.length} charges exceed the budget of ${row.maxLaunches} launches`
    : null;
}

function requireGrowth(
  row: LedgerRow,
  charges: readonly number[],
  stored: Readonly<Record<string, unknown>>,
  known: ReadonlySet<number>,
): void {
  const kept = new Set(charges);
  for (const counter of known) {
    if (!kept.has(counter)) {
      throw invalidLedger(row, `charge "${formatAttemptId(row.request, counter)}" was taken back`);
    }
  }
  if (row.counter < (stored.counter as number)) {
    throw invalidLedger(row, `its counter went back from ${stored.counter} to ${row.counter}`);
  }
  if (stored.closed === 1 && !row.closed) throw invalidLedger(row, "it was closed and opened again");
}

function invalidLedger(row: LedgerRow, problem: string): StoreFailure {
  return new StoreFailure(`keep the ledger of ${row.request}`, `constraint: ${problem}`);
}
