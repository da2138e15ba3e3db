/** Requests: a conversation said in each protocol, and read back from each. */
import type { JsonObject } from "../../lib/protocol/translate/json.ts";
import type { RequestMemory, TranslatedProtocol } from "../../lib/protocol/translate/translator.ts";
import {
  type CallModel,
  joinTurns,
  type PartModel,
  type RequestModel,
  type ResultModel,
  type TurnModel,
} from "./conversation_model.ts";

// deno-lint-ignore no-explicit-any -- foreign JSON, checked by the comparison at the end
type Loose = Record<string, any>;

export function renderRequest(client: TranslatedProtocol, model: RequestModel, stream: boolean): JsonObject {
  return RENDER[client](model, stream);
}

/** What an upstream is told, by its meaning. */
export function readRequest(
  upstream: TranslatedProtocol,
  body: JsonObject,
  memory: Pick<RequestMemory, "cutAt">,
): RequestModel {
  const model = READ[upstream](body as Loose, memory);
  // An image is the same with the detail nobody chose.
  return JSON.parse(JSON.stringify({ ...model, turns: joinTurns(model.turns) }));
}

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const unbase64 = (data: string) =>
  new TextDecoder().decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)));

// ---- chat

function chatPart(part: PartModel): Loose {
  if (typeof part === "string") return { type: "text", text: part };
  if ("image" in part) return { type: "image_url", image_url: { url: part.image } };
  const data = "pdf" in part
    ? `data:application/pdf;base64,${part.pdf}`
    : `data:text/plain;base64,${base64(part.document)}`;
  return { type: "file", file: { filename: part.name, file_data: data } };
}

function chatContent(parts: readonly PartModel[]): string | Loose[] {
  return parts.length === 1 && typeof parts[0] === "string" ? parts[0] : parts.map(chatPart);
}

function chatTurn(turn: TurnModel): Loose[] {
  switch (turn.who) {
    case "user":
      return [{ role: "user", content: chatContent(turn.parts) }];
    case "system":
      return [{ role: "system", content: turn.text }];
    case "assistant":
      return [{
        role: "assistant",
        content: turn.text === "" ? null : turn.text,
        ...(turn.calls.length === 0 ? {} : {
          tool_calls: turn.calls.map(({ id, name, args }) => ({
            id,
            type: "function",
            function: { name, arguments: args },
          })),
        }),
      }];
    case "results":
      return turn.results.map(({ id, output }) => ({
        role: "tool",
        tool_call_id: id,
        content: chatContent(output),
      }));
  }
}

