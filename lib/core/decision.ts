/**
 * The account of one request's decisions, kept for `GET /v0/management/requests` (the last 1,000).
 *
 * Safe by construction: account ids, codes and times only; no body, token, URL or raw session value.
 */
import type { AccountId, AttemptId, ModelId, ProviderId, RequestId } from "./domain.ts";

/** Why an account could not be selected, strongest first (state-machine-facts 3.2). */
export type BlockKind =
  | "model_excluded"
  | "disabled"
  | "credential"
  | "credits"
  | "deadline"
  | "model_deadline"
  | "park"
  | "inferred"
  | "ladder"
  | "provider_circuit"
  | "provider_cooldown"
  | "provider_probe"
  | "network_pause"
  | "network_probe"
  | "not_listed";

export interface Block {
  readonly kind: BlockKind;
  /** Null for blocks without a clock, and for a lease that is over but not settled. */
  readonly untilMs: number | null;
  /** Safe word: what armed it (`retry_after`, `usage_page`, `no_response` …). */
  readonly source: string;
  readonly observedAtMs: number | null;
}

export interface CandidateRecord {
  readonly account: AccountId;
  readonly block: Block | null;
}

export interface AttemptRecord {
  readonly id: AttemptId;
  readonly account: AccountId;
  readonly provider: ProviderId;
  readonly model: ModelId | null;
  readonly round: number;
  readonly cause: string;
  readonly probe: string;
  readonly startedAtMs: number;
  endedAtMs: number | null;
  /** `<outcome kind>` or `<kind>:<code>`; null while under way. */
  outcome: string | null;
  status: number | null;
  row: number | null;
}

export interface WaitRecord {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly reason: string;
}

export interface DecisionRecord {
  readonly requestId: RequestId;
  readonly atMs: number;
  readonly route: string;
  readonly model: ModelId | null;
  readonly tenant: string;
  /** Final HTTP status toward the client; null while under way, 0 when the client left first. */
  status: number | null;
  /** Safe code of the final answer; null for a success. */
  code: string | null;
  /** Which rule of final_error chose the answer, e.g. `all_quota`; null for a success. */
  rule: string | null;
  rounds: number;
  endedAtMs: number | null;
  readonly waits: WaitRecord[];
  readonly candidates: CandidateRecord[];
  readonly attempts: AttemptRecord[];
  /** Notes in safe words, in order: `bound_moved`, `released_held_failure`, `recovered` … */
  readonly notes: string[];
  /** Whom the conversation belongs to since this request moved it (`bound_moved`); null when it did not. */
  movedTo: AccountId | null;
}
