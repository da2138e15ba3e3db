/**
 * Strikes, cooldown and probe of one provider (state-machine-facts 2C.4, 3.4, C4, C6), a second time.
 *
 * When a cooldown opens for strikes is the machine's to say, within the rules checked in `provider_checks.ts`; how it
 * may end, move and be tested is kept here.
 */
import type { AttemptId, ProviderId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { AccountOracle } from "./account_oracle.ts";
import { ladderBounds } from "./account_rules.ts";
import type { Lease } from "./network_oracle.ts";

const LADDER_CAP_MS = 60_000;

export interface CooldownOracle {
  untilMs: number;
  openedAtMs: number;
  level: number;
  /** Stands for accounts that are all out of quota; memory only. */
  derived: boolean;
  /** Certainly longer than any step of the ladder, because the provider said so. */
  explicit: boolean;
  reason: string;
  bounds: { readonly fromMs: number; readonly toMs: number } | null;
}

export class ProviderOracle {
  readonly id: ProviderId;
  /** Sorted by id. */
  accounts: AccountOracle[] = [];
  strikes = 0;
  strikeReason = "overloaded";
  /** Latest minimum a strike stated. */
  notBeforeMs = 0;
  cooldown: CooldownOracle | null = null;
  lease: Lease | null = null;

  constructor(id: ProviderId) {
    this.id = id;
  }

  gate(nowMs: number): "open" | "closed" | "leased" | "probe" {
    if (this.cooldown === null) return "open";
    if (this.lease !== null) return "leased";
    return this.cooldown.untilMs > nowMs ? "closed" : "probe";
  }

  /** Books a strike of somebody who held no lease. */
  strike(outcome: Outcome): void {
    const strike = strikeOf(outcome);
    if (strike === null) return;
    if (this.cooldown === null) {
      this.strikes++;
      this.strikeReason = strike.reason;
      this.notBeforeMs = Math.max(this.notBeforeMs, strike.minimumMs);
      return;
    }
    // A late failure may only lengthen, and only while nobody probes (G3).
    if (this.lease !== null || strike.minimumMs <= this.cooldown.untilMs) return;
    this.cooldown = { ...this.cooldown, untilMs: strike.minimumMs, derived: false, explicit: true };
  }

  /** C4: the first account's return when every account that may serve is out of quota; null when that is not so. */
  quotaClosureMs(nowMs: number): number | null {
    return this.#quotaClosure(nowMs)?.fromMs ?? null;
  }

  #quotaClosure(nowMs: number): { readonly fromMs: number; readonly toMs: number } | null {
    let closure: { fromMs: number; toMs: number } | null = null;
    for (const account of this.accounts) {
      const block = account.block(null, nowMs);
      if (block === null || block.kind === "ladder") return null;
      if (block.untilMs === null) continue;
      const fromMs = account.readyAtMs(null, nowMs);
      const toMs = account.latestReadyAtMs(null, nowMs);
      closure = closure === null
        ? { fromMs, toMs }
        : { fromMs: Math.min(closure.fromMs, fromMs), toMs: Math.min(closure.toMs, toMs) };
    }
    return closure;
  }

  /** What a booking just made of the accounts: a ladder it began may end anywhere between its bounds, and so may this. */
  closeForQuota(reason: string, nowMs: number): void {
    const closure = this.#quotaClosure(nowMs);
    if (closure === null) return;
    this.openDerived(closure.fromMs, reason, nowMs);
    if (closure.toMs > closure.fromMs) this.cooldown!.bounds = closure;
  }

  /** Stands for accounts that are all out of quota. */
  openDerived(untilMs: number, reason: string, nowMs: number): void {
    this.cooldown = {
      untilMs,
      openedAtMs: nowMs,
      level: 0,
      derived: true,
      explicit: false,
      reason,
      bounds: null,
    };
  }

  success(): void {
    this.strikes = 0;
    this.notBeforeMs = 0;
  }

  /** Real output of the probe, or any answer of the provider to it: traffic flows. */
  open(attempt: AttemptId): void {
    if (this.lease?.attempt === attempt) this.reset();
  }

  /** The probe's owner ended (3.4). Anybody else changes nothing. */
  settle(attempt: AttemptId, outcome: Outcome, nowMs: number): void {
    if (this.lease?.attempt !== attempt) return;
    const verdict = verdictOf(outcome);
    if (verdict === "answered") {
      this.reset();
      return;
    }
    this.lease = null;
    if (verdict === "unknown") return;
    const strike = strikeOf(outcome);
    const minimumMs = strike?.minimumMs ?? 0;
    const level = this.cooldown!.level + 1;
    const bounds = ladderBounds(level, minimumMs, LADDER_CAP_MS, nowMs);
    this.strikes++;
    if (strike !== null) this.strikeReason = strike.reason;
    this.cooldown = {
      ...this.cooldown!,
      untilMs: bounds.fromMs,
      level,
      derived: false,
      explicit: minimumMs > ladderBounds(level, 0, LADDER_CAP_MS, nowMs).toMs,
      reason: strike?.reason ?? this.cooldown!.reason,
      bounds,
    };
  }

  reset(): void {
    this.strikes = 0;
    this.notBeforeMs = 0;
    this.cooldown = null;
    this.lease = null;
  }
}

/** What an outcome counts against the provider. */
export function strikeOf(outcome: Outcome): { readonly reason: string; readonly minimumMs: number } | null {
  switch (outcome.kind) {
    case "transient":
      return outcome.strike ? { reason: "overloaded", minimumMs: outcome.notBeforeMs ?? 0 } : null;
    case "no_response":
      return { reason: "network", minimumMs: 0 };
    case "edge_block":
      return { reason: "edge_block", minimumMs: 0 };
    case "limited":
      return outcome.strike === true
        ? { reason: "overloaded", minimumMs: outcome.stated?.untilMs ?? 0 }
        : null;
    default:
      return null;
  }
}

/** What the outcome of a probe proves about the provider, by the table of 3.4. */
function verdictOf(outcome: Outcome): "answered" | "failed" | "unknown" {
  switch (outcome.kind) {
    case "incomplete":
    case "local_limit":
    case "cancelled":
    case "refresh_dead":
      return "unknown";
    case "no_response":
    case "edge_block":
      return "failed";
    case "limited":
      // Row 24: no capacity is the provider's failure, whatever status it came with.
      return outcome.strike === true ? "failed" : "answered";
    case "transient":
      if (outcome.cause === "refresh" || outcome.cause === "egress_proxy") return "unknown";
      return outcome.strike ? "failed" : "answered";
    default:
      return "answered";
  }
}
