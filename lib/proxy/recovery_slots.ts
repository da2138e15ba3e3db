/**
 * How many requests may be withheld at once, and what became of them (state-machine-facts 2D).
 *
 * A slot bounds memory: it is held from the request's start until the last withheld byte is with the client, or is
 * dropped. What happened to each request is in its decision record; here the same is counted.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { Clock } from "../ports.ts";

/** Why a request that might have been withheld was streamed like any other. */
export const FAILED_OPEN = ["no_slot", "overflow", "unknown_payload"] as const;
export type FailedOpen = (typeof FAILED_OPEN)[number];

/** Notes of a decision record. */
export const RECOVERED_NOTE = "recovered";
export const EXHAUSTED_NOTE = "recovery_exhausted";
export const BLOCKED_NOTE = "recovery_blocked";
export function failedOpenNote(why: FailedOpen): string {
  return `failed_open:${why}`;
}

/** A moment's reading; what counts up never goes down. */
export interface RecoveryFigures {
  /** Slots taken now. */
  readonly held: number;
  /** Bytes held back now. */
  readonly heldBytes: number;
  /** The most bytes ever held back at once. */
  readonly heldBytesPeak: number;
  /** Bytes ever held back, losing attempts included. */
  readonly withheldBytes: number;
  /** Time slots were taken, ms, added up. */
  readonly heldMs: number;
  /** Requests answered by an attempt that followed a failed one silently. */
  readonly recovered: number;
  /** Requests whose attempts or window were spent on failures. */
  readonly exhausted: number;
  /** Requests whose account could not be asked again when its back-off was over. */
  readonly blocked: number;
  readonly failedOpen: Readonly<Record<FailedOpen, number>>;
}

export interface RecoverySlot {
  /** False once it was given back: what follows is served like any other request. */
  readonly live: boolean;
  /** Says how many bytes this request holds back now. */
  hold(bytes: number): void;
  /** Gives the slot back; later calls do nothing. */
  release(): void;
}

export class RecoverySlots {
  readonly #clock: Pick<Clock, "now">;
  #held = 0;
  #heldBytes = 0;
  #heldBytesPeak = 0;
  #withheldBytes = 0;
  #heldMs = 0;
  #recovered = 0;
  #exhausted = 0;
  #blocked = 0;
  readonly #failedOpen: Record<FailedOpen, number> = { no_slot: 0, overflow: 0, unknown_payload: 0 };

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Never waits. @returns null when all are taken. */
  tryAcquire(max: number): RecoverySlot | null {
    if (this.#held >= max) return null;
    this.#held++;
    const sinceMs = this.#clock.now();
    let live = true;
    let bytes = 0;
    const hold = (now: number): void => {
      if (!live) return;
      this.#heldBytes += now - bytes;
      if (now > bytes) this.#withheldBytes += now - bytes;
      if (this.#heldBytes > this.#heldBytesPeak) this.#heldBytesPeak = this.#heldBytes;
      bytes = now;
    };
    return {
      get live() {
        return live;
      },
      hold,
      release: () => {
        if (!live) return;
        hold(0);
        live = false;
        this.#held--;
        this.#heldMs += this.#clock.now() - sinceMs;
      },
    };
  }

  /** Counts a request that is over. */
  count({ notes }: Pick<DecisionRecord, "notes">): void {
    for (const note of notes) {
      if (note === RECOVERED_NOTE) this.#recovered++;
      else if (note === EXHAUSTED_NOTE) this.#exhausted++;
      else if (note === BLOCKED_NOTE) this.#blocked++;
      else for (const why of FAILED_OPEN) if (note === failedOpenNote(why)) this.#failedOpen[why]++;
    }
  }

  get held(): number {
    return this.#held;
  }

  get figures(): RecoveryFigures {
    return {
      held: this.#held,
      heldBytes: this.#heldBytes,
      heldBytesPeak: this.#heldBytesPeak,
      withheldBytes: this.#withheldBytes,
      heldMs: this.#heldMs,
      recovered: this.#recovered,
      exhausted: this.#exhausted,
      blocked: this.#blocked,
      failedOpen: { ...this.#failedOpen },
    };
  }
}
