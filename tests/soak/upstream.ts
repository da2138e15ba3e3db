/**
 * The provider of a soak: serves what the number asks for, mostly; else it fails in each of the ways there are.
 *
 * Its faults are drawn from the seed; what it served or broke goes into the ledger.
 */
import type { Hit, SimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import {
  close,
  completed,
  created,
  delay,
  delta,
  failed,
  failure,
  hangUp,
  json,
  raw,
  receive,
  type Reply,
  reset,
  rst,
  silence,
  type Step,
  stream,
  tokens,
} from "../../lib/demo/simulated_replies.ts";
import type { Chance } from "./clients.ts";
import { type Asked, chunkText, type Deadlines, type Ledger, paddingOf, readAsked } from "./ledger.ts";

/** Out of quota from its first request on, for longer than any soak: nobody may ask it a second time. */
export const SPENT = "Z";
const SPENT_MS = 86_400_000;
/** Comes and goes with reloads: what it said before it left binds nobody afterwards. */
export const PASSING = "D";

/** An answer this long ends only because its client leaves. */
export const ENDLESS_CHUNKS = 100_000;

const DEADLINE_EVERY_MS = 15_000;
const DEADLINE_MS = { least: 5_000, span: 25_000 };
/** Long enough to be live when the process is back. */
const DEADLINE_OVER_KILL_MS = 40_000;
/** A token is called expired now and then: one refresh, however many were under way on it. */
const EXPIRE_EVERY_MS = 30_000;

export interface UpstreamCounts {
  requests: number;
  faults: number;
  turns: number;
  refreshes: number;
}

export class SoakUpstream {
  readonly counts: UpstreamCounts = { requests: 0, faults: 0, turns: 0, refreshes: 0 };
  readonly #provider: SimulatedProvider;
  readonly #ledger: Ledger;
  readonly #deadlines: Deadlines;
  readonly #random: Chance;
  readonly #current = new Map<string, number>();
  readonly #refreshed = new Map<string, number>();
  /** Endless answers under way: when the provider saw their client leave. */
  readonly #endless = new Map<number, Promise<void>>();
  #life = 0;
  #deadlineDueAtMs = Date.now() + DEADLINE_EVERY_MS;
  #expiryDueAtMs = Date.now() + EXPIRE_EVERY_MS;
  #deadlineMs: number | null = null;

  constructor(provider: SimulatedProvider, ledger: Ledger, deadlines: Deadlines, random: Chance) {
    this.#provider = provider;
    this.#ledger = ledger;
    this.#deadlines = deadlines;
    this.#random = random;
    // The call being answered is the last one in the log.
    provider.anyone.otherwise({ kind: "dynamic", make: () => this.#answer(this.#takeHit()) });
    provider.anyone.websocket.otherwise({ kind: "dynamic", make: () => this.#upgrade(this.#takeHit()) });
    provider.anyone.tokens.otherwise({ kind: "dynamic", make: () => this.#refresh(this.#takeHit()) });
    provider.anyone.models.otherwise(json({ models: [] }));
  }

  /** The next account asked states a deadline that outlives the kill about to come. */
  limitBeforeKill(): void {
    this.#deadlineMs = DEADLINE_OVER_KILL_MS;
  }

  /** Whether the provider sees within this time that nobody wants the endless answer any more. */
  async seesLeaving({ number }: Asked, limitMs: number): Promise<boolean> {
    const left = this.#endless.get(number);
    this.#endless.delete(number);
    if (left === undefined) return true;
    const late = Promise.withResolvers<false>();
    const timer = setTimeout(() => late.resolve(false), limitMs);
    const seen = await Promise.race([left.then(() => true), late.promise]);
    clearTimeout(timer);
    return seen;
  }

  killed(): void {
    this.#life++;
    this.#deadlines.killed(Date.now());
    this.#deadlineMs = null;
  }

  /** The log keeps whole bodies: over half an hour that would be gigabytes. */
  #takeHit(): Hit {
    const hit = this.#provider.hits.pop()!;
    this.#provider.hits.length = 0;
    return hit;
  }

  #answer(hit: Hit): Reply {
    this.counts.requests++;
    const refusal = this.#gate(hit);
    if (refusal !== null) return refusal;
    const text = hit.text();
    const asked = readAsked(text);
    if (asked === null) {
      this.#ledger.problem(`a request without a number arrived at ${hit.path}`);
      return failure(400, { code: "unnumbered" });
    }
    this.#ledger.arrived(asked);
    if (hit.path.endsWith("/compact")) return this.#echo(asked, hit);
    if (asked.chunks >= ENDLESS_CHUNKS) {
      this.#endless.set(asked.number, hit.left);
      return stream(this.#turn(asked));
    }
    const dice = this.#random.next();
    if (dice < 0.88) return stream(this.#turn(asked));
    this.counts.faults++;
    this.#ledger.served(asked, "broken");
    if (dice < 0.9) return failure(503, { code: "server_is_overloaded" });
    if (dice < 0.915) return stream([created(), failed("server_error")]);
    if (dice < 0.945) return stream([created(), delta(chunkText(asked.number, 1)), rst()]);
    if (dice < 0.96) return stream([created(), delta(chunkText(asked.number, 1))]);
    if (dice < 0.97) return raw(502, "<html>Bad gateway</html>", { "content-type": "text/html" });
    if (dice < 0.985) return hangUp();
    if (dice < 0.995) return reset();
    return silence();
  }

  /** A big body both ways: what came is compared with what its number says, and as much goes back. */
  #echo(asked: Asked, hit: Hit): Reply {
    const { pad } = hit.json();
    const length = typeof pad === "string" ? pad.length : 0;
    if (pad !== paddingOf(asked.number, length)) {
      this.#ledger.problem(`${asked.number}: a body of ${length} characters came changed`);
    }
    this.#ledger.served(asked, "whole");
    return json({ object: "response.compaction", output: [], pad: paddingOf(asked.number, length) });
  }

  #upgrade(hit: Hit): Reply {
    const refusal = this.#gate(hit);
    if (refusal !== null) return refusal;
    if (this.#random.next() < 0.03) {
      this.counts.faults++;
      return failure(503, { code: "server_is_overloaded" });
    }
    return { kind: "accept", headers: {}, protocol: null, steps: this.#turns(hit) };
  }

  *#turns(hit: Hit): Generator<Step> {
    while (true) {
      yield receive();
      const frame = hit.frames.shift();
      // The wait for a frame ends, too, when the client leaves.
      if (frame === undefined) return;
      const asked = readAsked(String(frame));
      if (asked === null) {
        this.#ledger.problem("a turn without a number arrived");
        return;
      }
      this.counts.turns++;
      this.#ledger.arrived(asked);
      const dice = this.#random.next();
      if (dice < 0.96) {
        yield* this.#turn(asked);
        continue;
      }
      this.counts.faults++;
      this.#ledger.served(asked, "broken");
      yield created();
      if (dice < 0.975) {
        yield failed("server_error");
        continue;
      }
      yield delta(chunkText(asked.number, 1));
      yield dice < 0.99 ? rst() : close(1011, "simulated");
      return;
    }
  }

  *#turn(asked: Asked): Generator<Step> {
    yield created();
    for (let place = 1; place <= asked.chunks; place++) {
      if (asked.everyMs > 0) yield delay(asked.everyMs);
      yield delta(chunkText(asked.number, place));
    }
    // Before the last event leaves: once the client has it, the ledger is asked.
    this.#ledger.served(asked, "whole");
    yield completed();
  }

  /** A refusal for the account's deadline or its expired token; null when it may serve. */
  #gate(hit: Hit): Reply | null {
    const nowMs = Date.now();
    const { account, generation } = readToken(hit.credential);
    if (account === PASSING) return null;
    const untilMs = this.#deadlines.asked(account, nowMs) ?? this.#newDeadline(account, nowMs);
    if (untilMs !== null) {
      return failure(429, {
        type: "usage_limit_reached",
        headers: { "retry-after": String(Math.ceil((untilMs - nowMs) / 1_000)) },
      });
    }
    const current = this.#current.get(account) ?? 1;
    if (generation === current && nowMs > this.#expiryDueAtMs) {
      this.#expiryDueAtMs = nowMs + EXPIRE_EVERY_MS;
      this.#current.set(account, current + 1);
      this.counts.faults++;
    }
    return generation < (this.#current.get(account) ?? 1)
      ? failure(401, { code: "token_expired", message: "Your authentication token has expired." })
      : null;
  }

  #newDeadline(account: string, nowMs: number): number | null {
    if (account === SPENT) {
      this.#deadlines.state(account, nowMs, nowMs + SPENT_MS);
      return nowMs + SPENT_MS;
    }
    // One at a time: somebody has to serve.
    const isDue = this.#deadlineMs !== null || nowMs > this.#deadlineDueAtMs;
    if (!isDue || this.#deadlines.anyLive(nowMs, SPENT)) return null;
    const { least, span } = DEADLINE_MS;
    const lengthMs = this.#deadlineMs ?? 1_000 * Math.floor((least + this.#random.next() * span) / 1_000);
    this.#deadlineMs = null;
    this.#deadlineDueAtMs = nowMs + lengthMs + DEADLINE_EVERY_MS;
    this.#deadlines.state(account, nowMs, nowMs + lengthMs);
    this.counts.faults++;
    return nowMs + lengthMs;
  }

  #refresh(hit: Hit): Reply {
    this.counts.refreshes++;
    const account = /SENT-ref-(\w)/.exec(hit.credential ?? "")?.[1] ?? "?";
    const generation = this.#current.get(account) ?? 1;
    // A kill may lose a token that was given and not yet saved; without one, asking twice is a doubled refresh.
    const key = `${account}${generation}`;
    if (this.#refreshed.get(key) === this.#life) this.#ledger.problem(`the token ${key} was asked for twice`);
    this.#refreshed.set(key, this.#life);
    return tokens({ access_token: `SENT-tok-${account}-${generation}`, expires_in: 864_000 });
  }
}

function readToken(credential: string | null): { account: string; generation: number } {
  const match = /SENT-tok-(\w)(?:-(\d+))?/.exec(credential ?? "");
  return { account: match?.[1] ?? "?", generation: Number(match?.[2] ?? 1) };
}
