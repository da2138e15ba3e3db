/**
 * The hub's own protocol as a client: its requests are the hub's form, its answers need their envelope alone.
 */
import type { HubEvent } from "./hub_items.ts";
import { HubWriter } from "./hub_writer.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { TranslationReport } from "./report.ts";
import { RESPONSES_REQUEST_SHAPE } from "./responses_client_shape.ts";
import type { AnswerStreamWriter, ClientSide, HubRequest } from "./sides.ts";
import type { AnswerContext, ClientFailure, TranslateContext } from "./translator.ts";

/** Request fields a Response repeats. */
const ECHOED = [
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "parallel_tool_calls",
  "prompt_cache_key",
  "reasoning",
  "safety_identifier",
  "service_tier",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "user",
] as const;

export const RESPONSES_CLIENT: ClientSide = {
  protocol: "responses",
  fieldNames: {},
  readRequest: readResponsesRequest,
  remember: (body) => ({
    streaming: body.stream === true,
    includeUsage: true,
    takesReasoning: true,
    echo: echoOf(body),
  }),
  writeAnswer: (response, context) => ({ ...response, model: context.clientModel }),
  startStream: (context) => new ResponsesStreamWriter(context),
};

function readResponsesRequest(
  body: JsonObject,
  report: TranslationReport,
  context: TranslateContext,
): HubRequest {
  RESPONSES_REQUEST_SHAPE(body, "", report);
  const hub: HubRequest = { ...body, model: context.upstreamModel };
  if (typeof body.stop === "string") hub.stop = [body.stop];
  return hub;
}

function echoOf(body: JsonObject): JsonObject {
  const echo: JsonObject = {};
  for (const key of ECHOED) if (body[key] !== null && body[key] !== undefined) echo[key] = body[key];
  return echo;
}

class ResponsesStreamWriter implements AnswerStreamWriter {
  readonly problem = null;
  readonly #context: AnswerContext;
  #sequence = 0;
  #opening: JsonObject | null = null;
  #ended = false;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get ended(): boolean {
    return this.#ended;
  }

  write(event: HubEvent): string[] {
    if (this.#ended) return [];
    if (event.type === "response.created" && isObject(event.response)) this.#opening = event.response;
    if (TERMINALS.has(event.type)) this.#ended = true;
    const { type, ...members } = event;
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...members });
    return [`event: ${type}\ndata: ${data}\n\n`];
  }

  /** Codex understands a failure as `response.failed` alone; SDKs want `response.created` before it. */
  fail(failure: ClientFailure): string[] {
    if (this.#ended) return [];
    const { code, message } = failure;
    if (this.#opening !== null) {
      const response = { ...this.#opening, status: "failed", error: { code, message } };
      return this.write({ type: "response.failed", response });
    }
    const { newId, clientModel, nowMs, memory } = this.#context;
    const writer = new HubWriter({
      responseId: newId("resp"),
      model: clientModel,
      createdAtSeconds: Math.floor(nowMs / 1000),
      echo: memory.echo,
      newId,
    });
    writer.fail({ code, message }, null);
    return writer.take().flatMap((event) => this.write(event));
  }
}

const TERMINALS: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
]);