function renderChat(model: RequestModel, stream: boolean): JsonObject {
  return clean({
    model: "client-model",
    messages: [
      ...(model.system === undefined ? [] : [{ role: "system", content: model.system }]),
      ...model.turns.flatMap(chatTurn),
    ],
    tools: model.tools?.map(({ name, description, schema }) => ({
      type: "function",
      function: clean({ name, description, parameters: schema }),
    })),
    tool_choice: typeof model.toolChoice === "object"
      ? { type: "function", function: { name: model.toolChoice.name } }
      : model.toolChoice,
    parallel_tool_calls: model.parallel,
    max_completion_tokens: model.maxTokens,
    temperature: model.temperature,
    top_p: model.topP,
    stop: model.stop,
    reasoning_effort: model.effort,
    response_format: model.schema &&
      { type: "json_schema", json_schema: { name: "output", schema: model.schema, strict: true } },
    user: model.user,
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
}

function unchatPart(part: Loose): PartModel {
  if (part.type === "text") return part.text;
  if (part.type === "image_url") return { image: part.image_url.url };
  return undata(part.file.file_data, part.file.filename);
}

function undata(url: string, name: string): PartModel {
  const [head, data] = url.split(",") as [string, string];
  return head.includes("pdf") ? { pdf: data, name } : { document: unbase64(data), name };
}

function unchatContent(content: unknown): PartModel[] {
  if (typeof content === "string") return content === "" ? [] : [content];
  return (content as Loose[]).map(unchatPart);
}

const ATTACHED = "(attachments follow in the next message)";

function readChat(body: Loose, _memory: unknown): RequestModel {
  const turns: TurnModel[] = [];
  let system: string | undefined;
  const results = new Map<string, PartModel[]>();
  for (const message of body.messages as Loose[]) {
    if (message.role === "system" || message.role === "developer") {
      if (turns.length === 0) {
        system = system === undefined ? message.content : `${system}\n\n${message.content}`;
      } else turns.push({ who: "system", text: message.content });
    } else if (message.role === "tool") {
      const parts = unchatContent(message.content).map((part) =>
        typeof part === "string" ? part.replace(ATTACHED, "").replace(/\n$/, "") : part
      ).filter((part) => part !== "");
      results.set(message.tool_call_id, parts);
      turns.push({ who: "results", results: [{ id: message.tool_call_id, output: parts }] });
    } else if (message.role === "assistant") {
      turns.push({
        who: "assistant",
        text: (message.content ?? "") + (message.refusal ?? ""),
        calls: (message.tool_calls ?? []).map((call: Loose) => ({
          id: call.id,
          name: call.function.name,
          args: call.function.arguments,
        })),
      });
    } else if (Array.isArray(message.content) && /^Attachments of/.test(message.content[0]?.text ?? "")) {
      let owner = "";
      for (const part of message.content as Loose[]) {
        const head = /^Attachments of the result of tool call (.*):$/.exec(part.text ?? "");
        if (head !== null) owner = head[1]!;
        else results.get(owner)!.push(unchatPart(part));
      }
    } else turns.push({ who: "user", parts: unchatContent(message.content) });
  }
  return {
    system,
    turns,
    tools: body.tools?.map(({ function: tool }: Loose) => ({
      name: tool.name,
      description: tool.description,
      schema: tool.parameters,
    })),
    toolChoice: typeof body.tool_choice === "object"
      ? { name: body.tool_choice.function.name }
      : body.tool_choice,
    parallel: body.parallel_tool_calls,
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    stop: body.stop,
    effort: body.reasoning_effort,
    schema: body.response_format?.json_schema?.schema,
    user: body.user,
  } as RequestModel;
}

// ---- responses

function responsesPart(part: PartModel): Loose {
  if (typeof part === "string") return { type: "input_text", text: part };
  if ("image" in part) return { type: "input_image", image_url: part.image, detail: "auto" };
  const data = "pdf" in part
    ? `data:application/pdf;base64,${part.pdf}`
    : `data:text/plain;base64,${base64(part.document)}`;
  return { type: "input_file", filename: part.name, file_data: data };
}

function responsesTurn(turn: TurnModel): Loose[] {
  switch (turn.who) {
    case "user":
      return [{ type: "message", role: "user", content: turn.parts.map(responsesPart) }];
    case "system":
      return [{ type: "message", role: "developer", content: [{ type: "input_text", text: turn.text }] }];
    case "assistant":
      return [
        ...(turn.text === "" ? [] : [{
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: turn.text, annotations: [] }],
        }]),
        ...turn.calls.map(({ id, name, args }) => ({
          type: "function_call",
          call_id: id,
          name,
          arguments: args,
        })),
      ];
    case "results":
      return turn.results.map(({ id, output }) => ({
        type: "function_call_output",
        call_id: id,
        output: output.length === 1 && typeof output[0] === "string" ? output[0] : output.map(responsesPart),
      }));
  }
}

function renderResponses(model: RequestModel, stream: boolean): JsonObject {
  return clean({
    model: "client-model",
    instructions: model.system,
    input: model.turns.flatMap(responsesTurn),
    tools: model.tools?.map(({ name, description, schema }) =>
      clean({ type: "function", name, description, parameters: schema, strict: false })
    ),
    tool_choice: typeof model.toolChoice === "object"
      ? { type: "function", name: model.toolChoice.name }
      : model.toolChoice,
    parallel_tool_calls: model.parallel,
    max_output_tokens: model.maxTokens,
    temperature: model.temperature,
    top_p: model.topP,
    // No Responses field; the hub's own form has it, and a client that knows may use it.
    stop: model.stop,
    reasoning: model.effort && { effort: model.effort, summary: "auto" },
    text: model.schema &&
      { format: { type: "json_schema", name: "output", schema: model.schema, strict: true } },
    user: model.user,
    store: false,
    ...(stream ? { stream: true } : {}),
  });
}

