/**
 * What the machine remembers (state-machine-facts 3.2): shapes only.
 *
 * All times are UTC epoch ms. A block is live while `untilMs > nowMs`; at `untilMs === nowMs` it is over.
 * `durable` records are handed to the store as `DurableChange` values; the rest lives in memory.
 */
import type { AccountId, AttemptId, ModelId, ProviderId, RequestId } from "./domain.ts";
import type { TimeSource } from "./outcome.ts";

/** Durable. Stated by the upstream in the answer to a real request; kept in full (ruling 1). */
export interface Deadline {
  readonly untilMs: number;
  readonly source: TimeSource;
  readonly status: number;
  readonly code: string;
  readonly attempt: AttemptId;
  /** When the attempt that brought it was launched; decides C17. */
  readonly launchedAtMs: number;
  readonly writtenAtMs: number;
}

export type CredentialBlockKind = "unauthorized" | "invalid_grant" | "credential_invalid";

/** `unauthorized` and `invalid_grant` are durable, `credential_invalid` is not. */
export interface CredentialBlock {
  readonly kind: CredentialBlockKind;
  readonly fingerprint: string;
  readonly code: string;
  readonly writtenAtMs: number;
}

/** Durable, no clock (ruling 20). `probeAtMs`: earliest moment of the next hourly probe. */
export interface CreditsBlock {
  readonly openedAtMs: number;
  readonly code: string;
  readonly probeAtMs: number;
}

/** Memory. A 429 that named no time. */
export interface InferredLimit {
  readonly untilMs: number;
  readonly shape: "rate" | "quota";
  readonly writtenAtMs: number;
}

/** Memory. The transient ladder; `strikes` grows until a success. */
export interface LadderBlock {
  readonly untilMs: number;
  readonly strikes: number;
  readonly reason: "transient" | "no_response" | "refresh" | "workspace" | "egress_proxy";
  readonly attempt: AttemptId | null;
  readonly writtenAtMs: number;
}

/** Memory. From usage pages, snapshots, headers on a 2xx: believed for at most 30 min from the observation. */
export interface Park {
  readonly untilMs: number;
  readonly observedAtMs: number;
  readonly source: QuotaSource;
}

export type QuotaSource = "usage_page" | "response_headers" | "stream_event" | "websocket_frame" | "snapshot";

/** One quota window as some reader saw it. */
export interface QuotaWindow {
  /** `5h`, `7d`, `primary`, a model family id … */
  readonly name: string;
  /** 0..100 and above; null when the window reported nothing. */
  readonly usedPercent: number | null;
  readonly resetAtMs: number | null;
  /** Null: the whole account; else only models of this family. */
  readonly modelFamily: string | null;
}

export interface QuotaReading {
  readonly observedAtMs: number;
  readonly source: QuotaSource;
  readonly windows: readonly QuotaWindow[];
  /** The upstream's own verdict, where it gives one. */
  readonly limitReached: boolean | null;
  /** Credits or overage that still serve although a window is spent. */
  readonly servesBeyondWindows: boolean;
  readonly creditsAvailable: boolean | null;
  readonly plan: string | null;
}

export interface AccountHealth {
  readonly deadline: Deadline | null;
  readonly credential: CredentialBlock | null;
  readonly credits: CreditsBlock | null;
  readonly inferred: InferredLimit | null;
  readonly ladder: LadderBlock | null;
  readonly park: Park | null;
  /** Set when a park ended or a genuine 429 came: no reading arms a new park before a real success or result (ruling 1). */
  readonly probeOwed: boolean;
  /** Healthy override: silences parks while in the future. 0 = none. */
  readonly overrideUntilMs: number;
  /** Last genuine 429 of the account. An attempt launched before it proves nothing when it ends well. 0 = none. */
  readonly limitedAtMs: number;
  readonly modelDeadlines: ReadonlyMap<ModelId, Deadline>;
  readonly modelInferred: ReadonlyMap<ModelId, InferredLimit>;
  readonly modelParks: ReadonlyMap<string, Park>;
  /** Model -> written at. At most 64, oldest evicted; ends by success, new fingerprint, restart, 12 h. */
  readonly exclusions: ReadonlyMap<ModelId, number>;
  readonly reading: QuotaReading | null;
  readonly lastSuccessAtMs: number;
  /** Last `quota.recheck` probe, for its 30 min spacing. */
  readonly recheckedAtMs: number;
}

export type CooldownReason =
  | "rate_limited"
  | "overloaded"
  | "usage_window_exhausted"
  | "network"
  | "edge_block";

/** Exactly one real request tests a half-open gate. */
export interface ProbeLease {
  readonly attempt: AttemptId;
  readonly leasedAtMs: number;
  /** Watchdog: at its end the attempt is aborted, which settles the lease. */
  readonly leaseUntilMs: number;
  readonly generation: number;
}

