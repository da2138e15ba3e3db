/**
 * Answers that are one JSON document: read whole before commit up to 8 MiB, so that a cut one can still be retried
 * (ruling 10); larger ones stream.
 */
import type { ClientProtocol } from "../core/domain.ts";
import type { Evidence } from "../core/evidence.ts";
import { HeaderFields } from "../core/header_fields.ts";
import type { AnswerBody, UpstreamResponse } from "../ports.ts";
import { hasErrorObject, readErrorValue } from "../protocol/error_body.ts";
import { findMember, scanTopLevel } from "../protocol/json_scan.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import { readChatUsage, readMessagesUsage, readResponsesUsage } from "../protocol/token_usage.ts";
import type { JsonObject } from "../protocol/translate/json.ts";
import {
  answerHeaders,
  type Attempting,
  type AttemptInput,
  type AttemptResult,
  SUCCESS,
} from "./attempt_runner.ts";
import type { ProxyDeps } from "./deps.ts";
import { FellSilent, limitSilence, readWhole, streamBody, type WholeBody } from "./answer_body.ts";
import { failOpen, withholdingSlot } from "./recovery.ts";
import { evidenceOf } from "./stream_answer.ts";
import { isEndedByShutdown } from "./request_context.ts";
import { encode } from "./translation.ts";
import { Answer } from "./answer.ts";

export const WHOLE_ANSWER_LIMIT_BYTES = 8_388_608;

export async function readWholeAnswer(
  deps: ProxyDeps,
  input: AttemptInput,
  attempting: Attempting,
  response: UpstreamResponse,
): Promise<AttemptResult> {
  const { context, launch, plan } = input;
  const headers = answerHeaders(attempting, response, context.id);
  if (context.method === "HEAD" || response.status === 204) {
    input.hooks.commit(launch);
    input.hooks.finished(launch, SUCCESS, response.status, null);
    return { kind: "committed", response: new Answer(null, { status: response.status, headers }) };
  }
  if (response.body === null) return attempting.fail({ kind: "malformed", detail: "no_body" });
  const source = limitSilence(response.body, deps.clock, deps.config().timeouts.idleMs);
  let read: WholeBody;
  try {
    read = await readWhole(
      source,
      response.contentLength,
      WHOLE_ANSWER_LIMIT_BYTES,
      noteHeld(deps, input),
    );
  } catch (error) {
    return attempting.fail(failureOf(deps, error));
  }
  if (!read.whole) {
    if (attempting.answer === null) return streamOn(deps, input, response, headers, source, read.begun);
    // What has to be translated cannot stream on.
    response.body.cancel();
    return attempting.fail({ kind: "malformed", detail: "answer_too_large" });
  }
  const bytes = deps.upstream.undoMissingLabel(read.bytes, WHOLE_ANSWER_LIMIT_BYTES);
  const problem = checkDocument(bytes, attempting.upstreamProtocol);
  if (problem.kind === "malformed") return attempting.fail({ kind: "malformed", detail: problem.detail });
  if (problem.kind === "error") {
    const error = readErrorValue(problem.json);
    const relay = {
      kind: "held" as const,
      headers: new HeaderFields(),
      held: [],
      failureFrame: null,
      facts: error,
    };
    return attempting.fail({ kind: "in_stream", error, headers: response.headers }, relay);
  }
  let body = bytes;
  if (attempting.answer !== null) {
    const document = parseSafely(bytes, 0, bytes.length) as JsonObject | null;
    // Scanned, not parsed until here: what lies deeper may be no JSON after all.
    if (document === null) return attempting.fail({ kind: "malformed", detail: "not_json" });
    const translated = attempting.answer.translator.answer(document, attempting.answer.context);
    if (!translated.ok) return attempting.fail(evidenceOf(translated.problem, response));
    body = encode(translated.body);
  }
  deps.pool.progress(plan, launch, "semantic", deps.clock.now());
  headers.set(
    "content-type",
    attempting.answer === null ? response.headers.get("content-type") ?? JSON_TYPE : JSON_TYPE,
  );
  input.hooks.commit(launch);
  input.hooks.finished(launch, SUCCESS, response.status, problem.usage);
  deps.traffic.bytesToClients += body.length;
  return { kind: "committed", response: new Answer(body, { status: response.status, headers }) };
}

const JSON_TYPE = "application/json";
const SILENT: Evidence = { kind: "transport", cause: "idle_timeout", pooled: false };

