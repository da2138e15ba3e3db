/**
 * Reads a client's body by ruling 18 and looks at the few fields a rule needs, without parsing it whole.
 */
import { freeBytes } from "../core/byte_memory.ts";
import { REPLAY_BODY_LIMIT_BYTES } from "../core/domain.ts";
import { borrowBytes, returnBytes } from "../core/spare_buffers.ts";
import type { ByteSource, Inflate } from "../ports.ts";
import {
  findMember,
  findNested,
  type JsonMember,
  readBooleanValue,
  readStringValue,
  scanTopLevel,
} from "../protocol/json_scan.ts";
import { BodyPace, type BodyWatch, TOO_SLOW, type TooSlow } from "./body_pace.ts";
import type { ClientRequest } from "./client_request.ts";

export type RequestBody =
  | { readonly kind: "none" }
  /** In memory; `known` tells whether the client declared the length (only then it may be replayed). */
  | { readonly kind: "bytes"; readonly bytes: Uint8Array<ArrayBuffer>; readonly known: boolean }
  /** Larger than the limit: sent once, unchanged, unlooked at. */
  | {
    readonly kind: "stream";
    readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
    readonly length: number | null;
  };

export type BodyProblem =
  | "bad_length"
  | "aborted"
  | "too_slow"
  | "unknown_coding"
  | "corrupt_coding"
  | "too_large";

export type BodyResult =
  | {
    readonly ok: true;
    readonly body: RequestBody; /** Content coding was undone: the header must go. */
    readonly decoded: boolean;
  }
  | { readonly ok: false; readonly problem: BodyProblem };

