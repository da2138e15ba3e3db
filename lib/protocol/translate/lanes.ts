/**
 * Events of several parts that grow at once, put out one part after the other.
 *
 * Parallel tool calls may arrive interleaved; clients want each block opened, filled and closed before the next one.
 * The first open lane is live, the others wait; when it closes the next one's events follow at once.
 */

export class Lanes<E> {
  readonly #out: E[] = [];
  readonly #waiting: Lane<E>[] = [];
  #live: Lane<E> | null = null;

  /** A new lane behind all open ones. */
  open(): Lane<E> {
    const lane = new Lane<E>((event) => {
      if (lane === this.#live) this.#out.push(event);
      else lane.held.push(event);
    }, () => this.#advance());
    if (this.#live === null) this.#live = lane;
    else this.#waiting.push(lane);
    return lane;
  }

  /** Puts an event out at once, past all lanes (openings and endings of the whole answer). */
  emit(event: E): void {
    this.#out.push(event);
  }

  /** The events that may go out now; each is handed out once. */
  take(): E[] {
    return this.#out.splice(0);
  }

  #advance(): void {
    while (this.#live !== null && this.#live.closed) {
      this.#live = this.#waiting.shift() ?? null;
      for (const event of this.#live?.held.splice(0) ?? []) this.#out.push(event);
    }
  }
}

export class Lane<E> {
  readonly held: E[] = [];
  readonly emit: (event: E) => void;
  readonly #onClose: () => void;
  #closed = false;

  constructor(emit: (event: E) => void, onClose: () => void) {
    this.emit = emit;
    this.#onClose = onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#onClose();
  }
}
