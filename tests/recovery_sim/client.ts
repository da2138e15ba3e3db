/** One client: asks, reads at its own pace, and may leave at any moment. */
import { joinBytes } from "../../lib/proxy/answer_stream.ts";
import { CLIENT_KEY, MODELS, type SceneStream } from "./scene.ts";
import type { WireProtocol } from "./wire_events.ts";
import type { World } from "./world.ts";
import type { HeaderFields } from "../../lib/core/header_fields.ts";
import type { ByteSource } from "../../lib/ports.ts";
import { type ClientRequest, ownRequest } from "../../lib/proxy/client_request.ts";
import { sourceOf } from "../support/answers.ts";

export interface ClientResult {
  readonly stream: SceneStream;
  requestId: string;
  status: number | null;
  headers: HeaderFields | null;
  /** When it had the head of its answer. */
  answeredAtMs: number | null;
  bytes: Uint8Array<ArrayBuffer>;
  /** `whole`: the body ended; `left`: it went; `broke`: the body threw. */
  end: "whole" | "left" | "broke" | null;
  leftAtMs: number | null;
  /** Sends of its request when the head came: none may follow. */
  sendsWhenAnswered: number;
  /** What the upstream's last body had given when the head came. */
  givenWhenAnswered: number;
  bodyOverWhenAnswered: boolean;
}

/** @param named  told the id of its request before anything is sent for it. */
export async function runClient(
  world: World,
  stream: SceneStream,
  named: (requestId: string) => void,
): Promise<ClientResult> {
  const { clock } = world;
  const result: ClientResult = {
    stream,
    requestId: "",
    status: null,
    headers: null,
    answeredAtMs: null,
    bytes: new Uint8Array(),
    end: null,
    leftAtMs: null,
    sendsWhenAnswered: 0,
    givenWhenAnswered: 0,
    bodyOverWhenAnswered: false,
  };
  if (stream.arrivesAtMs > 0) await clock.sleepUntil(clock.now() + stream.arrivesAtMs, null);
  const abort = new AbortController();
  let body: ByteSource | null = null;
  const leave = (): void => {
    if (result.end !== null) return;
    result.end = "left";
    result.leftAtMs = clock.now();
    // A connection that closes does both: the request is aborted, and so is the body of its answer.
    abort.abort();
    body?.cancel();
  };
  const { leaving } = stream;
  const timer = leaving.kind === "after" ? clock.schedule(clock.now() + leaving.ms, leave) : null;
  const answering = world.handler(makeRequest(stream, abort.signal));
  result.requestId = world.requestIds.at(-1)!;
  named(result.requestId);
  const answer = await answering;
  const source = sourceOf(answer);
  const ended = () => result.end !== null;
  if (ended()) {
    source.cancel();
    return result;
  }
  result.status = answer.status;
  result.headers = answer.headers;
  result.answeredAtMs = clock.now();
  const sends = world.upstream.sends.filter(({ requestId }) => requestId === result.requestId);
  result.sendsWhenAnswered = sends.length;
  result.givenWhenAnswered = sends.at(-1)?.body?.givenBytes ?? 0;
  result.bodyOverWhenAnswered = sends.at(-1)?.body?.isOver ?? false;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  body = source;
  try {
    for (let count = 0; !ended();) {
      if (leaving.kind === "at_bytes" && count >= leaving.bytes) {
        leave();
        break;
      }
      const piece = await source.read();
      if (ended()) break;
      if (piece === null) {
        result.end = "whole";
        break;
      }
      pieces.push(piece);
      count += piece.length;
      if (stream.readPauseMs > 0) await clock.sleepUntil(clock.now() + stream.readPauseMs, abort.signal);
    }
  } catch {
    if (!ended()) result.end = "broke";
  } finally {
    timer?.cancel();
  }
  result.bytes = pieces.length === 0 ? new Uint8Array() : joinBytes(pieces);
  return result;
}

const PATHS: Readonly<Record<WireProtocol, string>> = {
  responses: "/v1/responses",
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
};

function makeRequest(stream: SceneStream, signal: AbortSignal): ClientRequest {
  const body = new TextEncoder().encode(JSON.stringify({
    model: MODELS[stream.provider],
    ...ASKS[stream.client],
    ...(stream.wantsStream ? { stream: true } : {}),
  }));
  return {
    ...ownRequest("POST", PATHS[stream.client], body, {
      authorization: `Bearer ${CLIENT_KEY}`,
      "content-type": "application/json",
      "content-length": String(body.length),
    }),
    whenLeft: (callback) => signal.addEventListener("abort", callback, { once: true }),
  };
}

const ASKS: Readonly<Record<WireProtocol, Record<string, unknown>>> = {
  responses: { input: "hi" },
  chat: { messages: [{ role: "user", content: "hi" }] },
  messages: { max_tokens: 64, messages: [{ role: "user", content: "hi" }] },
};
