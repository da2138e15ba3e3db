/** The upstream port played from a script: heads, bodies and endings at the moments of a clock that is told to move. */
import type {
  AnswerBody,
  Clock,
  Scheduled,
  Upstream,
  UpstreamRequest,
  UpstreamResponse,
  UpstreamResult,
} from "../../lib/ports.ts";
import {
  AttemptEnded,
  BrokenConnection,
  CLIENT_CANCELLED,
  readBodyFailure,
  transport,
} from "../../lib/upstream/transport_error.ts";
import { parseAttemptId } from "../../lib/core/domain.ts";
import type { AttemptScript } from "./attempt_script.ts";
import type { WireProtocol } from "./wire_events.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** One request that went out, and what became of its answer. */
export interface Send {
  readonly requestId: string;
  readonly attempt: string;
  /** Counts from 1 within its request. */
  readonly number: number;
  readonly atMs: number;
  readonly protocol: WireProtocol;
  readonly script: AttemptScript;
  body: ScriptedBody | null;
}

export type Playwright = (
  requestId: string,
  number: number,
  protocol: WireProtocol,
  asksForStream: boolean,
) => AttemptScript;

/** @param again  sends the same request once more, and gives the body of what comes back. */
export type Tampering = (
  body: ScriptedBody,
  send: Send,
  again: () => Promise<AnswerBody | null>,
) => AnswerBody;

export class ScriptedUpstream implements Upstream {
  readonly sends: Send[] = [];
  readonly #clock: Clock;
  readonly #script: Playwright;
  readonly #bodyOf: Tampering;

  /** @param bodyOf  where a plant may tamper with what an answer's body gives. */
  constructor(clock: Clock, script: Playwright, bodyOf: Tampering = (body) => body) {
    this.#clock = clock;
    this.#script = script;
    this.#bodyOf = bodyOf;
  }

