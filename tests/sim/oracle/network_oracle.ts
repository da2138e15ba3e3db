/** Outage evidence, the pause it opens and the one probe that ends it (state-machine-facts 2C.4, 3.4), a second time. */
import type { AttemptId, ProviderId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";

const MINUTE_MS = 60_000;

export interface Lease {
  readonly attempt: AttemptId;
  readonly untilMs: number;
}

export interface PauseOracle {
  readonly openedAtMs: number;
  untilMs: number;
  readonly evidence: readonly Evidence[];
}

interface Evidence {
  readonly provider: ProviderId;
  readonly attempt: AttemptId;
  readonly atMs: number;
}

export class NetworkOracle {
  evidence: Evidence[] = [];
  /** 0 = none yet. */
  lastSuccessAtMs = 0;
  pause: PauseOracle | null = null;
  lease: Lease | null = null;

  /** `probe`: over, and the next launch has to find out. */
  gate(nowMs: number): "open" | "closed" | "leased" | "probe" {
    if (this.pause === null) return "open";
    if (this.lease !== null) return "leased";
    return this.pause.untilMs > nowMs ? "closed" : "probe";
  }

  /** Local-path failure. @returns the attempts whose blocks are withdrawn, when the pause opens by it. */
  noResponse(provider: ProviderId, attempt: AttemptId, nowMs: number): ReadonlySet<AttemptId> | null {
    if (this.pause !== null) return null;
    this.evidence = this.evidence.filter((row) => nowMs - row.atMs <= MINUTE_MS && row.attempt !== attempt);
    this.evidence.push({ provider, attempt, atMs: nowMs });
    const vetoed = this.lastSuccessAtMs > 0 && nowMs - this.lastSuccessAtMs <= MINUTE_MS;
    const providers = new Set(this.evidence.map((row) => row.provider));
    if (vetoed || providers.size < 2) return null;
    this.pause = { openedAtMs: nowMs, untilMs: nowMs + MINUTE_MS, evidence: this.evidence };
    this.evidence = [];
    return new Set(this.pause.evidence.map((row) => row.attempt));
  }

  success(nowMs: number): void {
    this.evidence = [];
    this.lastSuccessAtMs = Math.max(this.lastSuccessAtMs, nowMs);
  }

  head(attempt: AttemptId): void {
    if (this.lease?.attempt === attempt) this.#end();
  }

  /** The probe's owner ended. Anybody else changes nothing. */
  settle(attempt: AttemptId, outcome: Outcome, nowMs: number): void {
    if (this.lease?.attempt !== attempt) return;
    if (answered(outcome)) {
      this.#end();
      return;
    }
    this.lease = null;
    if (outcome.kind === "no_response") this.pause!.untilMs = nowMs + MINUTE_MS;
  }

  #end(): void {
    this.pause = null;
    this.lease = null;
  }
}

/** A complete response head came, whatever it said (G2). */
function answered(outcome: Outcome): boolean {
  if (["no_response", "local_limit", "cancelled", "refresh_dead"].includes(outcome.kind)) return false;
  if (outcome.kind !== "transient") return true;
  return !["first_byte_timeout", "refresh", "egress_proxy"].includes(outcome.cause);
}
