/**
 * What was read from disk, fitted to the clock of the process that reads it.
 *
 * A process's clock never goes back, but the next one may start on a clock that was set back. Nothing can have been
 * written in the future: such a moment is taken as now, or news of today would count as older than the record. A
 * block whose length is ours lasts at most that length from now. A time the upstream stated is kept (ruling 1, P23).
 *
 * What fits already is returned as it is, so that only what changed is written.
 */
import { LONGEST_STEP_MS } from "./backoff.ts";
import { PAUSE_MS } from "./network_pause.ts";
import { CREDITS_PROBE_MS } from "./quota_park.ts";
import type {
  AccountHealth,
  CredentialBlock,
  CreditsBlock,
  Deadline,
  LedgerRow,
  NetworkHealth,
  NetworkPause,
  ProviderCooldown,
  QuotaReading,
} from "./records.ts";

type StoredNetwork = Pick<NetworkHealth, "evidence" | "lastSuccessAtMs" | "pause" | "generation">;

/** The durable records of one account; all others end with the process. */
export function fitHealth(health: AccountHealth, nowMs: number): AccountHealth {
  const { deadline, credential, credits, modelDeadlines } = health;
  const fits = [...modelDeadlines.values()].every((known) => fitDeadline(known, nowMs) === known);
  return {
    ...health,
    deadline: deadline === null ? null : fitDeadline(deadline, nowMs),
    credential: credential === null ? null : fitCredential(credential, nowMs),
    credits: credits === null ? null : fitCredits(credits, nowMs),
    modelDeadlines: fits
      ? modelDeadlines
      : new Map([...modelDeadlines].map(([model, known]) => [model, fitDeadline(known, nowMs)])),
  };
}

function fitDeadline(deadline: Deadline, nowMs: number): Deadline {
  const { launchedAtMs, writtenAtMs } = deadline;
  if (launchedAtMs <= nowMs && writtenAtMs <= nowMs) return deadline;
  return {
    ...deadline,
    launchedAtMs: Math.min(launchedAtMs, nowMs),
    writtenAtMs: Math.min(writtenAtMs, nowMs),
  };
}

function fitCredential(block: CredentialBlock, nowMs: number): CredentialBlock {
  return block.writtenAtMs <= nowMs ? block : { ...block, writtenAtMs: nowMs };
}

function fitCredits(block: CreditsBlock, nowMs: number): CreditsBlock {
  const latestMs = nowMs + CREDITS_PROBE_MS;
  if (block.openedAtMs <= nowMs && block.probeAtMs <= latestMs) return block;
  return {
    ...block,
    openedAtMs: Math.min(block.openedAtMs, nowMs),
    probeAtMs: Math.min(block.probeAtMs, latestMs),
  };
}

export function fitReading(reading: QuotaReading, nowMs: number): QuotaReading {
  return reading.observedAtMs <= nowMs ? reading : { ...reading, observedAtMs: nowMs };
}

export function fitCooldown(cooldown: ProviderCooldown, nowMs: number): ProviderCooldown {
  const untilMs = cooldown.explicit ? cooldown.untilMs : Math.min(cooldown.untilMs, nowMs + LONGEST_STEP_MS);
  if (cooldown.openedAtMs <= nowMs && untilMs === cooldown.untilMs) return cooldown;
  return { ...cooldown, openedAtMs: Math.min(cooldown.openedAtMs, nowMs), untilMs };
}

export function fitNetwork(network: StoredNetwork, nowMs: number): StoredNetwork {
  const pause = network.pause === null ? null : fitPause(network.pause, nowMs);
  const isPast = network.evidence.every((row) => row.observedAtMs <= nowMs);
  if (pause === network.pause && isPast && network.lastSuccessAtMs <= nowMs) return network;
  return {
    ...network,
    pause,
    evidence: network.evidence.map((row) =>
      row.observedAtMs <= nowMs ? row : { ...row, observedAtMs: nowMs }
    ),
    lastSuccessAtMs: Math.min(network.lastSuccessAtMs, nowMs),
  };
}

export function fitLedger(ledger: LedgerRow, nowMs: number): LedgerRow {
  return ledger.openedAtMs <= nowMs ? ledger : { ...ledger, openedAtMs: nowMs };
}

function fitPause(pause: NetworkPause, nowMs: number): NetworkPause {
  const latestMs = nowMs + PAUSE_MS;
  if (pause.openedAtMs <= nowMs && pause.untilMs <= latestMs) return pause;
  return {
    ...pause,
    openedAtMs: Math.min(pause.openedAtMs, nowMs),
    untilMs: Math.min(pause.untilMs, latestMs),
  };
}
