/** Virtual time: what is due next, in order of its moment, then of its scheduling. */

export interface QueuedEvent {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A binary heap; the scheduling order breaks ties, so that runs repeat exactly. */
export class EventQueue {
  readonly #heap: QueuedEvent[] = [];
  #scheduled = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(atMs: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ atMs, order: this.#scheduled++, run });
    let at = heap.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at]!, heap[parent]!)) break;
      [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
      at = parent;
    }
  }

  pop(): QueuedEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return first;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left;
      if (!isBefore(heap[child]!, heap[at]!)) return first;
      [heap[at], heap[child]] = [heap[child]!, heap[at]!];
      at = child;
    }
  }
}

function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
