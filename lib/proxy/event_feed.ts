/**
 * What happens, live, as Server-Sent Events: `request` for each finished request, `state` when accounts or providers
 * change, and for the status page the counters of the last hour.
 *
 * One look at the pool serves all readers. A reader that does not read loses events instead of making the proxy keep
 * them; when it reads again it is given the whole state once more.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { ByteSource, Clock, Scheduled } from "../ports.ts";
import { type DecisionLog, KEPT_DECISIONS } from "./decision_log.ts";
import { isoTime, summariseDecision, viewDecision } from "./decision_view.ts";
import type { HourStats } from "./hour_stats.ts";
import { problem } from "./management.ts";
import type { PoolRuntime } from "./pool_runtime.ts";
import type { PoolWatch } from "./pool_watch.ts";
import type { StateView } from "./state_view.ts";
import { Answer } from "./answer.ts";

/** Changes that come closer together are told together. */
export const STATE_SPACING_MS = 250;
const STATS_SPACING_MS = 1_000;
const PING_MS = 15_000;
/** Kept for one reader at most, and one event beyond it. */
const MAX_QUEUED_BYTES = 262_144;
export const MAX_READERS = 32;

export interface FeedDeps {
  readonly clock: Clock;
  readonly pool: PoolRuntime;
  readonly state: StateView;
  readonly decisions: DecisionLog;
  readonly hour: HourStats;
}

export interface FeedOptions {
  /** `full`: decisions as management gives them; `page`: one line a request, and the hour's counters. */
  readonly detail: "full" | "page";
  /** Asked before every event: the stream ends with the session or the key it was opened with. */
  readonly isAllowed: () => boolean;
}

export class EventFeed {
  readonly #deps: FeedDeps;
  readonly #readers = new Set<Reader>();
  #watch: PoolWatch | null = null;
  #tick: Scheduled | null = null;
  #unsubscribe = (): void => {};
  #toldStats = 0;
  #nextStatsMs = 0;
  #closed = false;

  constructor(deps: FeedDeps) {
    this.#deps = deps;
  }

  get readerCount(): number {
    return this.#readers.size;
  }

  open(options: FeedOptions): Answer {
    if (this.#closed || this.#readers.size >= MAX_READERS) {
      const message = this.#closed
        ? "Shutting down"
        : `At most ${MAX_READERS} live feeds can be open at once`;
      return problem(503, this.#closed ? "shutting_down" : "too_many_feeds", message);
    }
    const reader = new Reader(options, this.#deps.clock.now() + PING_MS, {
      left: () => this.#leave(reader),
      whole: () => this.#wholeState(options.detail),
    });
    if (this.#readers.size === 0) this.#start();
    this.#readers.add(reader);
    return new Answer(reader, {
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        // Buffering proxies would hold events back.
        "x-accel-buffering": "no",
      },
    });
  }

  /** Ends every stream; nothing can be opened afterwards. */
  close(): void {
    this.#closed = true;
    for (const reader of [...this.#readers]) reader.end();
  }

  #start(): void {
    const { clock, pool, decisions } = this.#deps;
    this.#watch = pool.watch();
    // What is there already is told to each reader when it comes.
    this.#watch.look(clock.now());
    this.#unsubscribe = decisions.subscribe((record) => this.#tellRequest(record));
    this.#tick = clock.schedule(clock.now() + STATE_SPACING_MS, () => this.#look());
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    this.#unsubscribe();
    this.#tick?.cancel();
    this.#tick = null;
    this.#watch = null;
  }

  #tellRequest(record: DecisionRecord): void {
    const texts = { full: "", page: "" };
    for (const reader of this.#readers) {
      const { detail } = reader.options;
      texts[detail] ||= frame(
        "request",
        detail === "full" ? viewDecision(record) : summariseDecision(record),
      );
      reader.tell(texts[detail]);
    }
  }

