/** Records of the pool for the store's tests: fixed ones, and generators of any valid one. */
import fc from "fast-check";
import type {
  CreditsBlock,
  Deadline,
  DurableChange,
  LedgerRow,
  NetworkPause,
  ProviderCooldown,
  QuotaReading,
} from "../../lib/core/records.ts";
import type { DurableCredentialBlock, DurableNetwork } from "../../lib/store/pool_shapes.ts";

export const NOW_MS = 1_800_000_000_000;

export function deadline(change: Partial<Deadline> = {}): Deadline {
  return {
    untilMs: NOW_MS + 7_200_000,
    source: "retry_after",
    status: 429,
    code: "rate_limit_exceeded",
    attempt: "req_a:1",
    launchedAtMs: NOW_MS - 20,
    writtenAtMs: NOW_MS,
    ...change,
  };
}

export function ledger(change: Partial<LedgerRow> = {}): LedgerRow {
  return {
    request: "req_a",
    idempotency: null,
    counter: 3,
    charged: ["req_a:1", "req_a:2"],
    maxLaunches: 25,
    openedAtMs: NOW_MS,
    closed: false,
    ...change,
  };
}

export function putDeadline(account: string, change: Partial<Deadline> = {}): DurableChange {
  return { kind: "put_deadline", account, model: null, deadline: deadline(change) };
}

const time = fc.integer({ min: 0, max: 8_640_000_000_000 });
const word = fc.stringMatching(/^[a-z0-9_]{1,24}$/);
/** Ids as they come: paths, blanks, quotes, other scripts. */
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 })
  // deno-lint-ignore no-control-regex
  .filter((text) => !/[\u0000-\u001f\u007f]/.test(text) && text.isWellFormed());
const attempt = fc.tuple(fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/), fc.integer({ min: 1, max: 9_999 }))
  .map(([request, counter]) => `${request}:${counter}`);

const anyDeadline: fc.Arbitrary<Deadline> = fc.record({
  untilMs: time,
  source: fc.constantFrom("retry_after", "body", "headers", "message"),
  status: fc.integer({ min: 100, max: 599 }),
  code: word,
  attempt,
  launchedAtMs: time,
  writtenAtMs: time,
});

const anyCredential: fc.Arbitrary<DurableCredentialBlock> = fc.record({
  kind: fc.constantFrom("unauthorized", "invalid_grant"),
  fingerprint: word,
  code: word,
  writtenAtMs: time,
});

const anyCredits: fc.Arbitrary<CreditsBlock> = fc.record({ openedAtMs: time, code: word, probeAtMs: time });

const anyReading: fc.Arbitrary<QuotaReading> = fc.record({
  observedAtMs: time,
  source: fc.constantFrom("usage_page", "response_headers", "stream_event", "websocket_frame", "snapshot"),
  windows: fc.array(
    fc.record({
      name: word,
      usedPercent: fc.option(fc.double({ min: 0, max: 250, noNaN: true }).map((percent) => percent + 0)),
      resetAtMs: fc.option(time),
      modelFamily: fc.option(word),
    }),
    { maxLength: 6 },
  ),
  limitReached: fc.option(fc.boolean()),
  servesBeyondWindows: fc.boolean(),
  creditsAvailable: fc.option(fc.boolean()),
  plan: fc.option(word),
});

const anyCooldown: fc.Arbitrary<ProviderCooldown> = fc.record({
  openedAtMs: time,
  lengthMs: fc.nat(10_000_000),
  reason: fc.constantFrom("rate_limited", "overloaded", "usage_window_exhausted", "network", "edge_block"),
  openedBy: attempt,
  generation: fc.nat(),
  level: fc.nat(20),
  explicit: fc.boolean(),
}).map(({ lengthMs, ...rest }) => ({ ...rest, untilMs: rest.openedAtMs + lengthMs }));

const anyEvidence = fc.uniqueArray(fc.record({ provider: name, attempt, observedAtMs: time }), {
  maxLength: 5,
  selector: (entry) => entry.attempt,
});

const anyPause: fc.Arbitrary<NetworkPause> = fc.record({
  openedAtMs: time,
  lengthMs: fc.nat(60_000),
  evidence: anyEvidence,
  generation: fc.nat(100),
}).map(({ lengthMs, ...rest }) => ({ ...rest, untilMs: rest.openedAtMs + lengthMs }));

const anyNetwork: fc.Arbitrary<DurableNetwork> = fc.record({
  evidence: anyEvidence,
  lastSuccessAtMs: time,
  pause: fc.option(anyPause),
  generation: fc.integer({ min: 100, max: 10_000 }),
});

const anyLedger: fc.Arbitrary<LedgerRow> = fc.record({
  request: fc.stringMatching(/^[A-Za-z0-9_-]{1,30}$/),
  idempotency: fc.option(word),
  counter: fc.integer({ min: 1, max: 40 }),
  openedAtMs: time,
  closed: fc.constant(false),
  charges: fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 10 }),
}).map(({ charges, ...rest }) => ({
  ...rest,
  maxLaunches: 41,
  charged: charges.filter((charge) => charge <= rest.counter).sort((a, b) => a - b)
    .map((charge) => `${rest.request}:${charge}`),
}));

/** A whole state, each key once, as it would be in the tables. */
export const anyState = fc.record({
  deadlines: fc.uniqueArray(
    fc.record({ account: name, model: fc.option(name), deadline: anyDeadline }),
    { maxLength: 8, selector: (row) => JSON.stringify([row.account, row.model]) },
  ),
  credentials: byAccount({ block: anyCredential }),
  credits: byAccount({ block: anyCredits }),
  disabled: fc.uniqueArray(name, { maxLength: 6 }),
  readings: byAccount({ reading: anyReading }),
  providerCooldowns: fc.uniqueArray(fc.record({ provider: name, cooldown: anyCooldown }), {
    maxLength: 4,
    selector: (row) => row.provider,
  }),
  network: fc.option(anyNetwork),
  openLedgers: fc.uniqueArray(anyLedger, { maxLength: 6, selector: (row) => row.request }),
  ringCursors: fc.uniqueArray(fc.record({ pool: name, cursor: fc.nat() }), {
    maxLength: 4,
    selector: (row) => row.pool,
  }),
});

function byAccount<T>(
  rest: { [K in keyof T]: fc.Arbitrary<T[K]> },
): fc.Arbitrary<({ account: string } & T)[]> {
  const row = fc.record({ account: name, ...rest }) as unknown as fc.Arbitrary<{ account: string } & T>;
  return fc.uniqueArray(row, { maxLength: 6, selector: (entry) => entry.account });
}
