import { assertEquals } from "@std/assert";
import { type Binding, needsRenewal, winningBinding } from "../../lib/core/session_affinity.ts";

const NOW = 1_700_000_000_000;

function row(session: string, createdAtMs: number, expiresAtMs = NOW + 1): Binding {
  return { session, account: `of-${session}`, createdAtMs, expiresAtMs };
}

const winners: readonly { name: string; rows: readonly (Binding | null)[]; want: string | null }[] = [
  { name: "no alias is bound", rows: [null, null], want: null },
  { name: "the oldest wins, not the best alias", rows: [row("a", 5), row("b", 3)], want: "b" },
  { name: "of equally old ones the smaller digest", rows: [row("b", 3), row("a", 3)], want: "a" },
  { name: "an expired one does not count", rows: [row("a", 1, NOW), row("b", 3)], want: "b" },
  { name: "all expired", rows: [row("a", 1, NOW)], want: null },
];
for (const c of winners) {
  Deno.test(`winningBinding() is ${c.want ?? "none"}: ${c.name} (#5)`, () => {
    assertEquals(winningBinding(c.rows, NOW)?.session ?? null, c.want);
    assertEquals(winningBinding(c.rows.toReversed(), NOW)?.session ?? null, c.want);
  });
}

Deno.test("needsRenewal() once half the life is over", () => {
  const half = row("a", 0, NOW + 1_800_000);
  assertEquals([needsRenewal(half, 3_600_000, NOW - 1), needsRenewal(half, 3_600_000, NOW)], [false, true]);
});
