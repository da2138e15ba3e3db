/**
 * A map that keeps the entries used last. A `Map` keeps insertion order, so the first key is the oldest.
 *
 * To move an entry to the end costs more than to find it, so that one is moved only when half of the others have come
 * after it: what is dropped then was not used for at least half the capacity.
 */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #capacity: number;
  /** Entries put at the end so far. */
  #puts = 0;

  /** @throws RangeError unless `capacity` is a whole number of at least 1 */
  constructor(capacity: number) {
    if (!Number.isSafeInteger(capacity) || capacity < 1) {
      throw new RangeError(`Cannot make a cache: capacity must be a whole number >= 1, got ${capacity}`);
    }
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#puts - entry.put > this.#capacity / 2) this.#put(key, entry);
    return entry.value;
  }

  set(key: K, value: V): void {
    this.#put(key, { value, put: 0 });
    if (this.#entries.size > this.#capacity) this.#entries.delete(this.#entries.keys().next().value!);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  deleteWhere(matches: (value: V) => boolean): void {
    for (const [key, { value }] of this.#entries) {
      if (matches(value)) this.#entries.delete(key);
    }
  }

  #put(key: K, entry: Entry<V>): void {
    this.#entries.delete(key);
    entry.put = this.#puts++;
    this.#entries.set(key, entry);
  }
}

interface Entry<V> {
  readonly value: V;
  /** Which of the puts it was. */
  put: number;
}
