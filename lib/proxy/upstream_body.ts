/**
 * The bytes of a client's request as one upstream takes them, made once per provider and model.
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { Launch } from "../core/retry_plan.ts";
import type { Ids, Upstream } from "../ports.ts";
import { editTopLevel, type JsonEdit, type JsonMember } from "../protocol/json_scan.ts";
import { parseObject } from "../protocol/translate/json.ts";
import { withoutForeignCarriers } from "../protocol/translate/foreign_carriers.ts";
import type { OutgoingRequest } from "../providers/provider.ts";
import type { ProviderEntry } from "./deps.ts";
import type { RequestBody } from "./request_body.ts";
import type { RequestContext } from "./request_context.ts";
import { type AnswerTranslating, translateRequest, translatorOf } from "./translation.ts";

export type PreparedBody =
  | {
    readonly ok: true;
    readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;
    readonly length: number | null;
    /** Null where the answer goes back as it comes. */
    readonly answer: AnswerTranslating | null;
  }
  | { readonly ok: false; readonly status: 400 | 413; readonly reason: string };

const CACHE = new WeakMap<RequestContext, Map<string, PreparedBody>>();

export function prepareBody(
  context: RequestContext,
  launch: Launch,
  entry: ProviderEntry,
  outgoing: OutgoingRequest,
  ids: Ids,
  nowMs: number,
): PreparedBody {
  const { body, fields } = context;
  const translator = translatorOf(context.protocol, outgoing.protocol);
  if (translator === null) {
    if (body.kind === "none") return { ok: true, body: null, length: null, answer: null };
    if (body.kind === "stream") return { ok: true, body: body.stream, length: body.length, answer: null };
    if (fields === null) return { ok: true, body: body.bytes, length: body.bytes.length, answer: null };
  }
  const key = `${launch.provider}\0${launch.model ?? ""}\0${
    launch.cause === "strip_state" ? "stripped" : ""
  }`;
  const known = CACHE.get(context)?.get(key);
  if (known !== undefined) return known;
  const prepared = translator === null ? fitOwn(context, launch, entry, outgoing) : fitTranslated(
    translateRequest(context, launch, entry, translator, ids, nowMs),
    launch,
    entry,
    outgoing,
  );
  let cached = CACHE.get(context);
  if (cached === undefined) CACHE.set(context, cached = new Map());
  cached.set(key, prepared);
  return prepared;
}

/** Nobody will send or read it any more. */
export function forgetBody(body: RequestBody, upstream: Upstream): void {
  if (body.kind === "bytes") upstream.forget(body.bytes);
}

/** Nothing of this request is sent any more: neither what the client sent nor what was made of it is kept. */
export function letGoOfBody(context: RequestContext, upstream: Upstream): void {
  forgetBody(context.body, upstream);
  for (const prepared of CACHE.get(context)?.values() ?? []) {
    if (prepared.ok && prepared.body instanceof Uint8Array) upstream.forget(prepared.body);
  }
  context.body = { kind: "none" };
  CACHE.delete(context);
}

function fitOwn(
  context: RequestContext,
  launch: Launch,
  entry: ProviderEntry,
  outgoing: OutgoingRequest,
): PreparedBody {
  const { body, fields } = context;
  if (body.kind !== "bytes" || fields === null) throw new Error("Cannot fit a body that was not read");
  let bytes = body.bytes;
  if (launch.model !== null && fields.model !== launch.model) {
    const edit: JsonEdit = { key: "model", json: JSON.stringify(launch.model) };
    bytes = editTopLevel(bytes, fields.members, [edit]);
  }
  // A conversation that was elsewhere before brings that provider's sealed reasoning in our own wrapping.
  const own = outgoing.protocol === "raw" || !fields.mayCarry
    ? bytes
    : withoutForeignCarriers(outgoing.protocol, bytes);
  return fitted(own, null, launch, entry, outgoing, own === body.bytes ? fields.members : null);
}

function fitTranslated(
  translated: ReturnType<typeof translateRequest>,
  launch: Launch,
  entry: ProviderEntry,
  outgoing: OutgoingRequest,
): PreparedBody {
  if (!translated.ok) return translated;
  return fitted(translated.request.body, translated.request.answer, launch, entry, outgoing);
}

function fitted(
  bytes: Uint8Array<ArrayBuffer>,
  answer: AnswerTranslating | null,
  launch: Launch,
  entry: ProviderEntry,
  outgoing: OutgoingRequest,
  members: readonly JsonMember[] | null = null,
): PreparedBody {
  const clean = launch.cause === "strip_state" ? stripForeignReasoning(bytes) : bytes;
  const body = entry.descriptor.fitBody(clean, outgoing, clean === bytes ? members : null);
  return { ok: true, body, length: body.length, answer };
}

/** The protocol a provider is asked in for this client. */
export function upstreamProtocolOf(context: RequestContext, entry: ProviderEntry): ClientProtocol {
  return entry.descriptor.upstreamProtocol(context.protocol, entry.settings);
}

/**
 * Removes reasoning items whose encrypted content another account made (ruling 8). Rare, so the whole body is parsed.
 */
export function stripForeignReasoning(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const json = parseObject(new TextDecoder().decode(bytes));
  if (json === null || !Array.isArray(json["input"])) return bytes;
  const kept = json["input"].filter((item: unknown) => !isForeignState(item));
  if (kept.length === json["input"].length) return bytes;
  return new TextEncoder().encode(JSON.stringify({ ...json, input: kept }));
}

function isForeignState(item: unknown): boolean {
  if (typeof item !== "object" || item === null) return false;
  const { type, encrypted_content: encrypted } = item as { type?: unknown; encrypted_content?: unknown };
  return typeof encrypted === "string" && (type === "reasoning" || type === "compaction");
}
