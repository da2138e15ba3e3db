/**
 * When it is our own network: two providers out of reach within a minute stop every launch, and one real
 * request finds out when it is over (state-machine-facts 2C.4, C14, C15, C26, G2, G4).
 *
 * Only `no_response` is evidence. One provider alone, timeouts, statuses and the provider's own words never are.
 */
import type { AttemptId, ProviderId } from "./domain.ts";
import type { Outcome } from "./outcome.ts";
import type { Gate } from "./provider_health.ts";
import type { NetworkEvidence, NetworkHealth } from "./records.ts";

/** Evidence of this age still counts (P17). */
export const CORRELATION_MS = 60_000;
export const PAUSE_MS = 60_000;
/** A success of at most this age forbids opening a pause. */
export const VETO_MS = 60_000;
/** Rows kept at most; the oldest goes first. */
export const EVIDENCE_LIMIT = 256;

export const HEALTHY_NETWORK: NetworkHealth = {
  evidence: [],
  lastSuccessAtMs: 0,
  pause: null,
  probe: null,
  generation: 0,
};

const OPEN: Gate = { state: "open" };
const HALF_OPEN: Gate = { state: "half_open" };

export function readNetworkGate(network: NetworkHealth, nowMs: number): Gate {
  if (network.pause === null) return OPEN;
  if (network.probe !== null) return { state: "leased", untilMs: network.probe.leaseUntilMs };
  if (network.pause.untilMs > nowMs) return { state: "closed", untilMs: network.pause.untilMs };
  return HALF_OPEN;
}

/** Adds one row and opens the pause when it is the second provider's. While a pause exists nothing changes (G4). */
export function noteNoResponse(
  network: NetworkHealth,
  provider: ProviderId,
  attempt: AttemptId,
  nowMs: number,
): NetworkHealth {
  if (network.pause !== null) return network;
  const kept = network.evidence.filter((row) =>
    nowMs - row.observedAtMs <= CORRELATION_MS && !(row.provider === provider && row.attempt === attempt)
  );
  const evidence: NetworkEvidence[] = [...kept, { provider, attempt, observedAtMs: nowMs }].slice(
    -EVIDENCE_LIMIT,
  );
  const vetoed = network.lastSuccessAtMs > 0 && nowMs - network.lastSuccessAtMs <= VETO_MS;
  if (vetoed || new Set(evidence.map((row) => row.provider)).size < 2) return { ...network, evidence };
  const generation = network.generation + 1;
  return {
    ...network,
    evidence: [],
    generation,
    pause: { openedAtMs: nowMs, untilMs: nowMs + PAUSE_MS, evidence, generation },
  };
}

/** A completed success of a real request: evidence is dropped, and no pause opens for a minute. */
export function noteSuccess(network: NetworkHealth, nowMs: number): NetworkHealth {
  if (network.evidence.length === 0 && network.lastSuccessAtMs === nowMs) return network;
  return { ...network, evidence: [], lastSuccessAtMs: Math.max(network.lastSuccessAtMs, nowMs) };
}

export function leaseNetworkProbe(
  network: NetworkHealth,
  attempt: AttemptId,
  untilMs: number,
  nowMs: number,
): NetworkHealth {
  const generation = network.generation + 1;
  return { ...network, generation, probe: { attempt, leasedAtMs: nowMs, leaseUntilMs: untilMs, generation } };
}

/** The probe's owner saw a complete response head: the network works, whatever the head says (G2). */
export function endPause(network: NetworkHealth, attempt: AttemptId): NetworkHealth {
  if (network.probe?.attempt !== attempt) return network;
  return { ...network, pause: null, probe: null };
}

/** Settles the network lease, if this attempt holds it. */
export function settleNetworkProbe(
  network: NetworkHealth,
  attempt: AttemptId,
  outcome: Outcome,
  nowMs: number,
): NetworkHealth {
  if (network.probe?.attempt !== attempt || network.pause === null) return network;
  if (outcome.kind === "no_response") {
    return { ...network, probe: null, pause: { ...network.pause, untilMs: nowMs + PAUSE_MS } };
  }
  if (provesHead(outcome)) return endPause(network, attempt);
  return { ...network, probe: null };
}

/** True when the outcome can only follow a complete response head. */
export function provesHead(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case "no_response":
    case "local_limit":
    case "cancelled":
    case "refresh_dead":
      return false;
    case "request_fault":
      // A request we could not word for this provider was never sent.
      return outcome.origin !== "local";
    case "transient":
      return outcome.cause !== "first_byte_timeout" && outcome.cause !== "refresh" &&
        outcome.cause !== "egress_proxy";
    default:
      return true;
  }
}