export interface BodyReading {
  readonly inflate: Inflate;
  readonly watch: BodyWatch;
  /** `timeouts.request-body-seconds`, in ms. */
  readonly graceMs: number;
  /** False for multipart and other bodies nobody looks into: an unknown length is then streamed at once. */
  readonly mustInspect: boolean;
  /** Called when the client turns out too slow in a body that is streamed: it breaks then. */
  readonly tooSlow: () => void;
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Reads the body of a request. */
export async function readRequestBody(request: ClientRequest, reading: BodyReading): Promise<BodyResult> {
  const { body, headers } = request;
  if (body === null) return { ok: true, body: { kind: "none" }, decoded: false };
  const declared = headers.get("content-length");
  const coding = headers.get("content-encoding");
  let length: number | null = null;
  if (declared !== null) {
    if (!/^[0-9]{1,15}$/.test(declared)) return { ok: false, problem: "bad_length" };
    length = Number(declared);
  }
  const pace = new BodyPace(reading.watch, reading.graceMs);
  if (length !== null && length <= REPLAY_BODY_LIMIT_BYTES) {
    const bytes = borrowBytes(length);
    let came: number | TooSlow;
    try {
      came = await pace.wait(body.whole(bytes, pace));
    } catch {
      returnBytes(bytes);
      return { ok: false, problem: "aborted" };
    }
    // Whatever still comes is put into them: they go to nobody else.
    if (came === TOO_SLOW) return { ok: false, problem: "too_slow" };
    if (came !== length) {
      returnBytes(bytes);
      return { ok: false, problem: "bad_length" };
    }
    return decodeBody(bytes, true, coding, reading.inflate);
  }
  const compressed = coding !== null && coding !== "" && coding !== "identity";
  if (length !== null || (!reading.mustInspect && !compressed)) {
    // A compressed body over the limit cannot be looked into, and cannot be smaller once inflated.
    if (compressed) return { ok: false, problem: "too_large" };
    const stream = paced([], body, pace, reading.tooSlow);
    return { ok: true, body: { kind: "stream", stream, length }, decoded: false };
  }
  return await readUnknownLength(body, coding, pace, reading);
}

/** Reads up to the limit; what turns out longer is streamed on as prefix plus rest. */
async function readUnknownLength(
  source: ByteSource,
  coding: string | null,
  pace: BodyPace,
  reading: BodyReading,
): Promise<BodyResult> {
  const chunks: Bytes[] = [];
  let total = 0;
  try {
    for (;;) {
      const part = await pace.wait(source.read());
      if (part === TOO_SLOW) {
        source.cancel();
        return { ok: false, problem: "too_slow" };
      }
      if (part === null) break;
      chunks.push(part);
      pace.count(part.length);
      total += part.length;
      if (total > REPLAY_BODY_LIMIT_BYTES) {
        if (coding !== null && coding !== "identity") {
          source.cancel();
          return { ok: false, problem: "too_large" };
        }
        return {
          ok: true,
          body: { kind: "stream", stream: paced(chunks, source, pace, reading.tooSlow), length: null },
          decoded: false,
        };
      }
    }
  } catch {
    return { ok: false, problem: "aborted" };
  }
  const bytes = concat(chunks, total, borrowBytes(total));
  for (const chunk of chunks) freeBytes(chunk);
  return decodeBody(bytes, false, coding, reading.inflate);
}

async function decodeBody(
  bytes: Uint8Array<ArrayBuffer>,
  known: boolean,
  coding: string | null,
  inflate: Inflate,
): Promise<BodyResult> {
  if (coding === null || coding === "" || coding === "identity") {
    return { ok: true, body: { kind: "bytes", bytes, known }, decoded: false };
  }
  const plain = await inflate.decode(bytes, coding, REPLAY_BODY_LIMIT_BYTES);
  if (!plain.ok || plain.bytes.buffer !== bytes.buffer) returnBytes(bytes);
  if (plain.ok) return { ok: true, body: { kind: "bytes", bytes: plain.bytes, known }, decoded: true };
  switch (plain.problem) {
    case "unknown_coding":
      return { ok: false, problem: "unknown_coding" };
    case "too_large":
      return { ok: false, problem: "too_large" };
    case "corrupt":
      return { ok: false, problem: "corrupt_coding" };
  }
}

/** What was read already, then the rest as it comes, at the pace a client must keep. */
function paced(
  chunks: Bytes[],
  source: ByteSource,
  pace: BodyPace,
  tooSlow: () => void,
): ReadableStream<Bytes> {
  return new ReadableStream({
    async pull(controller) {
      const first = chunks.shift();
      if (first !== undefined) return controller.enqueue(first);
      const part = await pace.wait(source.read());
      if (part === TOO_SLOW) {
        source.cancel();
        tooSlow();
        controller.error(new DOMException("The request body did not come in time", "TimeoutError"));
      } else if (part === null) controller.close();
      else {
        pace.count(part.length);
        controller.enqueue(part);
      }
    },
    cancel: () => source.cancel(),
  }, { highWaterMark: 0 });
}

/** @param into  of that length; without it one chunk alone is given back as it is. */
export function concat(chunks: readonly Bytes[], total: number, into?: Bytes): Bytes {
  if (into === undefined && chunks.length === 1) return chunks[0]!;
  const whole = into ?? new Uint8Array(total);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** The fields of a JSON body that rules ask for. */
export interface BodyFields {
  readonly members: readonly JsonMember[];
  /** See `JsonScan`. */
  readonly mayCarry: boolean;
  readonly model: string | null;
  readonly stream: boolean;
  readonly effort: string | null;
  readonly previousResponseId: string | null;
  /** Session signals of wire-facts 5.3, raw: never logged, hashed at once. */
  readonly sessionId: string | null;
  readonly promptCacheKey: string | null;
  readonly conversationId: string | null;
  readonly metadataUserId: string | null;
}

export type FieldsResult =
  | { readonly ok: true; readonly fields: BodyFields }
  | { readonly ok: false; readonly problem: string };

/** Looks at a JSON object's top level. `problem` is in our words with the byte offset, never the body's text. */
export function readBodyFields(bytes: Uint8Array<ArrayBuffer>): FieldsResult {
  const scan = scanTopLevel(bytes);
  if (!scan.ok) return { ok: false, problem: `${scan.problem} at byte ${scan.at}` };
  const members = scan.members;
  const find = (key: string): JsonMember | null => findMember(members, key);
  const text = (member: JsonMember | null): string | null => readStringValue(bytes, member);
  const conversation = find("conversation");
  // Conflicting spellings of one signal drop it: neither can be trusted.
  const sessions = new Set(
    members.filter(({ key }) => key === "session_id" || key === "sessionId").map(text),
  );
  return {
    ok: true,
    fields: {
      members,
      mayCarry: scan.mayCarry,
      model: text(find("model")),
      stream: readBooleanValue(bytes, find("stream")) === true,
      effort: text(find("reasoning_effort")) ?? text(findNested(bytes, find("reasoning"), "effort")),
      previousResponseId: text(find("previous_response_id")),
      sessionId: sessions.size === 1 ? [...sessions][0]! : null,
      promptCacheKey: text(find("prompt_cache_key")),
      conversationId: text(find("conversation_id")) ?? text(conversation) ??
        text(findNested(bytes, conversation, "id")),
      metadataUserId: text(findNested(bytes, find("metadata"), "user_id")),
    },
  };
}
