/**
 * What is really the case upstream, which the machine never sees: it only meets the answers.
 *
 * Times here are of the machine's clock, as everywhere in the simulation.
 */
import type { AccountId, ModelId, ProviderId } from "../../../lib/core/domain.ts";
import type { Dice } from "../dice.ts";

/** How a spent account words its refusal. */
export type Wording =
  | "retry_after"
  | "body"
  | "message"
  | "rate"
  | "quota"
  | "too_short"
  | "too_long"
  | "over";

export type AccountTruth =
  | { readonly kind: "healthy" }
  | {
    readonly kind: "spent";
    readonly untilMs: number;
    readonly wording: Wording;
    /** Only this model is spent; null = the account. */
    readonly model: ModelId | null;
  }
  /** The token with this fingerprint ran out; a refresh mends it. */
  | { readonly kind: "stale"; readonly fingerprint: string }
  /** Only a new login mends it. */
  | { readonly kind: "revoked" }
  | { readonly kind: "suspended" }
  | { readonly kind: "broke" }
  | { readonly kind: "workspace_off" }
  | { readonly kind: "lacks"; readonly model: ModelId }
  | { readonly kind: "throttled" }
  | { readonly kind: "flaky"; readonly share: number };

export type ProviderTruth =
  | "ok"
  | "failing"
  | "busy"
  | "overloaded"
  | "unreachable"
  | "silent"
  | "walled"
  | "reports_network"
  | "cuts"
  | "ends_early"
  | "garbles";

export type TokenTruth = "ok" | "down" | "denies";

const HEALTHY: AccountTruth = { kind: "healthy" };

export class World {
  readonly #accounts = new Map<AccountId, AccountTruth>();
  readonly #providers = new Map<ProviderId, ProviderTruth>();
  /** Nothing can be reached from here. */
  isCutOff = false;
  tokens: TokenTruth = "ok";
  /** Share of the answers that go wrong although nothing is wrong. */
  noise: number;
  /** Answers come within seconds. */
  isSwift = false;
  /** Which account made the sealed state a session carries. */
  readonly sealedBy = new Map<string, AccountId>();

  /** Share of the lost sends that went out on a connection which may have been dead for long. */
  readonly pooledShare: number;

  constructor(noise: number, pooledShare: number) {
    this.noise = noise;
    this.pooledShare = pooledShare;
  }

  account(id: AccountId): AccountTruth {
    return this.#accounts.get(id) ?? HEALTHY;
  }

  setAccount(id: AccountId, truth: AccountTruth): void {
    this.#accounts.set(id, truth);
  }

  provider(id: ProviderId): ProviderTruth {
    return this.#providers.get(id) ?? "ok";
  }

  setProvider(id: ProviderId, truth: ProviderTruth): void {
    this.#providers.set(id, truth);
  }

  /** Everything works from now on. */
  heal(): void {
    this.#accounts.clear();
    this.#providers.clear();
    this.isCutOff = false;
    this.tokens = "ok";
    this.noise = 0;
    this.isSwift = true;
    this.sealedBy.clear();
  }
}

/** A new trouble for one account. */
export function drawAccountTruth(
  dice: Dice,
  models: readonly ModelId[],
  fingerprint: string,
  longestMs: number,
  nowMs: number,
): AccountTruth {
  const kind = dice.weighted<AccountTruth["kind"]>([
    [8, "spent"],
    [3, "stale"],
    [1, "revoked"],
    [1, "suspended"],
    [2, "broke"],
    [1, "workspace_off"],
    [2, "lacks"],
    [1, "throttled"],
    [3, "flaky"],
  ]);
  switch (kind) {
    case "spent":
      return {
        kind,
        untilMs: nowMs + dice.span(500, dice.chance(0.1) ? 7 * 86_400_000 : longestMs),
        wording: dice.weighted<Wording>([
          [4, "retry_after"],
          [3, "body"],
          [2, "message"],
          [2, "rate"],
          [2, "quota"],
          [1, "too_short"],
          [1, "too_long"],
          [1, "over"],
        ]),
        model: dice.chance(0.2) ? dice.pick(models) : null,
      };
    case "stale":
      return { kind, fingerprint };
    case "lacks":
      return { kind, model: dice.pick(models) };
    case "flaky":
      return { kind, share: dice.pick([0.2, 0.6, 1]) };
    default:
      return { kind } as AccountTruth;
  }
}

export function drawProviderTruth(dice: Dice): ProviderTruth {
  return dice.weighted<ProviderTruth>([
    [4, "failing"],
    [2, "busy"],
    [2, "overloaded"],
    [5, "unreachable"],
    [1, "silent"],
    [2, "walled"],
    [2, "reports_network"],
    [1, "cuts"],
    [1, "ends_early"],
    [1, "garbles"],
  ]);
}
