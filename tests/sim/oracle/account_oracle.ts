/**
 * What must be true of one account, kept from outcomes alone (state-machine-facts 3.2, 3.3 step 4, 4).
 *
 * A second machine, written from the rules and not from the first. Where the rules leave a number to chance (the
 * ladder's jitter) it says between which bounds the number must lie, and takes the first machine's from then on.
 */
import type { Account, AttemptId, ModelId } from "../../../lib/core/domain.ts";
import type { BlockKind } from "../../../lib/core/decision.ts";
import { ParkOracle } from "./quota_rules.ts";

export const TWELVE_HOURS_MS = 12 * 3_600_000;

/** A block that ends by itself, and the moment it was learnt. */
export interface Spell {
  untilMs: number;
  writtenAtMs: number;
}

export interface LimitSpell extends Spell {
  shape: "rate" | "quota";
}

export interface LadderSpell extends Spell {
  strikes: number;
  reason: string;
  attempt: AttemptId | null;
  /** Set until the machine's own number was seen: it must lie between these. */
  bounds: { readonly fromMs: number; readonly toMs: number } | null;
}

export interface OracleBlock {
  readonly kind: BlockKind;
  /** Null: ends by an event. */
  readonly untilMs: number | null;
}

export class AccountOracle {
  account: Account;
  isRemoved = false;
  deadline: Spell | null = null;
  readonly modelDeadlines = new Map<ModelId, Spell>();
  inferred: LimitSpell | null = null;
  readonly modelInferred = new Map<ModelId, LimitSpell>();
  ladder: LadderSpell | null = null;
  credential: { kind: string; fingerprint: string; writtenAtMs: number } | null = null;
  credits: { openedAtMs: number; refusedAtMs: number; probeAtMs: number } | null = null;
  readonly exclusions = new Map<ModelId, number>();
  park = new ParkOracle();
  /** Last 429 of the account: what was launched before it proves nothing by ending well. */
  limitedAtMs = 0;
  recheckedAtMs = 0;
  /** The one attempt that tests a block of this account. */
  trial: AttemptId | null = null;
  /** Accounts of one provider with the same word share their limits and their credit. */
  limitGroup: string | null = null;
  /** Attempts of this account that have not ended. */
  inFlight = 0;
  /** Grows with every change, so that only what changed is compared. */
  version = 0;

  constructor(account: Account) {
    this.account = account;
  }

  get id(): string {
    return this.account.id;
  }

  /** The strongest thing against the account now. */
  block(model: ModelId | null, nowMs: number): OracleBlock | null {
    return this.#untimedBlock(model, nowMs) ?? this.#timedBlock(model, nowMs);
  }

  /** Latest end of everything timed that is live; now when nothing is. */
  readyAtMs(
    model: ModelId | null,
    nowMs: number,
    ladder: Pick<Spell, "untilMs"> | null = this.ladder,
  ): number {
    let readyAtMs = nowMs;
    const consider = (spell: Pick<Spell, "untilMs"> | null | undefined) => {
      if (spell !== null && spell !== undefined) readyAtMs = Math.max(readyAtMs, spell.untilMs);
    };
    consider(this.deadline);
    consider(this.inferred);
    consider(ladder);
    if (model !== null) {
      consider(this.modelDeadlines.get(model));
      consider(this.modelInferred.get(model));
    }
    return Math.max(readyAtMs, this.park.liveUntilMs(model, nowMs));
  }

  /** The same, when the ladder takes as long as its rule allows. */
  latestReadyAtMs(model: ModelId | null, nowMs: number): number {
    const toMs = this.ladder?.bounds?.toMs;
    return this.readyAtMs(model, nowMs, toMs === undefined ? this.ladder : { untilMs: toMs });
  }

  /** True when the credits block, and nothing else, stands in the way, and its hour is over. */
  isCreditsTrialDue(model: ModelId | null, nowMs: number): boolean {
    if (this.credits === null || this.credits.probeAtMs > nowMs || this.trial !== null) return false;
    return this.#without("credits", model, nowMs);
  }

  /** True when only the account's deadline stands in the way. */
  isBlockedByDeadlineAlone(model: ModelId | null, nowMs: number): boolean {
    return isLive(this.deadline, nowMs) && this.#without("deadline", model, nowMs);
  }

  #without(kind: "credits" | "deadline", model: ModelId | null, nowMs: number): boolean {
    const kept = { credits: this.credits, deadline: this.deadline };
    this[kind] = null;
    const block = this.block(model, nowMs);
    Object.assign(this, kept);
    return block === null;
  }

  #untimedBlock(model: ModelId | null, nowMs: number): OracleBlock | null {
    const excludedAtMs = model === null ? undefined : this.exclusions.get(model);
    if (excludedAtMs !== undefined && excludedAtMs + TWELVE_HOURS_MS > nowMs) {
      return { kind: "model_excluded", untilMs: null };
    }
    if (!this.account.enabled) return { kind: "disabled", untilMs: null };
    if (this.credential !== null) return { kind: "credential", untilMs: null };
    if (this.credits !== null) return { kind: "credits", untilMs: null };
    return null;
  }

  #timedBlock(model: ModelId | null, nowMs: number): OracleBlock | null {
    if (isLive(this.deadline, nowMs)) return { kind: "deadline", untilMs: this.deadline!.untilMs };
    const ofModel = model === null ? null : this.modelDeadlines.get(model) ?? null;
    if (isLive(ofModel, nowMs)) return { kind: "model_deadline", untilMs: ofModel!.untilMs };
    const parkUntilMs = this.park.liveUntilMs(model, nowMs);
    if (parkUntilMs > 0) return { kind: "park", untilMs: parkUntilMs };
    const inferred = [this.inferred, model === null ? null : this.modelInferred.get(model) ?? null];
    for (const spell of inferred) {
      if (isLive(spell, nowMs)) return { kind: "inferred", untilMs: spell!.untilMs };
    }
    if (isLive(this.ladder, nowMs)) return { kind: "ladder", untilMs: this.ladder!.untilMs };
    return null;
  }
}

export function isLive(spell: Spell | null | undefined, nowMs: number): boolean {
  return spell !== null && spell !== undefined && spell.untilMs > nowMs;
}
