/**
 * Upgraded connections: a stop lets their turns end, and closes those that are idle at once.
 */
export interface Drainable {
  /** Close as soon as nothing is under way. */
  drain(): void;
}

export class OpenSockets {
  readonly #open = new Set<Drainable>();
  #draining = false;
  #opened = 0;

  get size(): number {
    return this.#open.size;
  }

  /** How many there have ever been. */
  get opened(): number {
    return this.#opened;
  }

  /** @returns how to leave again. */
  add(socket: Drainable): () => void {
    this.#open.add(socket);
    this.#opened++;
    if (this.#draining) socket.drain();
    return () => void this.#open.delete(socket);
  }

  /** From now on: every socket, also one that opens later. */
  drain(): void {
    this.#draining = true;
    for (const socket of [...this.#open]) socket.drain();
  }
}
