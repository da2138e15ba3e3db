/**
 * Holds the upstream back while the client is slow, without letting it believe that we are gone.
 */
import type { Clock, Scheduled, UpstreamSocket } from "../ports.ts";
import type { ClientSocket } from "./client_socket.ts";

/** What may wait for a slow client before its upstream is held back, and when it goes on. */
export const CLIENT_HIGH_BYTES = 1_048_576;
const CLIENT_LOW_BYTES = 262_144;
/** The runtime does not tell when a server socket has drained. */
const LOOK_MS = 25;
/** While held back, the upstream is heard for a moment this often, so that its pings are answered in time. */
const BREATH_MS = 5_000;
/** A client that took no frame for this long, and for the time the largest needs at the slowest rate, does not read. */
const STALL_MS = 60_000;
const SLOWEST_BYTES_PER_MS = 16;

export class UpstreamFlow {
  readonly #clock: Clock;
  readonly #client: ClientSocket;
  readonly #upstream: UpstreamSocket;
  readonly #onStall: () => void;
  #look: Scheduled | null = null;
  #breathing = false;
  #breathAtMs = 0;
  #waitingBytes = 0;
  #movedAtMs = 0;
  /** The largest frame since the client was last quick enough: only whole frames are seen to leave. */
  #largestBytes = 0;

  constructor(clock: Clock, client: ClientSocket, upstream: UpstreamSocket, onStall: () => void) {
    this.#clock = clock;
    this.#client = client;
    this.#upstream = upstream;
    this.#onStall = onStall;
  }

  get isPaused(): boolean {
    return this.#look !== null;
  }

  /** A frame was handed to the client. */
  sent(bytes: number): void {
    const waiting = this.#client.bufferedAmount;
    if (bytes > this.#largestBytes) this.#largestBytes = bytes;
    if (this.#look !== null) return this.#holdBreath(waiting);
    if (waiting <= CLIENT_HIGH_BYTES) {
      this.#largestBytes = 0;
      return;
    }
    const nowMs = this.#clock.now();
    this.#waitingBytes = waiting;
    this.#movedAtMs = this.#breathAtMs = nowMs;
    this.#upstream.pause();
    this.#look = this.#clock.schedule(nowMs + LOOK_MS, () => this.#check());
  }

  stop(): void {
    this.#look?.cancel();
    this.#look = null;
  }

  #check(): void {
    const nowMs = this.#clock.now();
    const waiting = this.#client.bufferedAmount;
    if (waiting <= CLIENT_LOW_BYTES) {
      this.#look = null;
      this.#breathing = false;
      this.#largestBytes = 0;
      return this.#upstream.resume();
    }
    if (waiting < this.#waitingBytes) this.#movedAtMs = nowMs;
    this.#waitingBytes = waiting;
    if (nowMs - this.#movedAtMs >= STALL_MS + this.#largestBytes / SLOWEST_BYTES_PER_MS) {
      this.#look = null;
      return this.#onStall();
    }
    if (this.#breathing) this.#holdBreath(waiting);
    else if (nowMs - this.#breathAtMs >= BREATH_MS) {
      this.#breathing = true;
      this.#upstream.resume();
    }
    this.#look = this.#clock.schedule(nowMs + LOOK_MS, () => this.#check());
  }

  /** What came in this breath waits with the rest, and is not taken for the client's standing still. */
  #holdBreath(waiting: number): void {
    this.#waitingBytes = waiting;
    if (!this.#breathing) return;
    this.#breathing = false;
    this.#breathAtMs = this.#clock.now();
    this.#upstream.pause();
  }
}
