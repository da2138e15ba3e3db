/**
 * The bytes of a client's request as one upstream takes them, made once per provider and model.
 */
import type { Launch } from "../core/retry_plan.ts";
import { editTopLevel, type JsonEdit } from "../protocol/json_scan.ts";
import type { OutgoingRequest } from "../providers/provider.ts";
import type { ProviderEntry } from "./deps.ts";
import type { RequestContext } from "./request_context.ts";

export type PreparedBody =
  | {
    readonly ok: true;
    readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;
    readonly length: number | null;
  }
  | { readonly ok: false; readonly problem: string };

const CACHE = new WeakMap<RequestContext, Map<string, Uint8Array<ArrayBuffer>>>();

export function prepareBody(
  context: RequestContext,
  launch: Launch,
  entry: ProviderEntry,
  outgoing: OutgoingRequest,
): PreparedBody {
  const { body, fields } = context;
  if (body.kind === "none") return { ok: true, body: null, length: null };
  if (body.kind === "stream") return { ok: true, body: body.stream, length: body.length };
  if (fields === null) return { ok: true, body: body.bytes, length: body.bytes.length };
  const key = `${launch.provider}\0${launch.model ?? ""}\0${
    launch.cause === "strip_state" ? "stripped" : ""
  }`;
  const known = CACHE.get(context)?.get(key);
  if (known !== undefined) return { ok: true, body: known, length: known.length };
  let bytes = body.bytes;
  if (launch.model !== null && fields.model !== launch.model) {
    const edit: JsonEdit = { key: "model", json: JSON.stringify(launch.model) };
    bytes = editTopLevel(bytes, fields.members, [edit]);
  }
  if (launch.cause === "strip_state") bytes = stripForeignReasoning(bytes);
  bytes = entry.descriptor.fitBody(bytes, outgoing);
  if (bytes !== body.bytes) {
    let cached = CACHE.get(context);
    if (cached === undefined) CACHE.set(context, cached = new Map());
    cached.set(key, bytes);
  }
  return { ok: true, body: bytes, length: bytes.length };
}

/**
 * Removes reasoning items whose encrypted content another account made (ruling 8). Rare, so the whole body is parsed.
 */
export function stripForeignReasoning(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const json = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
  if (!Array.isArray(json.input)) return bytes;
  const kept = json.input.filter((item: unknown) => !isForeignState(item));
  if (kept.length === json.input.length) return bytes;
  return new TextEncoder().encode(JSON.stringify({ ...json, input: kept }));
}

function isForeignState(item: unknown): boolean {
  if (typeof item !== "object" || item === null) return false;
  const { type, encrypted_content: encrypted } = item as { type?: unknown; encrypted_content?: unknown };
  return typeof encrypted === "string" && (type === "reasoning" || type === "compaction");
}
