/**
 * Accounts and providers as management and the status page show them (design.md 7): ISO times, safe words, no secret.
 */
import { type AccountId, parseAttemptId, type ProviderId, type ProviderKind } from "../core/domain.ts";
import type { ProbeLease, QuotaReading } from "../core/records.ts";
import { tellBlock, tellCircuit, tellCooldown } from "./block_words.ts";
import { isoTime, viewBlock } from "./decision_view.ts";
import type { AccountView, PoolRuntime, ProviderView } from "./pool_runtime.ts";

/** What is known of an account beside its health. */
export interface AccountDetails {
  readonly upstreamAccountId: string | null;
  readonly maskedEmail: string | null;
  readonly plan: string | null;
}

export interface StateViewDeps {
  readonly pool: PoolRuntime;
  readonly details: (account: AccountId) => AccountDetails | null;
  /** Whether the text means the account by its e-mail, which is whole nowhere in here. */
  readonly isEmailOf: (account: AccountId, text: string) => boolean;
  /** The configured ones. */
  readonly providers: () => readonly { readonly id: ProviderId; readonly kind: ProviderKind }[];
}

export class StateView {
  readonly #deps: StateViewDeps;

  constructor(deps: StateViewDeps) {
    this.#deps = deps;
  }

  accounts(nowMs: number): Record<string, unknown>[] {
    return this.#deps.pool.describeAccounts(nowMs).map((view) => this.account(view));
  }

  /** Those the name could mean: the account of that id alone, else every one that has it in its id or as e-mail. */
  accountsNamed(name: string, nowMs: number): Record<string, unknown>[] {
    const views = this.#deps.pool.describeAccounts(nowMs);
    const exact = views.filter(({ account }) => account.id === name);
    const meant = exact.length > 0
      ? exact
      : views.filter(({ account }) => account.id.includes(name) || this.#deps.isEmailOf(account.id, name));
    return meant.map((view) => this.account(view));
  }

  account(view: AccountView): Record<string, unknown> {
    const { block } = view;
    const details = this.#deps.details(view.account.id);
    return {
      id: view.account.id,
      provider: view.account.provider,
      account_id: details?.upstreamAccountId ?? null,
      email: details?.maskedEmail ?? null,
      plan: details?.plan ?? view.reading?.plan ?? null,
      enabled: view.account.enabled,
      state: view.state,
      reason: block?.kind ?? null,
      words: block === null ? null : tellBlock(block.kind, block.source),
      until: isoTime(block?.untilMs ?? null),
      source: viewBlock(block).source,
      persisted: view.persisted,
      models_excluded: view.excludedModels,
      quota: viewQuota(view.reading),
      park_until: isoTime(view.health.park?.untilMs ?? null),
      override_until: isoTime(view.overrideUntilMs),
      deadline_contradicted: view.deadlineContradicted,
      in_flight: view.inFlight,
      last_success_at: isoTime(view.lastSuccessAtMs),
    };
  }

  /** Providers with circuit, rest and probe, and the network's pause. */
  gates(nowMs: number): Record<string, unknown> {
    const { pool, providers } = this.#deps;
    const pause = pool.describeNetwork(nowMs);
    return {
      providers: [...providers()].sort((a, b) => a.id < b.id ? -1 : 1).map(({ id, kind }) => ({
        id,
        kind,
        ...viewGate(pool.describeProvider(id, nowMs), nowMs),
      })),
      network_pause: pause === null ? null : {
        opened_at: isoTime(pause.openedAtMs),
        until: isoTime(pause.untilMs),
        providers: pause.providers,
        probe: viewProbe(pause.probe),
      },
    };
  }

  /** How people know the account: its masked e-mail where there is one, else its id. */
  label(account: AccountId): string {
    return this.#deps.details(account)?.maskedEmail ?? account;
  }
}

/**
 * A provider as it is at this moment. A cooldown whose time is over is no rest any more but a half-open circuit:
 * one request at a time goes through until one has proven it.
 */
function viewGate(view: ProviderView, nowMs: number): Record<string, unknown> {
  const { circuit, cooldown, probe } = view;
  const rests = cooldown !== null && cooldown.untilMs > nowMs;
  const halfOpen = cooldown === null || rests ? null : {
    state: "half_open",
    reason: cooldown.reason,
    words: probe.state === "leased" ? "One request is testing it" : "The next request tests it",
  };
  return {
    circuit: circuit === null ? halfOpen : { ...circuit, words: tellCircuit(circuit.reason) },
    cooldown: !rests ? null : {
      until: isoTime(cooldown.untilMs),
      reason: cooldown.reason,
      words: tellCooldown(cooldown.reason),
    },
    probe: viewProbe(probe.lease),
    next_retry_at: isoTime(view.nextRetryAtMs),
  };
}

/** Who tests a gate. The one that tests the network tests no provider: each has its own. */
function viewProbe(lease: ProbeLease | null): Record<string, unknown> {
  return {
    state: lease === null ? "idle" : "leased",
    request_id: lease === null ? null : parseAttemptId(lease.attempt)?.request ?? null,
    attempt: lease?.attempt ?? null,
    since: isoTime(lease?.leasedAtMs ?? null),
    lease_until: isoTime(lease?.leaseUntilMs ?? null),
  };
}

/** The windows as they were reported, with their real resets; when a park ends is told beside them. */
function viewQuota(reading: QuotaReading | null): Record<string, unknown> {
  return {
    windows: (reading?.windows ?? []).map((window) => ({
      name: window.name,
      used_percent: window.usedPercent,
      reset_at: isoTime(window.resetAtMs),
      model_family: window.modelFamily,
    })),
    observed_at: isoTime(reading?.observedAtMs ?? null),
    source: reading?.source ?? null,
  };
}
