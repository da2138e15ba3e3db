/** The ledger on disk at the moment of a launch and at the end (P26 to P28). */
import type { LedgerRow } from "../../../lib/core/records.ts";
import type { Launch } from "../../../lib/core/retry_plan.ts";
import type { MirrorStore } from "../stores/mirror_store.ts";
import { must } from "../violation.ts";

/** Every launch but a request's first was paid for before it went out. */
export function requirePaid(disk: MirrorStore, launch: Launch, bound: number): void {
  if (launch.counter === 1) return;
  const request = launch.attempt.slice(0, launch.attempt.lastIndexOf(":"));
  const row = disk.ledgers.get(request);
  must(row !== undefined, "P28", () => `${launch.attempt} went out without a ledger on disk`);
  must(
    row.counter === launch.counter,
    "P28",
    () => `${launch.attempt} went out, the disk knows ${row.counter}`,
  );
  requireSoundLedger(row, bound);
  must(
    row.charged.includes(`${request}:${launch.counter - 1}`),
    "P28",
    () => `${launch.attempt} went out before the attempt it follows was charged`,
  );
  must(!row.closed, "P26", () => `${launch.attempt} went out on a closed ledger`);
}

export function requireSoundLedger(row: LedgerRow, bound: number): void {
  const known = new Set(row.charged);
  must(known.size === row.charged.length, "P26", () => `${row.request} charged twice: ${row.charged}`);
  must(
    row.charged.length <= Math.max(0, bound - 1),
    "P26",
    () => `${row.request} has ${row.charged.length} charges of ${bound - 1}`,
  );
  must(
    row.counter <= 1 + row.charged.length,
    "P26",
    () => `${row.request} made ${row.counter} launches for ${row.charged.length} charges`,
  );
  for (const attempt of row.charged) {
    const [request, counter] = [
      attempt.slice(0, attempt.lastIndexOf(":")),
      Number(attempt.slice(attempt.lastIndexOf(":") + 1)),
    ];
    must(
      request === row.request && counter >= 1 && counter <= row.counter,
      "P26",
      () => `${row.request} charged ${attempt}`,
    );
  }
}