function failureOf(deps: ProxyDeps, error: unknown): Evidence {
  return error instanceof FellSilent ? SILENT : deps.upstream.bodyFailure(error);
}

/** Under recovery the bytes read so far are held back, and counted, up to its bound. */
function noteHeld(deps: ProxyDeps, input: AttemptInput): (readBytes: number) => void {
  const slot = withholdingSlot(input);
  const { maxBufferBytes } = deps.config().streaming.recovery;
  return (readBytes) => {
    if (slot === null || !slot.live) return;
    if (readBytes <= maxBufferBytes) return slot.hold(readBytes);
    failOpen(deps, input, "overflow");
    slot.release();
  };
}

type Document =
  | { readonly kind: "good"; readonly usage: TokenUsage | null }
  | { readonly kind: "error"; readonly json: unknown }
  | { readonly kind: "malformed"; readonly detail: string };

/**
 * Trouble dressed as a 200 (B045): a page, nothing, half a document, an error object, no choices.
 *
 * The document is scanned, not parsed: images make it large, and only a few members matter.
 */
function checkDocument(bytes: Uint8Array<ArrayBuffer>, protocol: ClientProtocol): Document {
  if (bytes.length === 0) return { kind: "malformed", detail: "empty_body" };
  const scan = scanTopLevel(bytes);
  if (!scan.ok) return { kind: "malformed", detail: "not_json" };
  const { members } = scan;
  if (members.some(({ key }) => ERROR_KEYS.has(key))) {
    const json: unknown = parseSafely(bytes, 0, bytes.length);
    if (hasErrorObject(json)) return { kind: "error", json };
  }
  const usage = findMember(members, "usage");
  const choices = findMember(members, "choices");
  if (
    protocol === "chat" && usage === null && choices?.kind === "array" &&
    isEmptyList(bytes, choices.valueStart, choices.valueEnd)
  ) {
    return { kind: "malformed", detail: "no_choices" };
  }
  if (usage === null || usage.kind !== "object") return { kind: "good", usage: null };
  return { kind: "good", usage: READERS[protocol](parseSafely(bytes, usage.valueStart, usage.valueEnd)) };
}

/** Members that may make a 200 an error after all (`hasErrorObject`). */
const ERROR_KEYS: ReadonlySet<string> = new Set(["error", "errors", "success", "response", "body", "type"]);
const DECODER = new TextDecoder();

const READERS: Readonly<Record<ClientProtocol, (usage: unknown) => TokenUsage | null>> = {
  responses: readResponsesUsage,
  raw: readResponsesUsage,
  chat: readChatUsage,
  messages: readMessagesUsage,
};

function parseSafely(bytes: Uint8Array, start: number, end: number): unknown {
  try {
    return JSON.parse(DECODER.decode(bytes.subarray(start, end)));
  } catch {
    return null;
  }
}

function isEmptyList(bytes: Uint8Array, start: number, end: number): boolean {
  return DECODER.decode(bytes.subarray(start + 1, end - 1)).trim() === "";
}

/** Too large to be kept: committed now, what was read and the rest unchanged. */
function streamOn(
  deps: ProxyDeps,
  input: AttemptInput,
  response: UpstreamResponse,
  headers: HeaderFields,
  source: AnswerBody,
  begun: readonly Uint8Array<ArrayBuffer>[],
): AttemptResult {
  const { context, launch, hooks } = input;
  input.slot?.release();
  hooks.commit(launch);
  const body = streamBody(source, begun, (end) => {
    if (end === "whole") hooks.finished(launch, SUCCESS, response.status, null);
    else if (end === "cancelled") {
      hooks.finished(
        launch,
        isEndedByShutdown(context)
          ? { ...SUCCESS, kind: "cancelled", row: 45, origin: "local", code: "shutting_down" }
          : { ...SUCCESS, kind: "cancelled", row: 45, origin: "client", code: "client_cancelled" },
        response.status,
        null,
      );
    } else hooks.bodyBroke(launch, failureOf(deps, end.error), response.status);
  }, (bytes) => void (deps.traffic.bytesToClients += bytes));
  headers.set("content-type", response.headers.get("content-type") ?? JSON_TYPE);
  // A length that is known is said: chunks would cost another copy.
  if (response.contentLength !== null) headers.set("content-length", String(response.contentLength));
  return { kind: "committed", response: new Answer(body, { status: response.status, headers }) };
}
