/** The clients of a soak: each asks with a number of its own and holds the answer against the ledger. */
import { LONG_INPUT } from "../support/long_input.ts";
import { type Opened, openWs } from "../support/ws_client.ts";
import { type Asked, type Ledger, paddingOf, readReceived, wordsOf } from "./ledger.ts";
import { ENDLESS_CHUNKS, type SoakUpstream } from "./upstream.ts";

/** Numbers from 0 up to 1, from a seed. */
export interface Chance {
  next(): number;
}

const KEY = "SENT-key-client-1";
const HEADERS = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
const TURNS_PER_SOCKET = 5;
/** As many as a team has open; each is bound to an account. */
const CONVERSATIONS = 40;
/** Far above what faults and waits of one request add up to. */
const ANSWER_LIMIT_MS = 90_000;
const LEAVING_LIMIT_MS = 5_000;
const BODY = { least: 1_000_000, span: 7_000_000 };

export interface ClientCounts {
  streams: number;
  whole: number;
  failedTold: number;
  refused: number;
  bodies: number;
  cancels: number;
  sockets: number;
  turns: number;
  turnsFailed: number;
  /** Requests that died with a killed process. */
  killedUnder: number;
}

export interface Life {
  /** Rises with every kill. */
  readonly number: number;
  readonly up: boolean;
  readonly over: boolean;
}

export class Clients {
  readonly counts: ClientCounts = {
    streams: 0,
    whole: 0,
    failedTold: 0,
    refused: 0,
    bodies: 0,
    cancels: 0,
    sockets: 0,
    turns: 0,
    turnsFailed: 0,
    killedUnder: 0,
  };
  readonly #url: string;
  readonly #ledger: Ledger;
  readonly #upstream: SoakUpstream;
  readonly #random: Chance;
  readonly #life: () => Life;

  constructor(url: string, ledger: Ledger, upstream: SoakUpstream, random: Chance, life: () => Life) {
    this.#url = url;
    this.#ledger = ledger;
    this.#upstream = upstream;
    this.#random = random;
    this.#life = life;
  }

  /** Runs one kind of client after the other until the time is over; while the process is down it waits. */
  async run(kind: "stream" | "body" | "cancel" | "socket"): Promise<void> {
    while (!this.#life().over) {
      if (!this.#life().up) {
        await pause(50);
        continue;
      }
      switch (kind) {
        case "stream":
          await this.#attempt(this.#draw(), (asked) => this.#stream(asked));
          await pause(50 + this.#random.next() * 150);
          break;
        case "body":
          await this.#attempt(this.#ledger.next(0, 0), (asked) => this.#body(asked));
          await pause(1_000);
          break;
        case "cancel":
          await this.#attempt(this.#ledger.next(ENDLESS_CHUNKS, 20), (asked) => this.#cancel(asked));
          await pause(200);
          break;
        case "socket":
          await this.#socket();
          await pause(200);
          break;
        default:
          return kind satisfies never;
      }
    }
  }

  /** One request; a connection may break only under a kill. */
  async #attempt(asked: Asked, once: (asked: Asked) => Promise<void>): Promise<void> {
    const life = this.#life().number;
    try {
      await once(asked);
    } catch (error) {
      this.#broken(asked, life, error);
    }
  }

  #broken(asked: Asked, life: number, error: unknown): void {
    this.#ledger.forget(asked);
    const now = this.#life();
    if (now.number === life && now.up) {
      this.#ledger.problem(`${asked.number} lost its connection: ${error}`);
    } else this.counts.killedUnder++;
  }

  async #stream(asked: Asked): Promise<void> {
    const answer = await this.#ask("/v1/responses", {
      instructions: wordsOf(asked),
      prompt_cache_key: `conversation-${asked.number % CONVERSATIONS}`,
      input: "hi",
      stream: true,
    });
    if (answer.status !== 200) return await this.#refused(asked, answer);
    this.counts.streams++;
    const got = readReceived(await answer.text());
    if (this.#ledger.received(asked, got) === "whole") this.counts.whole++;
    else this.counts.failedTold++;
  }

  async #body(asked: Asked): Promise<void> {
    const pad = paddingOf(asked.number, BODY.least + Math.floor(this.#random.next() * BODY.span));
    const answer = await this.#ask("/v1/responses/compact", { instructions: wordsOf(asked), input: [], pad });
    if (answer.status !== 200) return await this.#refused(asked, answer);
    const body = await answer.json();
    if (body.pad !== pad) this.#ledger.problem(`${asked.number}: ${pad.length} characters came back changed`);
    this.#ledger.forget(asked);
    this.counts.bodies++;
  }

  async #cancel(asked: Asked): Promise<void> {
    const abort = new AbortController();
    const answer = await this.#ask(
      "/v1/responses",
      { instructions: wordsOf(asked), input: LONG_INPUT, stream: true },
      abort.signal,
    );
    if (answer.status !== 200) return await this.#refused(asked, answer);
    const reader = answer.body!.getReader();
    await reader.read();
    abort.abort();
    await reader.cancel().catch(() => {});
    this.counts.cancels++;
    const life = this.#life().number;
    const seen = await this.#upstream.seesLeaving(asked, LEAVING_LIMIT_MS);
    if (!seen && life === this.#life().number) {
      this.#ledger.problem(`${asked.number}: its client left, and the upstream was not told`);
    }
    this.#ledger.forget(asked);
  }

  async #socket(): Promise<void> {
    const life = this.#life().number;
    const headers = { authorization: `Bearer ${KEY}` };
    const opened: Opened = await openWs(`${this.#url}/v1/responses`, { headers });
    if (!opened.ok) {
      const now = this.#life();
      if (opened.status !== 0) this.counts.refused++;
      else if (now.number === life && now.up) this.#ledger.problem("a handshake got no answer");
      return;
    }
    this.counts.sockets++;
    await using client = opened.client;
    for (let turn = 0; turn < TURNS_PER_SOCKET && !this.#life().over; turn++) {
      const asked = this.#draw();
      client.create({ instructions: wordsOf(asked) });
      let text = "";
      try {
        do text += await client.next() + "\n"; while (!isEnded(text));
      } catch (error) {
        // The provider breaks sockets too; then nothing says how a turn ends.
        if (this.#ledger.wasServed(asked) === "broken") this.#ledger.forget(asked);
        else this.#broken(asked, life, error);
        return;
      }
      client.forget();
      if (this.#ledger.received(asked, readReceived(text)) === "whole") this.counts.turns++;
      else this.counts.turnsFailed++;
    }
    await client.close();
  }

  #draw(): Asked {
    return this.#ledger.next(
      5 + Math.floor(this.#random.next() * 40),
      Math.floor(this.#random.next() * 25),
    );
  }

  #ask(path: string, fields: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
    const limit = AbortSignal.timeout(ANSWER_LIMIT_MS);
    return fetch(`${this.#url}${path}`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ model: "m1", ...fields }),
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
  }

  async #refused(asked: Asked, answer: Response): Promise<void> {
    const body = await answer.text();
    // A process on its way down says so, and nothing else is refused without a code.
    if (!body.includes('"code":"')) {
      this.#ledger.problem(`${asked.number} got ${answer.status} without a code: ${body.slice(0, 200)}`);
    }
    this.#ledger.refused(asked, answer.status);
    this.counts.refused++;
    await pause(100 + this.#random.next() * 400);
  }
}

function isEnded(text: string): boolean {
  return text.includes('"type":"response.completed"') || text.includes('"type":"response.failed"');
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