function unresponsesPart(part: Loose): PartModel {
  if (part.type === "input_image") return { image: part.image_url };
  if (part.type === "input_file") return undata(part.file_data, part.filename);
  return part.text;
}

function readResponses(body: Loose, memory: Pick<RequestMemory, "cutAt">): RequestModel {
  let system: string | undefined = body.instructions || undefined;
  const turns: TurnModel[] = [];
  for (const item of body.input as Loose[]) {
    if (item.type === "function_call") {
      const call: CallModel = { id: item.call_id, name: item.name, args: item.arguments };
      turns.push({ who: "assistant", text: "", calls: [call] });
    } else if (item.type === "function_call_output") {
      const output = typeof item.output === "string"
        ? item.output === "" ? [] : [item.output]
        : item.output.map(unresponsesPart);
      turns.push({ who: "results", results: [{ id: item.call_id, output }] });
    } else if (item.role === "assistant") {
      const text = item.content.map((part: Loose) => part.text ?? part.refusal).join("");
      turns.push({ who: "assistant", text, calls: [] });
    } else if (item.role === "user") turns.push({ who: "user", parts: item.content.map(unresponsesPart) });
    else {
      const text = item.content.map((part: Loose) => part.text).join("");
      if (turns.length === 0) system = system === undefined ? text : `${system}\n\n${text}`;
      else turns.push({ who: "system", text });
    }
  }
  return {
    system,
    turns,
    tools: body.tools?.map((tool: Loose) => ({
      name: tool.name,
      description: tool.description,
      schema: tool.parameters,
    })),
    toolChoice: typeof body.tool_choice === "object" ? { name: body.tool_choice.name } : body.tool_choice,
    parallel: body.parallel_tool_calls,
    maxTokens: body.max_output_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    stop: body.stop ?? (memory.cutAt.length > 0 ? memory.cutAt : undefined),
    effort: body.reasoning?.effort,
    schema: body.text?.format?.schema,
    user: body.user,
  } as RequestModel;
}

// ---- messages

function messagesPart(part: PartModel): Loose {
  if (typeof part === "string") return { type: "text", text: part };
  if ("image" in part) {
    const data = /^data:([^;]+);base64,(.*)$/.exec(part.image);
    const source = data === null
      ? { type: "url", url: part.image }
      : { type: "base64", media_type: data[1], data: data[2] };
    return { type: "image", source };
  }
  const source = "pdf" in part
    ? { type: "base64", media_type: "application/pdf", data: part.pdf }
    : { type: "text", media_type: "text/plain", data: part.document };
  return { type: "document", source, title: part.name };
}

function messagesContent(parts: readonly PartModel[]): string | Loose[] {
  return parts.length === 1 && typeof parts[0] === "string" ? parts[0] : parts.map(messagesPart);
}

function messagesTurn(turn: TurnModel): Loose {
  switch (turn.who) {
    case "user":
      return { role: "user", content: messagesContent(turn.parts) };
    case "system":
      return { role: "system", content: turn.text };
    case "assistant":
      return {
        role: "assistant",
        content: [
          ...(turn.text === "" ? [] : [{ type: "text", text: turn.text }]),
          ...turn.calls.map(({ id, name, args }) => ({
            type: "tool_use",
            id,
            name,
            input: JSON.parse(args),
          })),
        ],
      };
    case "results":
      return {
        role: "user",
        content: turn.results.map(({ id, output }: ResultModel) => ({
          type: "tool_result",
          tool_use_id: id,
          content: messagesContent(output),
        })),
      };
  }
}

const BUDGETS = { low: 4_096, medium: 8_192, high: 24_576 } as const;