  #look(): void {
    const nowMs = this.#deps.clock.now();
    const change = this.#changedState(nowMs);
    const stats = this.#changedStats(nowMs);
    for (const reader of [...this.#readers]) {
      if (change !== null) reader.tell(change);
      if (stats !== null && reader.options.detail === "page") reader.tell(stats);
      if (nowMs >= reader.pingAtMs) {
        reader.pingAtMs = nowMs + PING_MS;
        reader.ping(frame("clock", { at: isoTime(nowMs) }));
      }
    }
    if (this.#readers.size === 0) return;
    this.#tick = this.#deps.clock.schedule(this.#deps.clock.now() + STATE_SPACING_MS, () => this.#look());
  }

  #changedState(nowMs: number): string | null {
    const changes = this.#watch!.look(nowMs);
    if (changes.accounts.length + changes.removed.length === 0 && !changes.gates) return null;
    const { state } = this.#deps;
    return frame("state", {
      at: isoTime(nowMs),
      full: false,
      accounts: changes.accounts.map((view) => state.account(view)),
      removed: changes.removed,
      ...state.gates(nowMs),
    });
  }

  #changedStats(nowMs: number): string | null {
    const { hour } = this.#deps;
    if (nowMs < this.#nextStatsMs || hour.version === this.#toldStats) return null;
    this.#nextStatsMs = nowMs + STATS_SPACING_MS;
    this.#toldStats = hour.version;
    // The minute before as well: its last requests may have ended after it was told.
    return frame("minutes", { at: isoTime(nowMs), minutes: hour.read(nowMs, 2) });
  }

  #wholeState(detail: FeedOptions["detail"]): string {
    const { clock, state, hour, decisions } = this.#deps;
    const nowMs = clock.now();
    const whole = frame("state", {
      at: isoTime(nowMs),
      full: true,
      accounts: state.accounts(nowMs),
      removed: [],
      ...state.gates(nowMs),
    });
    if (detail === "full") return whole;
    const requests = decisions.latest(KEPT_DECISIONS).map(summariseDecision);
    return `${whole}${frame("minutes", { at: isoTime(nowMs), minutes: hour.read(nowMs) })}${
      frame("requests", { requests })
    }`;
  }
}

interface ReaderEvents {
  readonly left: () => void;
  /** The events that bring a reader up to date. */
  readonly whole: () => string;
}

/** One open stream. */
class Reader implements ByteSource {
  readonly options: FeedOptions;
  pingAtMs: number;
  readonly #events: ReaderEvents;
  readonly #encoder = new TextEncoder();
  readonly #queue: Uint8Array<ArrayBuffer>[] = [];
  #queuedBytes = 0;
  #wake: (() => void) | null = null;
  #open = true;
  /** Events were lost, or none was told yet. */
  #behind = true;

  constructor(options: FeedOptions, pingAtMs: number, events: ReaderEvents) {
    this.options = options;
    this.pingAtMs = pingAtMs;
    this.#events = events;
    this.#enqueue("retry: 2000\n\n");
  }

  async read(): Promise<Uint8Array<ArrayBuffer> | null> {
    this.#catchUp();
    if (this.#queue.length === 0 && this.#open) await new Promise<void>((wake) => this.#wake = wake);
    const next = this.#queue.shift() ?? null;
    this.#queuedBytes -= next?.length ?? 0;
    return next;
  }

  cancel(): void {
    this.#queue.length = this.#queuedBytes = 0;
    this.end();
  }

  tell(text: string): void {
    this.#catchUp();
    if (!this.#behind) this.#send(text);
  }

  /** Keeps proxies on the way from closing a quiet stream, and countdowns in step with the proxy's clock. */
  ping(text: string): void {
    if (!this.options.isAllowed()) this.end();
    else if (this.#hasRoom()) this.#send(text);
  }

  end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#wake?.();
    this.#events.left();
  }

  #catchUp(): void {
    if (!this.#behind || !this.#hasRoom()) return;
    this.#behind = false;
    this.#send(this.#events.whole());
  }

  #send(text: string): void {
    if (!this.#open) return;
    if (!this.options.isAllowed()) return this.end();
    if (this.#hasRoom()) this.#enqueue(text);
    else this.#behind = true;
  }

  #enqueue(text: string): void {
    const bytes = this.#encoder.encode(text);
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#wake?.();
    this.#wake = null;
  }

  #hasRoom(): boolean {
    return this.#open && this.#queuedBytes < MAX_QUEUED_BYTES;
  }
}

function frame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
