/**
 * The hub's own protocol as an upstream: a Responses request is fitted to its target, answers come as they are.
 */
import type { SseFrame } from "../sse.ts";
import type { EventFacts } from "../stream_dialect.ts";
import { hasErrorObject, readErrorValue } from "../error_body.ts";
import { UNREADABLE } from "./failure_words.ts";
import type { HubEvent } from "./hub_items.ts";
import { UNNAMED_CALL } from "./hub_reader.ts";
import { entryOf, isObject, type JsonObject, originOf, parseObject, readList, readText } from "./json.ts";
import { reasoningOrigin } from "./reasoning_carrier.ts";
import type { TranslationReport } from "./report.ts";
import type { AnswerStreamReader, HubAnswer, HubRequest, UpstreamSide } from "./sides.ts";
import { cutResponse } from "./stop_cutter.ts";
import { quirksOf } from "./targets.ts";
import type { AnswerContext, AnswerProblem, TranslateContext } from "./translator.ts";

export const RESPONSES_UPSTREAM: UpstreamSide = {
  protocol: "responses",
  writeRequest: writeResponsesRequest,
  readAnswer: readResponsesAnswer,
  startStream: () => new ResponsesStreamReader(),
};

function writeResponsesRequest(hub: HubRequest, report: TranslationReport, context: TranslateContext) {
  const quirks = quirksOf(context.target);
  const codex = context.target === "codex";
  const body: JsonObject = {};
  for (const [key, value] of Object.entries(hub)) {
    if (key === "stop") continue;
    if (key === "top_k") report.refuse(report.field(key), "no counterpart in the Responses API");
    else if (quirks.droppedResponsesFields.has(key)) {
      report.note(`${report.field(key)} left out: ${quirks.label} refuses it`);
    } else body[key] = value;
  }
  body.input = readList(hub.input).flatMap((item, index) =>
    isObject(item) ? fitItem(item, index, report, quirks.developerRole && codex) : []
  );
  if (codex) fitToCodex(body, hub, report);
  else if (isObject(hub.reasoning) && hub.reasoning.effort !== "none") {
    // Without it the reasoning of this turn could not be brought back in the next one.
    includeEncryptedReasoning(body);
  }
  return { body, memory: { cutAt: hub.stop ?? [], tools: {} } };
}

function fitItem(
  item: JsonObject,
  index: number,
  report: TranslationReport,
  developerOnly: boolean,
): JsonObject[] {
  if (item.type === "reasoning" && reasoningOrigin(readText(item.encrypted_content)) !== "openai") {
    report.note(`${originOf(item, `input[${index}]`)} left out: reasoning of another provider`);
    return [];
  }
  // The Codex backend takes no system messages; a developer's word ranks the same.
  if (developerOnly && item.role === "system") return [{ ...item, role: "developer" }];
  return [item];
}

/** What the Codex backend demands (wire-facts 5.4). */
function fitToCodex(body: JsonObject, hub: HubRequest, report: TranslationReport): void {
  if (body.store === true) {
    report.note(`${report.field("store")} set to false: the Codex backend keeps nothing`);
  }
  body.store = false;
  body.stream = true;
  body.instructions = readText(body.instructions) ?? "";
  if (readList(hub.include).includes("message.output_text.logprobs")) {
    report.refuse(report.field("include"), "the Codex backend reports no log probabilities");
  }
  if (isObject(body.reasoning)) {
    const reasoning = { ...body.reasoning };
    const nearest = entryOf(CODEX_EFFORTS, String(reasoning.effort));
    if (nearest !== null) {
      report.note(
        `${report.field("reasoning")} ${reasoning.effort} sent as ${nearest}: not known to every Codex model`,
      );
      reasoning.effort = nearest;
    }
    reasoning.summary ??= "auto";
    body.reasoning = reasoning;
  }
  includeEncryptedReasoning(body);
}

/** Levels that not every Codex model knows, and the nearest one that each does. */
const CODEX_EFFORTS: Readonly<Record<string, string>> = { none: "low", minimal: "low", max: "xhigh" };

const ENCRYPTED_REASONING = "reasoning.encrypted_content";

function includeEncryptedReasoning(body: JsonObject): void {
  const include = readList(body.include);
  if (!include.includes(ENCRYPTED_REASONING)) body.include = [...include, ENCRYPTED_REASONING];
}

function readResponsesAnswer(body: JsonObject, context: AnswerContext): HubAnswer {
  if (body.status === "failed" || hasErrorObject(body)) {
    return { ok: false, problem: { kind: "in_stream", error: readErrorValue(body) } };
  }
  if (!Array.isArray(body.output)) return malformed("the answer has no output list");
  if (body.status !== undefined && body.status !== "completed" && body.status !== "incomplete") {
    return malformed("the answer is not finished");
  }
  for (const item of body.output) {
    if (isObject(item) && isCall(item) && (!readText(item.name) || !readText(item.call_id))) {
      return malformed(UNNAMED_CALL.message);
    }
  }
  return { ok: true, response: cutResponse(body, context.memory.cutAt) };
}

function isCall(item: JsonObject): boolean {
  return item.type === "function_call" || item.type === "custom_tool_call";
}

function malformed(detail: string): HubAnswer {
  return { ok: false, problem: { kind: "malformed", detail } };
}

/** Events pass as they are; what is no Responses event (`codex.*`, noise, `[DONE]`) is left out. */
class ResponsesStreamReader implements AnswerStreamReader {
  #problem: AnswerProblem | null = null;

  get problem(): AnswerProblem | null {
    return this.#problem;
  }

  read(frame: SseFrame, facts: EventFacts): HubEvent[] {
    if (facts.class === "comment" || facts.class === "padding") return [];
    const data = frame.data();
    if (data === null || data === "" || data === "[DONE]") return [];
    const event = parseObject(data);
    if (event === null) {
      this.#problem = { kind: "malformed", detail: "an event is not JSON" };
      return [{ type: "response.failed", response: { error: UNREADABLE } }];
    }
    const type = readText(event.type) ?? frame.event ?? "";
    if (!type.startsWith("response.") && type !== "error") return [];
    return [{ ...event, type }];
  }

  close(): HubEvent[] {
    return [];
  }
}
