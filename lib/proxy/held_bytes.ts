/**
 * Bytes held back from a client, in memory of their own.
 *
 * A read of a few bytes comes in a network buffer of 64 KiB and keeps all of it alive: a stream of small events held
 * as it came would take hundreds of times its length. After a handful of pieces they are copied together.
 */
export class HeldBytes {
  readonly #blocks: Uint8Array<ArrayBuffer>[] = [];
  /** Pieces as they came: most holds end after a few, and then nothing was copied in vain. */
  readonly #loose: Uint8Array<ArrayBuffer>[] = [];
  #block: Uint8Array<ArrayBuffer> | null = null;
  #used = 0;
  length = 0;

  add(piece: Uint8Array<ArrayBuffer>): void {
    if (piece.length === 0) return;
    this.length += piece.length;
    this.#loose.push(piece);
    if (this.#loose.length > LOOSE_LIMIT) this.#pack();
  }

  /** All of it in order, in pieces that share no buffer and are never empty; nothing is kept. */
  take(): Uint8Array<ArrayBuffer>[] {
    const pieces = [...this.#blocks];
    if (this.#block !== null) pieces.push(this.#block.subarray(0, this.#used));
    pieces.push(...this.#loose);
    this.#blocks.length = 0;
    this.#loose.length = 0;
    this.#block = null;
    this.#used = 0;
    this.length = 0;
    return pieces;
  }

  #pack(): void {
    for (const piece of this.#loose) this.#copy(piece);
    this.#loose.length = 0;
  }

  #copy(piece: Uint8Array<ArrayBuffer>): void {
    let from = 0;
    while (from < piece.length) {
      if (this.#block === null || this.#used === this.#block.length) {
        if (this.#block !== null) this.#blocks.push(this.#block);
        this.#block = new Uint8Array(BLOCK_BYTES);
        this.#used = 0;
      }
      const count = Math.min(piece.length - from, this.#block.length - this.#used);
      this.#block.set(piece.subarray(from, from + count), this.#used);
      this.#used += count;
      from += count;
    }
  }
}

const LOOSE_LIMIT = 4;
const BLOCK_BYTES = 65_536;
