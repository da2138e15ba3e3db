/**
 * The books of a soak: what was asked, what the provider served, what the client got, by number.
 *
 * Every request and every turn has a number of its own, which travels inside it; every chunk of an answer carries that
 * number and its place. So an answer that is lost, doubled or mixed up with another one shows.
 */

/** An attempt under way when its account was refused may still arrive; longer than a busy machine needs for it. */
export const IN_FLIGHT_MS = 2_000;
/** A refusal that came so shortly before a kill may not have been on disk yet: no client had heard of it. */
export const UNHEARD_MS = 1_000;

export interface Asked {
  readonly number: number;
  readonly chunks: number;
  /** Between two chunks. */
  readonly everyMs: number;
}

export type Served = "whole" | "broken";

/** The words of a question; the provider finds them in whatever the proxy sends on. */
export function wordsOf({ number, chunks, everyMs }: Asked): string {
  return `n=${number} chunks=${chunks} every=${everyMs}`;
}

export function readAsked(text: string): Asked | null {
  const match = /n=(\d+) chunks=(\d+) every=(\d+)/.exec(text);
  return match === null
    ? null
    : { number: Number(match[1]), chunks: Number(match[2]), everyMs: Number(match[3]) };
}

export function chunkText(number: number, place: number): string {
  return `#${number}.${place} `;
}

/** Text of this many characters that is another one for each number. */
export function paddingOf(number: number, length: number): string {
  const piece = `${number}-`.padStart(10, "0");
  return piece.repeat(Math.ceil(length / piece.length)).slice(0, length);
}

export interface Received {
  /** The chunks as text, in the order they came. */
  readonly text: string;
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
}

/** Reads an answer's events, of a stream or of a WebSocket turn. */
export function readReceived(text: string): Received {
  const count = (type: string): number => text.split(`"type":"response.${type}"`).length - 1;
  return {
    text: [...text.matchAll(/"delta":"(#[^"]*)"/g)].map((match) => match[1]).join(""),
    created: count("created"),
    completed: count("completed"),
    failed: count("failed"),
  };
}

export class Ledger {
  readonly problems: string[] = [];
  /** Numbers nobody has settled yet; small, because settled ones are struck out. */
  readonly #served = new Map<number, Served>();
  #last = 0;

  next(chunks: number, everyMs: number): Asked {
    return { number: ++this.#last, chunks, everyMs };
  }

  problem(text: string): void {
    this.problems.push(text);
  }

  /** The provider gets a request. */
  arrived({ number }: Asked): void {
    if (this.#served.get(number) === "whole") {
      this.problem(`${number} was sent again after it was served whole`);
    }
    this.#served.delete(number);
  }

  /** The provider has sent everything, or has broken off as its dice said. */
  served({ number }: Asked, how: Served): void {
    this.#served.set(number, how);
  }

  wasServed({ number }: Asked): Served | null {
    return this.#served.get(number) ?? null;
  }

  /** What a client got of an answer that ended by itself. */
  received(asked: Asked, got: Received): "whole" | "failed" {
    const { number, chunks } = asked;
    const served = this.wasServed(asked);
    this.forget(asked);
    let want = "";
    for (let place = 1; place <= chunks; place++) want += chunkText(number, place);
    if (!want.startsWith(got.text)) {
      this.problem(`${number}: chunks lost, doubled or out of order: ${got.text.slice(0, 200)}`);
    }
    if (got.created !== 1 || got.completed + got.failed !== 1) {
      this.problem(
        `${number} began ${got.created} times, ended ${got.completed} times well and ${got.failed} times badly`,
      );
    }
    if (got.completed === 1 && got.text !== want) {
      this.problem(`${number} ended well with ${got.text.length} of ${want.length} characters`);
    }
    if (got.completed === 0 && served === "whole") {
      this.problem(`${number} was served whole, and its client was told a failure`);
    }
    return got.completed === 1 ? "whole" : "failed";
  }

  /** A client was refused with a status of its own. */
  refused(asked: Asked, status: number): void {
    if (this.wasServed(asked) === "whole") {
      this.problem(`${asked.number} was served whole, and its client got ${status}`);
    }
    this.forget(asked);
  }

  /** Nothing more is expected of this number: its client left, or the process was killed under it. */
  forget({ number }: Asked): void {
    this.#served.delete(number);
  }

  get open(): number {
    return this.#served.size;
  }
}

interface Deadline {
  readonly refusedAtMs: number;
  readonly untilMs: number;
}

/** Which account said until when it may not be asked, and whether that is kept, over kills. */
export class Deadlines {
  readonly #ledger: Pick<Ledger, "problem">;
  readonly #live = new Map<string, Deadline>();
  /** Deadlines that were live when the process was killed. */
  overKills = 0;
  stated = 0;

  constructor(ledger: Pick<Ledger, "problem">) {
    this.#ledger = ledger;
  }

  state(account: string, nowMs: number, untilMs: number): void {
    this.#live.set(account, { refusedAtMs: nowMs, untilMs });
    this.stated++;
  }

  /** The end of the account's deadline when it is asked before it; null when it may serve. */
  asked(account: string, nowMs: number): number | null {
    const deadline = this.#live.get(account);
    if (deadline === undefined) return null;
    if (nowMs >= deadline.untilMs) {
      this.#live.delete(account);
      return null;
    }
    if (nowMs > deadline.refusedAtMs + IN_FLIGHT_MS) {
      this.#ledger.problem(
        `${account} was asked ${nowMs - deadline.refusedAtMs} ms after it refused, ` +
          `${deadline.untilMs - nowMs} ms before its deadline`,
      );
    }
    return deadline.untilMs;
  }

  /** @param except  an account that does not count. */
  anyLive(nowMs: number, except: string): boolean {
    return [...this.#live].some(([account, { untilMs }]) => account !== except && untilMs > nowMs);
  }

  /** The process dies: a refusal it had no time to write down is one nobody was promised anything about. */
  killed(nowMs: number): void {
    for (const [account, { refusedAtMs, untilMs }] of this.#live) {
      if (nowMs - refusedAtMs < UNHEARD_MS) this.#live.delete(account);
      else if (untilMs > nowMs) this.overKills++;
    }
  }
}
