/** Compares what the pool shows of a provider with what must be true of it, and judges every opening of a gate. */
import type { ProviderView } from "../../../lib/proxy/pool_runtime.ts";
import { ladderBounds } from "../oracle/account_rules.ts";
import type { ProviderOracle } from "../oracle/provider_oracle.ts";
import { must, violate } from "../violation.ts";
import type { PoolEvent } from "./pool_event.ts";

const MINUTE_MS = 60_000;

export function requireProviderAgreement(
  view: ProviderView,
  oracle: ProviderOracle,
  event: PoolEvent,
  nowMs: number,
): void {
  requireCooldown(view, oracle, event, nowMs);
  const got = view.probe.lease;
  const want = oracle.lease;
  must(
    (got?.attempt ?? null) === (want?.attempt ?? null),
    event.label(got !== null && want === null ? "P35" : "P20"),
    () =>
      `lease of ${oracle.id} is ${got?.attempt ?? "idle"}, not ${
        want?.attempt ?? "idle"
      }, after ${event.name}`,
  );
  must(
    got === null || got.leaseUntilMs === want!.untilMs,
    "P35",
    () => `lease of ${oracle.id} has another end`,
  );
  must(
    view.strikes === oracle.strikes,
    event.label("P15"),
    () => `${oracle.id} has ${view.strikes} strikes, not ${oracle.strikes}, after ${event.name}`,
  );
  requireCircuit(view, oracle, nowMs);
}

/**
 * Takes over cooldowns whose opening or end the rules leave to the machine, once they were found to be allowed: what
 * the same call decided next was decided with them.
 */
export function adoptCooldown(
  view: ProviderView,
  oracle: ProviderOracle,
  event: PoolEvent,
  nowMs: number,
): void {
  const got = view.cooldown;
  const want = oracle.cooldown;
  if (got !== null && want === null) adoptOpening(got, oracle, event, nowMs);
  if (got === null && want !== null && want.derived && oracle.lease === null) oracle.cooldown = null;
  adoptShortening(got, oracle, event, nowMs);
  if (got === null || want === null || want.bounds === null) return;
  if (got.untilMs < want.bounds.fromMs || got.untilMs > want.bounds.toMs) return;
  want.untilMs = got.untilMs;
  want.bounds = null;
}

/** What was derived ends with the first account that comes back, also when that is earlier than it was. */
function adoptShortening(
  got: ProviderView["cooldown"],
  oracle: ProviderOracle,
  event: PoolEvent,
  nowMs: number,
): void {
  const want = oracle.cooldown;
  if (got === null || !got.derived || want === null || !want.derived || want.bounds !== null) return;
  if (got.untilMs < want.untilMs) {
    const closureMs = oracle.quotaClosureMs(nowMs);
    must(
      got.untilMs === closureMs,
      event.label("TABLE"),
      () => `derived cooldown of ${oracle.id} ends at ${got.untilMs}, its accounts say ${closureMs}`,
    );
    oracle.cooldown = { ...want, untilMs: got.untilMs, reason: got.reason };
  }
  if (got.untilMs <= nowMs || oracle.lease !== null) return;
  const closureMs = oracle.quotaClosureMs(nowMs);
  must(
    closureMs === null || got.untilMs <= closureMs,
    event.label("P38"),
    () => `derived cooldown of ${oracle.id} ends at ${got.untilMs}, but somebody is back at ${closureMs}`,
  );
}

function requireCooldown(view: ProviderView, oracle: ProviderOracle, event: PoolEvent, nowMs: number): void {
  adoptCooldown(view, oracle, event, nowMs);
  const got = view.cooldown;
  const want = oracle.cooldown;
  const say = (problem: string) => `cooldown of ${oracle.id} ${problem} after ${event.name}`;
  if (got === null || want === null) {
    must(want === null, event.label("P3"), () => say("is gone"));
    return;
  }
  const { bounds } = want;
  const fits = bounds === null
    ? got.untilMs === want.untilMs
    : got.untilMs >= bounds.fromMs && got.untilMs <= bounds.toMs;
  if (!fits) {
    const wanted = bounds === null
      ? want.untilMs - nowMs
      : `${bounds.fromMs - nowMs}..${bounds.toMs - nowMs}`;
    violate(event.label("P3"), say(`ends in ${got.untilMs - nowMs} ms, not ${wanted}`));
  }
  must(got.level === want.level, "P3", () => say(`has level ${got.level}, not ${want.level}`));
  must(
    got.derived === want.derived,
    "TABLE",
    () => say(got.derived ? "became derived" : "is no longer derived"),
  );
  want.untilMs = got.untilMs;
  want.bounds = null;
}

function adoptOpening(
  got: NonNullable<ProviderView["cooldown"]>,
  oracle: ProviderOracle,
  event: PoolEvent,
  nowMs: number,
): void {
  if (got.derived) {
    const untilMs = oracle.quotaClosureMs(nowMs);
    must(
      untilMs === got.untilMs,
      "TABLE",
      () =>
        `derived cooldown of ${oracle.id} ends at ${got.untilMs}, its accounts say ${untilMs}, after ${event.name}`,
    );
    oracle.openDerived(got.untilMs, got.reason, nowMs);
    return;
  }
  const { strikes, notBeforeMs } = oracle;
  must(
    event.leaving?.strikes.has(oracle) ?? false,
    event.label("TABLE"),
    () => `cooldown of ${oracle.id} opened by ${event.name}, which never struck it`,
  );
  must(
    strikes >= 2 || (strikes === 1 && notBeforeMs - nowMs > MINUTE_MS),
    "P15",
    () => `cooldown of ${oracle.id} opened after ${strikes} strikes`,
  );
  const bounds = ladderBounds(0, notBeforeMs, MINUTE_MS, nowMs);
  must(
    got.untilMs >= bounds.fromMs && got.untilMs <= bounds.toMs,
    "P12",
    () => `cooldown of ${oracle.id} lasts ${got.untilMs - nowMs} ms`,
  );
  oracle.cooldown = {
    untilMs: got.untilMs,
    openedAtMs: nowMs,
    level: 0,
    reason: got.reason,
    bounds: null,
    derived: false,
    explicit: notBeforeMs > ladderBounds(0, 0, MINUTE_MS, nowMs).toMs,
  };
}

/** C7, C8, P38: open exactly while every enabled account is dead; whatever else is blocked has a clock. */
function requireCircuit(view: ProviderView, oracle: ProviderOracle, nowMs: number): void {
  const enabled = oracle.accounts.filter(({ account }) => account.enabled);
  const isDead = enabled.length > 0 &&
    enabled.every(({ credential, credits }) => credential !== null || credits !== null);
  must(
    (view.circuit !== null) === isDead,
    "P38",
    () => `circuit of ${oracle.id} is ${view.circuit?.reason ?? "closed"}`,
  );
  if (isDead || enabled.length === 0 || view.nextRetryAtMs !== null) return;
  must(
    enabled.some((account) => account.block(null, nowMs) === null) && oracle.gate(nowMs) !== "closed",
    "P38",
    () => `${oracle.id} is blocked and knows no next moment`,
  );
}