function renderMessages(model: RequestModel, stream: boolean): JsonObject {
  const names = { auto: "auto", none: "none", required: "any" } as const;
  const choice = typeof model.toolChoice === "object"
    ? { type: "tool", name: model.toolChoice.name }
    : model.toolChoice || model.parallel !== undefined
    ? { type: names[model.toolChoice ?? "auto"] }
    : undefined;
  const flag = model.parallel === undefined ? {} : { disable_parallel_tool_use: !model.parallel };
  return clean({
    model: "client-model",
    max_tokens: model.maxTokens,
    system: model.system,
    messages: model.turns.map(messagesTurn),
    tools: model.tools?.map(({ name, description, schema }) =>
      clean({ name, description, input_schema: schema })
    ),
    tool_choice: choice && { ...choice, ...(choice.type === "none" ? {} : flag) },
    temperature: model.temperature,
    top_p: model.topP,
    stop_sequences: model.stop,
    thinking: model.effort === undefined
      ? undefined
      : model.effort === "none"
      ? { type: "disabled" }
      : { type: "enabled", budget_tokens: BUDGETS[model.effort] },
    output_config: model.schema && { format: { type: "json_schema", schema: model.schema } },
    metadata: model.user && { user_id: model.user },
    ...(stream ? { stream: true } : {}),
  });
}

function unmessagesPart(block: Loose): PartModel {
  if (block.type === "text") return block.text;
  if (block.type === "image") {
    const { type, url, media_type, data } = block.source;
    return { image: type === "url" ? url : `data:${media_type};base64,${data}` };
  }
  const name = block.title;
  return block.source.type === "base64"
    ? { pdf: block.source.data, name }
    : { document: block.source.data, name };
}

function readMessages(body: Loose, _memory: unknown): RequestModel {
  const turns: TurnModel[] = [];
  for (const { role, content } of body.messages as Loose[]) {
    const blocks: Loose[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "assistant") {
      turns.push({
        who: "assistant",
        text: blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n\n"),
        calls: blocks.filter((block) => block.type === "tool_use").map((block) => ({
          id: block.id,
          name: block.name,
          args: JSON.stringify(block.input),
        })),
      });
      continue;
    }
    if (role === "system") {
      turns.push({ who: "system", text: blocks.map((block) => block.text).join("") });
      continue;
    }
    for (const block of blocks) {
      const reminder = /^<system-reminder>\n([\s\S]*)\n<\/system-reminder>$/.exec(block.text ?? "");
      if (reminder !== null) turns.push({ who: "system", text: reminder[1]! });
      else if (block.type === "tool_result") {
        const output = typeof block.content === "string"
          ? block.content === "" ? [] : [block.content]
          : block.content.map(unmessagesPart);
        turns.push({ who: "results", results: [{ id: block.tool_use_id, output }] });
      } else turns.push({ who: "user", parts: [unmessagesPart(block)] });
    }
  }
  const names: Record<string, string> = { auto: "auto", none: "none", any: "required" };
  const effort = Object.entries(BUDGETS).find(([, budget]) => budget === body.thinking?.budget_tokens)?.[0];
  return {
    system: Array.isArray(body.system)
      ? body.system.map((block: Loose) => block.text).join("\n\n")
      : body.system,
    turns,
    tools: body.tools?.map((tool: Loose) => ({
      name: tool.name,
      description: tool.description,
      schema: tool.input_schema,
    })),
    toolChoice: body.tool_choice?.type === "tool"
      ? { name: body.tool_choice.name }
      : body.tool_choice && names[body.tool_choice.type],
    parallel: body.tool_choice?.disable_parallel_tool_use === undefined
      ? undefined
      : !body.tool_choice.disable_parallel_tool_use,
    maxTokens: body.max_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    stop: body.stop_sequences,
    effort: body.thinking?.type === "disabled" ? "none" : effort,
    schema: body.output_config?.format?.schema,
    user: body.metadata?.user_id,
  } as RequestModel;
}

const RENDER = { chat: renderChat, responses: renderResponses, messages: renderMessages } as const;
const READ = { chat: readChat, responses: readResponses, messages: readMessages } as const;

function clean(body: Loose): JsonObject {
  return JSON.parse(JSON.stringify(body));
}
