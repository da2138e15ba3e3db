/** Answers that never saw a connection, as their client would read them. */
import type { ByteSource } from "../../lib/ports.ts";
import type { Answer } from "../../lib/proxy/answer.ts";

export function sourceOf({ body }: Answer): ByteSource {
  if (body !== null && !(body instanceof Uint8Array)) return body;
  let rest = body;
  return {
    read() {
      const taken = rest;
      rest = null;
      return Promise.resolve(taken);
    },
    cancel() {
      rest = null;
    },
  };
}

export async function readText(source: ByteSource): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (let piece = await source.read(); piece !== null; piece = await source.read()) {
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

// deno-lint-ignore no-explicit-any -- JSON as a client would read it
export async function readJson(answer: Answer): Promise<any> {
  return JSON.parse(await readText(sourceOf(answer)));
}
