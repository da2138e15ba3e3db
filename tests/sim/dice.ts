/** All chance of the simulation: streams named after what they decide, so that one more draw here moves nothing there. */
import { createPrng, hash32, type HashPart, type Prng } from "../../lib/core/prng.ts";

export class Dice {
  readonly #next: Prng;

  constructor(...key: readonly HashPart[]) {
    this.#next = createPrng(hash32(...key));
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.#next();
  }

  chance(share: number): boolean {
    return this.#next() < share;
  }

  /** Whole number, both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error("Cannot pick from nothing");
    return list[Math.floor(this.#next() * list.length)]!;
  }

  /** One of the values, by weight. */
  weighted<T>(entries: readonly (readonly [weight: number, value: T])[]): T {
    const total = entries.reduce((sum, [weight]) => sum + weight, 0);
    let rest = this.#next() * total;
    for (const [weight, value] of entries) {
      rest -= weight;
      if (rest < 0) return value;
    }
    return entries.at(-1)![1];
  }

  /** Whole ms, log-uniform: as likely within one decade as within the next. */
  span(fromMs: number, toMs: number): number {
    return Math.round(fromMs * (toMs / fromMs) ** this.#next());
  }

  /** Whole ms until the next event of a steady stream with this mean gap. */
  gap(meanMs: number): number {
    return Math.max(1, Math.round(-Math.log(1 - this.#next()) * meanMs));
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list];
    for (let at = result.length - 1; at > 0; at--) {
      const other = this.int(0, at);
      [result[at], result[other]] = [result[other]!, result[at]!];
    }
    return result;
  }
}
