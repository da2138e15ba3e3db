/** Plays a scripted reply over HTTP. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { Clock } from "../ports.ts";
import type { Bytes, WireConnection, WireRequest } from "./http_wire.ts";
import type { Hit } from "./simulated_provider.ts";
import type { Answer, Encoding, Reply } from "./simulated_reply.ts";
import type { Step } from "./simulated_steps.ts";

export interface ReplyContext {
  readonly connection: WireConnection;
  readonly hit: Hit;
  readonly clock: Pick<Clock, "now" | "sleepUntil">;
  /** When the last pause was due, UTC epoch ms. Pauses follow each other on this line, so that a coarse clock adds no drift. */
  dueAtMs: number;
}

/** @returns true when the connection may carry another request. */
export async function sendReply(request: WireRequest, reply: Reply, context: ReplyContext): Promise<boolean> {
  const { connection } = context;
  switch (reply.kind) {
    case "answer":
      return await sendAnswer(request, reply, context);
    case "no_head":
      if (reply.partialHead !== "") await connection.write(reply.partialHead);
      await finish(reply.end, context);
      return false;
    case "accept":
    case "dynamic":
      throw new TypeError(`Cannot send over HTTP: ${reply.kind}`);
    default: {
      const never: never = reply;
      return never;
    }
  }
}

async function sendAnswer(request: WireRequest, answer: Answer, context: ReplyContext): Promise<boolean> {
  const { connection } = context;
  const headers: Record<string, string> = { ...answer.headers };
  const label = answer.label === undefined ? answer.encoding : answer.label;
  if (label !== null) headers["content-encoding"] = label;
  const whole = answer.framing === "length" || answer.encoding !== null
    ? pack(await collect(answer.steps), answer.encoding)
    : null;
  if (answer.framing === "length") headers["content-length"] ??= String(whole?.length ?? 0);
  if (answer.framing === "chunked") headers["transfer-encoding"] = "chunked";
  if (answer.framing === "close") headers["connection"] = "close";
  await connection.write(renderHead(answer.status, headers));
  if (request.method === "HEAD" || answer.status === 204 || answer.status === 304) return true;
  const send = sender(answer, context);
  if (whole !== null) await send(whole);
  else if (!await playSteps(answer.steps, send, context)) return false;
  if (answer.framing === "chunked") await connection.write("0\r\n\r\n");
  return answer.framing !== "close" && !connection.gone;
}

/** @returns false when a step ended the connection. */
async function playSteps(
  steps: Iterable<Step>,
  send: (bytes: Bytes) => Promise<void>,
  context: ReplyContext,
): Promise<boolean> {
  for (const step of steps) {
    if (context.connection.gone) return false;
    switch (step.kind) {
      case "event":
      case "bytes":
        await send(renderStep(step));
        break;
      case "delay":
      case "gate":
        await pause(step, context);
        break;
      case "fin":
      case "rst":
      case "hold":
        await finish(step.kind, context);
        return false;
      default:
        throw new TypeError(`Cannot play over HTTP: ${step.kind}`);
    }
  }
  return true;
}

/** Waits out a pause; ends early when the peer left, which it also does when the provider closes. */
export async function pause(
  step: Extract<Step, { kind: "delay" | "gate" }>,
  context: ReplyContext,
): Promise<void> {
  const { clock, connection } = context;
  if (step.kind === "delay") context.dueAtMs = Math.max(context.dueAtMs + step.ms, clock.now());
  await connection.unlessLeft((resolve) => {
    const stop = new AbortController();
    const waited = step.kind === "gate" ? step.opened : clock.sleepUntil(context.dueAtMs, stop.signal);
    waited.then(resolve, resolve);
    return () => stop.abort();
  });
  // What a gate took is not made up for by hurrying.
  if (step.kind === "gate") context.dueAtMs = clock.now();
}

export async function finish(end: "fin" | "rst" | "hold", context: ReplyContext): Promise<void> {
  const { connection } = context;
  if (end === "rst") connection.reset();
  if (end === "hold") await connection.left;
  if (end === "fin") connection.finish();
}

/** Writes body bytes in the answer's framing and pieces. */
function sender(answer: Answer, context: ReplyContext): (bytes: Bytes) => Promise<void> {
  const { connection } = context;
  const frame = async (bytes: Bytes) => {
    if (answer.framing !== "chunked") return await connection.write(bytes);
    if (bytes.length === 0) return;
    const size = new TextEncoder().encode(`${bytes.length.toString(16)}\r\n`);
    const framed = new Uint8Array(size.length + bytes.length + 2);
    framed.set(size);
    framed.set(bytes, size.length);
    framed.set([13, 10], size.length + bytes.length);
    await connection.write(framed);
  };
  const { pieces } = answer;
  if (pieces === null) return frame;
  return async (bytes) => {
    for (let at = 0; at < bytes.length && !connection.gone; at += pieces.bytes) {
      await frame(bytes.slice(at, at + pieces.bytes));
      if (pieces.everyMs > 0) await pause({ kind: "delay", ms: pieces.everyMs }, context);
    }
  };
}

function renderHead(status: number, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Simulated\r\n${lines.join("")}\r\n`;
}

function renderStep(step: Extract<Step, { kind: "event" | "bytes" }>): Bytes {
  if (step.kind === "bytes") return step.bytes;
  const name = step.name === null ? "" : `event: ${step.name}\n`;
  return new TextEncoder().encode(`${name}data: ${step.data}\n\n`);
}

async function collect(steps: Iterable<Step>): Promise<Bytes> {
  const parts: Bytes[] = [];
  for (const step of steps) {
    if (step.kind !== "event" && step.kind !== "bytes") {
      throw new TypeError(`Cannot measure or pack an answer with a step of kind ${step.kind}`);
    }
    parts.push(renderStep(step));
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function pack(body: Bytes, encoding: Encoding | null): Bytes {
  switch (encoding) {
    case null:
      return body;
    case "gzip":
      return new Uint8Array(gzipSync(body));
    case "br":
      return new Uint8Array(brotliCompressSync(body));
    case "zstd":
      return new Uint8Array(zstdCompressSync(body));
    case "deflate":
      return new Uint8Array(deflateSync(body));
    case "gzip, br":
      return new Uint8Array(brotliCompressSync(gzipSync(body)));
    default: {
      const never: never = encoding;
      return never;
    }
  }
}
