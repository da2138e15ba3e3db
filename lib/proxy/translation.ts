/**
 * Where client and upstream speak different protocols: the request's translation, and what its answer needs of it.
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { Launch } from "../core/retry_plan.ts";
import { targetOf } from "../protocol/translate/targets.ts";
import { translatorFor } from "../protocol/translate/compose.ts";
import { type JsonObject, parseObject } from "../protocol/translate/json.ts";
import type {
  AnswerContext,
  TranslateContext,
  TranslatedProtocol,
  Translator,
} from "../protocol/translate/translator.ts";
import type { Ids } from "../ports.ts";
import type { ProviderEntry } from "./deps.ts";
import type { RequestContext } from "./request_context.ts";

export interface TranslatedRequest {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly answer: AnswerTranslating;
}

/** What turns this upstream's answers into the client's. */
export interface AnswerTranslating {
  readonly translator: Translator;
  readonly context: AnswerContext;
  /** What was changed or left out, in words without any text of the conversation. */
  readonly notes: readonly string[];
}

export type RequestTranslating =
  | { readonly ok: true; readonly request: TranslatedRequest }
  /** In words for the client: which part cannot be carried, or why the body cannot be read. */
  | { readonly ok: false; readonly status: 400 | 413; readonly reason: string };

/** @returns `null` where both speak the same, or the route's bodies are not looked into. */
export function translatorOf(client: ClientProtocol, upstream: ClientProtocol): Translator | null {
  if (client === "raw" || upstream === "raw") return null;
  return translatorFor(client satisfies TranslatedProtocol, upstream satisfies TranslatedProtocol);
}

export function translateRequest(
  context: RequestContext,
  launch: Launch,
  entry: ProviderEntry,
  translator: Translator,
  ids: Ids,
  nowMs: number,
): RequestTranslating {
  if (context.body.kind !== "bytes") {
    return {
      ok: false,
      status: 413,
      reason: "The request body is too large to be translated for this provider",
    };
  }
  const body = parseObject(new TextDecoder().decode(context.body.bytes));
  if (body === null) return { ok: false, status: 400, reason: "The request body is not a JSON object" };
  const clientModel = context.fields?.model ?? "";
  const translateContext: TranslateContext = {
    clientModel,
    upstreamModel: launch.model ?? clientModel,
    target: targetOf(entry.descriptor.kind, entry.settings.baseUrl),
    nowMs,
    newId: (prefix) => `${prefix}_${ids.secret(12)}`,
  };
  const translated = translator.request(body, translateContext);
  if (!translated.ok) {
    return { ok: false, status: 400, reason: `Cannot carry ${translated.part}: ${translated.reason}` };
  }
  return {
    ok: true,
    request: {
      body: encode(translated.body),
      answer: {
        translator,
        context: { ...translateContext, memory: translated.memory },
        notes: translated.notes,
      },
    },
  };
}

export function encode(json: JsonObject): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(json));
}