/** Durable when the time is explicit or the length is at least 60 s (C16). */
export interface ProviderCooldown {
  readonly untilMs: number;
  readonly reason: CooldownReason;
  readonly openedAtMs: number;
  readonly openedBy: AttemptId;
  readonly generation: number;
  readonly level: number;
  readonly explicit: boolean;
}

export interface ProviderHealth {
  /** Consecutive provider-scoped failures without a success since. */
  readonly strikes: number;
  /** What the last strike was; the reason of a cooldown opened from it. */
  readonly strikeReason: CooldownReason;
  /** Latest minimum a strike stated: a cooldown opened later is never shorter (3.4). 0 = none. */
  readonly notBeforeMs: number;
  readonly cooldown: ProviderCooldown | null;
  /** The cooldown stands for accounts that are all out of quota (C4): memory only, dropped when one comes back. */
  readonly derived: boolean;
  readonly probe: ProbeLease | null;
  readonly generation: number;
}

export interface NetworkEvidence {
  readonly provider: ProviderId;
  readonly attempt: AttemptId;
  readonly observedAtMs: number;
}

export interface NetworkPause {
  readonly openedAtMs: number;
  readonly untilMs: number;
  readonly evidence: readonly NetworkEvidence[];
  readonly generation: number;
}

export interface NetworkHealth {
  readonly evidence: readonly NetworkEvidence[];
  /** Completed successes of the last 60 s; only the newest matters. 0 = none. */
  readonly lastSuccessAtMs: number;
  readonly pause: NetworkPause | null;
  readonly probe: ProbeLease | null;
  readonly generation: number;
}

/** Durable ledger of one request. */
export interface LedgerRow {
  readonly request: RequestId;
  /** SHA-256 of tenant + Idempotency-Key, or null. */
  readonly idempotency: string | null;
  /** Highest counter minted. */
  readonly counter: number;
  /** Charged (failed) attempt ids, each once. */
  readonly charged: readonly AttemptId[];
  readonly maxLaunches: number;
  readonly openedAtMs: number;
  readonly closed: boolean;
}

/** One durable effect of a transition. The store applies a list of them in one transaction. */
export type DurableChange =
  | {
    readonly kind: "put_deadline";
    readonly account: AccountId;
    readonly model: ModelId | null;
    readonly deadline: Deadline;
  }
  | { readonly kind: "drop_deadline"; readonly account: AccountId; readonly model: ModelId | null }
  | { readonly kind: "put_credential"; readonly account: AccountId; readonly block: CredentialBlock }
  | { readonly kind: "drop_credential"; readonly account: AccountId }
  | { readonly kind: "put_credits"; readonly account: AccountId; readonly block: CreditsBlock }
  | { readonly kind: "drop_credits"; readonly account: AccountId }
  | { readonly kind: "set_enabled"; readonly account: AccountId; readonly enabled: boolean }
  | { readonly kind: "forget_account"; readonly account: AccountId }
  | { readonly kind: "put_reading"; readonly account: AccountId; readonly reading: QuotaReading }
  | {
    readonly kind: "put_provider_cooldown";
    readonly provider: ProviderId;
    readonly cooldown: ProviderCooldown;
  }
  | { readonly kind: "drop_provider_cooldown"; readonly provider: ProviderId }
  | {
    readonly kind: "put_network";
    readonly network: Pick<NetworkHealth, "evidence" | "lastSuccessAtMs" | "pause" | "generation">;
  }
  | { readonly kind: "put_ledger"; readonly row: LedgerRow }
  | { readonly kind: "put_ring_cursor"; readonly pool: string; readonly cursor: number }
  /** Operator actions, e.g. clearing a deadline early (C35). */
  | { readonly kind: "audit"; readonly action: string; readonly subject: string; readonly detail: string };

/** What the store gives back at start; every field was checked (a row that does not parse is an error). */
export interface DurableState {
  readonly deadlines: readonly {
    readonly account: AccountId;
    readonly model: ModelId | null;
    readonly deadline: Deadline;
  }[];
  readonly credentials: readonly { readonly account: AccountId; readonly block: CredentialBlock }[];
  readonly credits: readonly { readonly account: AccountId; readonly block: CreditsBlock }[];
  readonly disabled: readonly AccountId[];
  readonly readings: readonly { readonly account: AccountId; readonly reading: QuotaReading }[];
  readonly providerCooldowns: readonly {
    readonly provider: ProviderId;
    readonly cooldown: ProviderCooldown;
  }[];
  readonly network: Pick<NetworkHealth, "evidence" | "lastSuccessAtMs" | "pause" | "generation"> | null;
  readonly openLedgers: readonly LedgerRow[];
  readonly ringCursors: readonly { readonly pool: string; readonly cursor: number }[];
}
