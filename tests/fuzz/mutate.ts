/** Inputs for the fuzz run: sound ones, broken in ways that hurt parsers. Everything is drawn from a seed. */
import { createRandom } from "../../lib/runtime/chance.ts";
import type { Random } from "../../lib/ports.ts";

export type Bytes = Uint8Array<ArrayBuffer>;

const ENCODER = new TextEncoder();

export class Source {
  readonly random: Random;

  constructor(seed: number) {
    this.random = createRandom(seed);
  }

  /** 0 … below - 1. */
  below(below: number): number {
    return Math.floor(this.random.next() * below);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  chance(share: number): boolean {
    return this.random.next() < share;
  }

  /** A text of the corpus, broken a few times. */
  broken(corpus: readonly string[]): Bytes {
    return this.brokenBytes(ENCODER.encode(this.pick(corpus)), corpus);
  }

  /** These bytes, broken a few times. */
  brokenBytes(sound: Bytes, corpus: readonly string[] = NASTY): Bytes {
    let bytes = sound;
    for (let times = this.below(5); times > 0; times--) bytes = this.#break(bytes, corpus);
    return bytes;
  }

  /** The bytes in pieces, cut where it hurts as well. */
  cut(bytes: Bytes): Bytes[] {
    const pieces: Bytes[] = [];
    for (let at = 0; at < bytes.length;) {
      const length = this.chance(0.3) ? 1 : 1 + this.below(Math.max(1, bytes.length - at));
      pieces.push(bytes.slice(at, at + length));
      at += length;
    }
    return pieces;
  }

  #break(bytes: Bytes, corpus: readonly string[]): Bytes {
    const at = this.below(bytes.length + 1);
    switch (this.below(9)) {
      case 0:
        return bytes.slice(0, at);
      case 1:
        return join(bytes.slice(0, at), new Uint8Array([this.below(256)]), bytes.slice(at));
      case 2: {
        const changed = bytes.slice();
        if (changed.length > 0) changed[this.below(changed.length)] = this.below(256);
        return changed;
      }
      case 3:
        return join(bytes.slice(0, at), ENCODER.encode(this.pick(NASTY)), bytes.slice(at));
      case 4:
        return join(bytes, ENCODER.encode(this.pick(corpus)));
      case 5: {
        const length = this.below(64);
        return join(bytes.slice(0, at), bytes.slice(at + length));
      }
      case 6: {
        const part = bytes.slice(at, at + 1 + this.below(32));
        return join(
          bytes.slice(0, at),
          ...Array.from({ length: 1 + this.below(20) }, () => part),
          bytes.slice(at),
        );
      }
      case 7:
        return join(bytes.slice(0, at), ENCODER.encode("[".repeat(this.below(2_000))), bytes.slice(at));
      default:
        return join(bytes.slice(at), bytes.slice(0, at));
    }
  }
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** @throws Error when what a parser promises does not hold. */
export function promise(kept: boolean, what: string): void {
  if (!kept) throw new Error(`Broken promise: ${what}`);
}

export function join(...parts: readonly Bytes[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

const NASTY = [
  "\0",
  "\r\n",
  "\n\n",
  "\r",
  "\ufeff",
  "\ud83d",
  '"',
  "\\",
  "\\u0000",
  "\\ud800",
  "null",
  "-1",
  "1e999",
  "9007199254740993",
  "NaN",
  "__proto__",
  "constructor",
  "toString",
  "data: ",
  "event: ",
  "[DONE]",
  ": ",
  "{}",
  "[]",
  "}",
  "]",
  ",",
  "<html>",
  "%00",
  "../",
  "é北🚀",
  "*a",
  "&a [*a]",
  "!!js/function",
];
