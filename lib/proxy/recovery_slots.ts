/**
 * How many requests may be withheld at once, and what became of them.
 */
export class RecoverySlots {
  #held = 0;
  recovered = 0;
  exhausted = 0;
  readonly failedOpen = { no_slot: 0, overflow: 0, unknown_payload: 0 };
  /** Bytes held right now by all withheld streams. */
  heldBytes = 0;

  /** Never waits. @returns a slot to release exactly once, or null when all are taken. */
  tryAcquire(max: number): RecoverySlot | null {
    if (this.#held >= max) {
      this.failedOpen.no_slot++;
      return null;
    }
    this.#held++;
    let released = false;
    return {
      release: () => {
        if (released) return;
        released = true;
        this.#held--;
      },
    };
  }

  get held(): number {
    return this.#held;
  }
}

export interface RecoverySlot {
  /** Gives the slot back; later calls do nothing. */
  release(): void;
}
