/**
 * One piece of work that many wait for. A waiter may leave at any time, which costs nothing and stops nothing.
 *
 * Waiters are kept in a set of our own: racing a long-lived promise leaves a reaction behind for each that left,
 * and makes many leaving at once quadratic (B166).
 */
export class Flight<T> {
  /** Settles with the work, whether or not anybody waits. */
  readonly ended: Promise<T>;
  readonly #waiters = new Set<{ resolve(value: T | null): void; reject(error: unknown): void }>();
  #settled = false;

  constructor(work: () => Promise<T>) {
    this.ended = work();
    this.ended.then(
      (value) => this.#settle((waiter) => waiter.resolve(value)),
      (error) => this.#settle((waiter) => waiter.reject(error)),
    );
  }

  /** @returns what the work gave, or `null` as soon as the signal aborts. */
  wait(signal: AbortSignal | null): Promise<T | null> {
    if (signal?.aborted) return Promise.resolve(null);
    if (this.#settled) return this.ended;
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        resolve(null);
      };
      const waiter = {
        resolve: (value: T | null) => {
          signal?.removeEventListener("abort", leave);
          resolve(value);
        },
        reject: (error: unknown) => {
          signal?.removeEventListener("abort", leave);
          reject(error);
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  #settle(tell: (waiter: { resolve(value: T | null): void; reject(error: unknown): void }) => void): void {
    this.#settled = true;
    for (const waiter of this.#waiters) tell(waiter);
    this.#waiters.clear();
  }
}
