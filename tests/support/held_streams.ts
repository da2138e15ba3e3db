/** Answer streams without a network: chunks handed in by the test, relayed to whoever reads. */
import type { Evidence } from "../../lib/core/evidence.ts";
import { responsesDialect } from "../../lib/protocol/responses.ts";
import { AnswerStream } from "../../lib/proxy/answer_stream.ts";
import { bodyFrom } from "./answer_bodies.ts";

const ENCODER = new TextEncoder();

export const BROKEN: Evidence = { kind: "transport", cause: "reset_in_body", pooled: false };

/** Events of a Responses stream as text. */
export function sse(type: string, fields: Record<string, unknown> = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export const CREATED = sse("response.created", { response: { id: "resp_1", status: "in_progress" } });
export const COMPLETED = sse("response.completed", { response: { id: "resp_1", status: "completed" } });
export const FAILED = sse("response.failed", {
  response: { id: "resp_1", status: "failed", error: { code: "server_error", message: "x" } },
});
export const UNKNOWN = sse("response.zz_new", { zz: 1 });

export function textDelta(text: string): string {
  return sse("response.output_text.delta", { delta: text });
}

/** An upstream body the test feeds by hand. */
export class FedStream {
  readonly stream: AnswerStream;
  cancelled = false;
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;

  constructor() {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => void (this.#controller = controller),
      cancel: () => void (this.cancelled = true),
    });
    this.stream = new AnswerStream({
      body: bodyFrom(body),
      headers: new Headers(),
      dialect: responsesDialect,
      translation: null,
      observer: { quota: () => {} },
      bodyFailure: () => BROKEN,
    });
  }

  /** As a network read comes: a view at the head of a buffer of its own. */
  feed(...chunks: readonly string[]): this {
    for (const chunk of chunks) this.#controller.enqueue(ENCODER.encode(chunk));
    return this;
  }

  end(): this {
    this.#controller.close();
    return this;
  }

  break(): this {
    this.#controller.error(new Error("broken"));
    return this;
  }
}

/** A stream whose body is over: these chunks, then the end. */
export function fed(...chunks: readonly string[]): AnswerStream {
  return new FedStream().feed(...chunks).end().stream;
}

export function textOf(pieces: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
}