  async send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult> {
    const { request: requestId } = parseAttemptId(request.attempt)!;
    const protocol = protocolOf(request.url);
    const number = this.sends.filter((send) => send.requestId === requestId).length + 1;
    const asked = JSON.parse(new TextDecoder().decode(request.body as Bytes)) as Record<string, unknown>;
    const script = this.#script(requestId, number, protocol, asked["stream"] === true);
    const send: Send = {
      requestId,
      attempt: request.attempt,
      number,
      atMs: this.#clock.now(),
      protocol,
      script,
      body: null,
    };
    this.sends.push(send);
    const delayMs = script.kind === "silence" ? request.firstByteTimeoutMs : script.headDelayMs;
    if (delayMs > 0) await this.#clock.sleepUntil(send.atMs + delayMs, signal);
    if (signal.aborted) return { ok: false, evidence: CLIENT_CANCELLED };
    switch (script.kind) {
      case "silence":
        return { ok: false, evidence: transport("first_byte_timeout") };
      case "no_head":
        // Only a connection of the pool can have died while it lay idle.
        return { ok: false, evidence: transport(script.cause, script.pooled && !request.fresh) };
      case "refusal":
        return {
          ok: true,
          response: this.#respond(request, send, script.status, script.headers, {
            chunks: [{ bytes: new TextEncoder().encode(script.text), delayMs: 0 }],
            end: "close",
            endDelayMs: 0,
          }, signal),
        };
      case "stream":
        return {
          ok: true,
          response: this.#respond(
            request,
            send,
            200,
            { "content-type": "text/event-stream" },
            script,
            signal,
          ),
        };
      case "document": {
        const type = script.says === "page" ? "text/html" : "application/json";
        const response = this.#respond(request, send, 200, { "content-type": type }, script, signal);
        return { ok: true, response: { ...response, contentLength: script.length } };
      }
    }
  }

  /** Whoever used it afterwards would send nonsense. */
  forget(body: Bytes): void {
    body.fill(0x78);
  }

  bodyFailure(error: unknown): ReturnType<typeof readBodyFailure> {
    return readBodyFailure(error);
  }

  async readErrorBody(response: Pick<UpstreamResponse, "body">): Promise<Bytes> {
    return await response.body!.read() ?? new Uint8Array();
  }

  undoMissingLabel(whole: Bytes): Bytes {
    return whole;
  }

  close(): void {}

  #respond(
    request: UpstreamRequest,
    send: Send,
    status: number,
    headers: Readonly<Record<string, string>>,
    plan: BodyPlan,
    signal: AbortSignal,
  ): UpstreamResponse {
    send.body = new ScriptedBody(this.#clock, plan, signal);
    const all = new Headers({
      "content-type": "application/json",
      "x-attempt": String(send.number),
      ...headers,
    });
    const again = async (): Promise<AnswerBody | null> => {
      const result = await this.send(request, signal);
      return result.ok ? result.response.body : null;
    };
    return { status, headers: all, body: this.#bodyOf(send.body, send, again), contentLength: null };
  }
}

type BodyPlan = Pick<Extract<AttemptScript, { kind: "stream" }>, "chunks" | "end" | "endDelayMs">;

/** Bytes that come when they come, whether or not somebody reads: a network is not paced by its reader. */
export class ScriptedBody implements AnswerBody {
  /** Bytes a reader was given. */
  givenBytes = 0;
  lastGivenAtMs: number;
  /** The reader knows that nothing more comes. */
  isOver = false;
  cancelledAtMs: number | null = null;
  readonly #clock: Clock;
  readonly #plan: BodyPlan;
  readonly #signal: AbortSignal;
  readonly #dueAtMs: readonly number[];
  readonly #endAtMs: number;
  #next = 0;
  #rest: Bytes | null = null;
  #wake: (() => void) | null = null;

  constructor(clock: Clock, plan: BodyPlan, signal: AbortSignal) {
    this.#clock = clock;
    this.#plan = plan;
    this.#signal = signal;
    this.lastGivenAtMs = clock.now();
    let atMs = clock.now();
    this.#dueAtMs = plan.chunks.map(({ delayMs }) => atMs += delayMs);
    this.#endAtMs = plan.end === "hang" ? Infinity : atMs + plan.endDelayMs;
  }

  /** Nothing of it keeps its connection: it was read to its end, let go, or its exchange was aborted. */
  get isLetGo(): boolean {
    return this.isOver || this.cancelledAtMs !== null || this.#signal.aborted;
  }

  async read(into?: Bytes): Promise<Bytes | null> {
    const chunk = this.#rest ?? this.#plan.chunks[this.#next]?.bytes ?? null;
    if (this.#rest === null) {
      await this.#waitUntil(chunk === null ? this.#endAtMs : this.#dueAtMs[this.#next]!);
    }
    if (this.#signal.aborted) throw new AttemptEnded(CLIENT_CANCELLED);
    if (this.cancelledAtMs !== null) return null;
    if (chunk === null) {
      this.isOver = true;
      if (this.#plan.end === "reset") throw new BrokenConnection();
      return null;
    }
    if (this.#rest === null) this.#next++;
    const given = into === undefined ? chunk.slice() : into.subarray(0, Math.min(into.length, chunk.length));
    if (into !== undefined) given.set(chunk.subarray(0, given.length));
    this.#rest = given.length === chunk.length ? null : chunk.subarray(given.length);
    this.givenBytes += given.length;
    this.lastGivenAtMs = this.#clock.now();
    return given;
  }

  cancel(): void {
    this.cancelledAtMs ??= this.#clock.now();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Bytes> {
    for (let piece = await this.read(); piece !== null; piece = await this.read()) yield piece;
  }

  /** Returns at that moment, or earlier when the body is cancelled or its exchange aborted. */
  async #waitUntil(atMs: number): Promise<void> {
    if (atMs <= this.#clock.now() || this.cancelledAtMs !== null || this.#signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const scheduled: Scheduled | null = atMs === Infinity ? null : this.#clock.schedule(atMs, resolve);
    this.#wake = resolve;
    this.#signal.addEventListener("abort", resolve as () => void, { once: true });
    try {
      await promise;
    } finally {
      this.#wake = null;
      scheduled?.cancel();
      this.#signal.removeEventListener("abort", resolve as () => void);
    }
  }
}

function protocolOf(url: string): WireProtocol {
  const { pathname } = new URL(url);
  if (pathname.endsWith("/responses")) return "responses";
  if (pathname.endsWith("/messages")) return "messages";
  if (pathname.endsWith("/chat/completions")) return "chat";
  throw new Error(`Cannot play ${pathname}: nobody scripted it`);
}
