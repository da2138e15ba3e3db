/** Compares what the pool shows of one account with what must be true of it. */
import type { AccountView } from "../../../lib/proxy/pool_runtime.ts";
import {
  type AccountOracle,
  isLive,
  type LadderSpell,
  type Spell,
  TWELVE_HOURS_MS,
} from "../oracle/account_oracle.ts";
import { violate } from "../violation.ts";
import type { PoolEvent } from "./pool_event.ts";

export function requireAccountAgreement(
  view: AccountView,
  oracle: AccountOracle,
  { name, label }: PoolEvent,
  nowMs: number,
): void {
  const { health } = view;
  const same = (id: string, field: string, got: unknown, want: unknown) => {
    if (got !== want) {
      violate(label(id), `${field} of ${oracle.id} is ${got}, not ${want}, after ${name}`);
    }
  };
  same("P19", "deadline", liveEnd(health.deadline, nowMs), liveEnd(oracle.deadline, nowMs));
  same(
    "P19",
    "model deadlines",
    liveEnds(health.modelDeadlines, nowMs),
    liveEnds(oracle.modelDeadlines, nowMs),
  );
  same("TABLE", "inferred limit", liveEnd(health.inferred, nowMs), liveEnd(oracle.inferred, nowMs));
  same("TABLE", "model limits", liveEnds(health.modelInferred, nowMs), liveEnds(oracle.modelInferred, nowMs));
  same("P25", "credential", health.credential?.kind ?? null, oracle.credential?.kind ?? null);
  same("TABLE", "credits mark", health.credits !== null, oracle.credits !== null);
  same("TABLE", "credits test", health.credits?.probeAtMs ?? null, oracle.credits?.probeAtMs ?? null);
  same("TABLE", "exclusions", exclusions(health.exclusions, nowMs), exclusions(oracle.exclusions, nowMs));
  same("P18", "park", liveEnd(health.park, nowMs), oracle.park.untilMs > nowMs ? oracle.park.untilMs : null);
  same("P18", "family parks", liveEnds(health.modelParks, nowMs), liveEnds(oracle.park.families, nowMs));
  same(
    "P41",
    "override",
    laterThan(health.overrideUntilMs, nowMs),
    laterThan(oracle.park.overrideUntilMs, nowMs),
  );
  same("TABLE", "switch", view.account.enabled, oracle.account.enabled);
  same("P25", "fingerprint", view.account.fingerprint, oracle.account.fingerprint);
  requireParkBound(view, oracle);
  requireLadder(view, oracle, label("TABLE"), name, nowMs);
}

/** P18 and P41 once more, without any model of pages: no park and no override outlives its half hour. */
function requireParkBound(view: AccountView, oracle: AccountOracle): void {
  const { park, modelParks, overrideUntilMs, lastSuccessAtMs } = view.health;
  for (const one of park === null ? modelParks.values() : [park, ...modelParks.values()]) {
    if (one.untilMs > one.observedAtMs + 1_800_000) {
      violate("P18", `park of ${oracle.id} ends ${one.untilMs - one.observedAtMs} ms after its observation`);
    }
  }
  if (overrideUntilMs > lastSuccessAtMs + 1_800_000) {
    violate(
      "P41",
      `override of ${oracle.id} ends ${overrideUntilMs - lastSuccessAtMs} ms after its last success`,
    );
  }
}

function requireLadder(
  view: AccountView,
  oracle: AccountOracle,
  id: string,
  event: string,
  nowMs: number,
): void {
  const got = view.health.ladder;
  const want = oracle.ladder;
  if (got === null || want === null) {
    if (got !== null || want !== null) {
      violate(id, `ladder of ${oracle.id} is ${tell(got, nowMs)}, not ${tell(want, nowMs)}, after ${event}`);
    }
    return;
  }
  if (got.strikes !== want.strikes) {
    violate(id, `ladder of ${oracle.id} has ${got.strikes} strikes, not ${want.strikes}, after ${event}`);
  }
  if (adoptLadder(want, got) || (got.untilMs <= nowMs && want.untilMs <= nowMs)) return;
  const { bounds } = want;
  const wanted = bounds === null
    ? `${want.untilMs - nowMs}`
    : `${bounds.fromMs - nowMs}..${bounds.toMs - nowMs}`;
  violate(id, `ladder of ${oracle.id} ends in ${got.untilMs - nowMs} ms, not ${wanted}, after ${event}`);
}

/** @returns false when the machine's number is not one the rules allow. */
export function adoptLadder(want: LadderSpell, got: { readonly untilMs: number }): boolean {
  const { bounds } = want;
  if (bounds === null) return got.untilMs === want.untilMs;
  if (got.untilMs < bounds.fromMs || got.untilMs > bounds.toMs) return false;
  want.untilMs = got.untilMs;
  want.bounds = null;
  return true;
}

function tell(ladder: { readonly untilMs: number } | null, nowMs: number): string {
  return ladder === null ? "absent" : `there for ${ladder.untilMs - nowMs} ms`;
}

function liveEnd(spell: { readonly untilMs: number } | null, nowMs: number): number | null {
  return spell !== null && spell.untilMs > nowMs ? spell.untilMs : null;
}

function liveEnds(spells: ReadonlyMap<string, { readonly untilMs: number }>, nowMs: number): string {
  if (spells.size === 0) return "";
  const live: string[] = [];
  for (const [key, spell] of spells) if (isLive(spell as Spell, nowMs)) live.push(`${key}=${spell.untilMs}`);
  return live.sort().join(" ");
}

function exclusions(models: ReadonlyMap<string, number>, nowMs: number): string {
  if (models.size === 0) return "";
  return [...models].filter(([, atMs]) => atMs + TWELVE_HOURS_MS > nowMs).map(([model]) => model).sort().join(
    " ",
  );
}

function laterThan(atMs: number, nowMs: number): number {
  return atMs > nowMs ? atMs : 0;
}
