/**
 * Chat messages in the hub's form: input items in the order of the conversation.
 *
 * Known shapes of other protocols inside chat content (Anthropic's `tool_use`, `tool_result`, `image` …) are read too:
 * clients that speak several protocols mix them up (field case B119).
 */
import { isObject, type JsonObject, readList, readText, withOrigin } from "./json.ts";
import { readMessagesPart, readToolResult, readToolUse } from "./messages_parts.ts";
import { reasoningOfRedacted, reasoningOfThinking } from "./reasoning_carrier.ts";
import { quoted, type TranslationReport } from "./report.ts";

const AUDIO = "audio is carried by no other protocol";

export function readChatMessages(messages: readonly unknown[], report: TranslationReport): JsonObject[] {
  const reader = new ChatMessagesReader(report);
  messages.forEach((message, index) => {
    const path = `messages[${index}]`;
    const before = reader.items.length;
    reader.read(message, path);
    if (reader.items.length === before) report.note(`${path} left out: it says nothing`);
  });
  return reader.items;
}

const MESSAGE_KEYS = new Set([
  "role",
  "content",
  "tool_calls",
  "tool_call_id",
  "refusal",
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  // Answers carry them back; they say nothing the model reads.
  "annotations",
]);

class ChatMessagesReader {
  readonly items: JsonObject[] = [];
  readonly #report: TranslationReport;
  readonly #customCalls = new Set<string>();

  constructor(report: TranslationReport) {
    this.#report = report;
  }

  read(message: unknown, path: string): void {
    if (!isObject(message)) return this.#report.refuse(path, "must be an object");
    if (isObject(message.audio)) this.#report.refuse(`${path}.audio`, AUDIO);
    if (isObject(message.function_call)) this.#report.refuse(`${path}.function_call`, "use tool_calls");
    const known = new Set(MESSAGE_KEYS);
    if (message.audio !== undefined) known.add("audio");
    this.#report.noteExtras(message, known, path);
    switch (message.role) {
      case "system":
      case "developer":
      case "user":
        return this.#readInput(message.role, message.content, path);
      case "assistant":
        return this.#readAssistant(message, path);
      case "tool":
        return this.#readToolMessage(message, path);
      default:
        return this.#report.refuse(`${path}.role ${quoted(message.role)}`, "no such role");
    }
  }

  #readInput(role: string, content: unknown, path: string): void {
    const parts: JsonObject[] = [];
    const flush = () => {
      if (parts.length === 0) return;
      this.items.push(withOrigin({ type: "message", role, content: parts.splice(0) }, path));
    };
    for (const [part, partPath] of contentParts(content, path)) {
      if (isObject(part) && part.type === "tool_result") {
        flush();
        this.items.push(readToolResult(part, partPath, this.#report));
        continue;
      }
      parts.push(...this.#readInputPart(part, partPath));
    }
    flush();
  }

  #readInputPart(part: unknown, path: string): JsonObject[] {
    const report = this.#report;
    if (!isObject(part)) {
      report.refuse(path, "must be an object");
      return [];
    }
    switch (part.type) {
      case "text":
      case "input_text":
        return [withOrigin({ type: "input_text", text: readText(part.text) ?? "" }, path)];
      case "image_url": {
        const image = isObject(part.image_url) ? part.image_url : { url: part.image_url };
        const url = readText(image.url) ?? "";
        const detail = readText(image.detail) ?? "auto";
        return [withOrigin({ type: "input_image", image_url: url, detail }, path)];
      }
      case "input_image":
      case "input_file":
        return [withOrigin({ ...part }, path)];
      case "file": {
        const file = isObject(part.file) ? part.file : {};
        return [withOrigin({ type: "input_file", ...file }, path)];
      }
      case "input_audio":
        report.refuseType(path, part.type, AUDIO);
        return [];
      default:
        return readMessagesPart(part, path, report);
    }
  }

  #readAssistant(message: JsonObject, path: string): void {
    this.items.push(...readReasoning(message, path));
    const content: JsonObject[] = [];
    const calls: JsonObject[] = [];
    for (const [part, partPath] of contentParts(message.content, path)) {
      if (!isObject(part)) this.#report.refuse(partPath, "must be an object");
      else if (part.type === "text" || part.type === "output_text") {
        const text = readText(part.text) ?? "";
        if (text !== "") content.push(withOrigin({ type: "output_text", text }, partPath));
      } else if (part.type === "refusal") {
        content.push(withOrigin({ type: "refusal", refusal: readText(part.refusal) ?? "" }, partPath));
      } else if (part.type === "tool_use") calls.push(readToolUse(part, partPath, this.#report));
      else if (part.type === "thinking") {
        const thinking = readText(part.thinking) ?? "";
        this.items.push(reasoningOfThinking(thinking, readText(part.signature) ?? ""));
      } else if (part.type === "redacted_thinking") {
        this.items.push(reasoningOfRedacted(readText(part.data) ?? ""));
      } else this.#report.refuseType(partPath, part.type, "no such part in an assistant message");
    }
    const refusal = readText(message.refusal);
    if (refusal !== null && refusal !== "") content.push({ type: "refusal", refusal });
    if (content.length > 0) {
      this.items.push(withOrigin({ type: "message", role: "assistant", content }, path));
    }
    this.items.push(...calls);
    readList(message.tool_calls).forEach((call, index) =>
      this.#readCall(call, `${path}.tool_calls[${index}]`)
    );
  }

  #readCall(call: unknown, path: string): void {
    if (!isObject(call)) return this.#report.refuse(path, "must be an object");
    const callId = readText(call.id) ?? "";
    if (call.type === "custom" && isObject(call.custom)) {
      const { name, input } = call.custom;
      this.#customCalls.add(callId);
      this.items.push(
        withOrigin({ type: "custom_tool_call", call_id: callId, name, input: readText(input) ?? "" }, path),
      );
    } else if (isObject(call.function)) {
      const { name, arguments: args } = call.function;
      this.items.push(
        withOrigin(
          { type: "function_call", call_id: callId, name, arguments: readText(args) ?? "" },
          path,
        ),
      );
    } else this.#report.refuseType(path, call.type, "no such tool call in chat");
  }

  #readToolMessage(message: JsonObject, path: string): void {
    const callId = readText(message.tool_call_id) ?? "";
    const type = this.#customCalls.has(callId) ? "custom_tool_call_output" : "function_call_output";
    const output = typeof message.content === "string"
      ? message.content
      : contentParts(message.content, path).flatMap(([part, at]) => this.#readInputPart(part, at));
    this.items.push(withOrigin({ type, call_id: callId, output }, path));
  }
}

/** Content as parts with their paths; a bare text is one part. */
function contentParts(content: unknown, path: string): [part: unknown, path: string][] {
  if (typeof content === "string") return content === "" ? [] : [[{ type: "text", text: content }, path]];
  return readList(content).map((part, index) => [part, `${path}.content[${index}]`]);
}

/**
 * Reasoning that a chat client brings back: whole items from our own `reasoning_details`, or the plain text that other
 * chat servers call `reasoning_content` or `reasoning`.
 */
function readReasoning(message: JsonObject, path: string): JsonObject[] {
  const items = new Map<number, JsonObject & { summary: JsonObject[] }>();
  for (const entry of readList(message.reasoning_details)) {
    if (!isObject(entry) || entry.format !== "holdfast-v1") continue;
    const index = Number(entry.index);
    const item: JsonObject & { summary: JsonObject[] } = items.get(index) ??
      withOrigin({ type: "reasoning", summary: [] }, `${path}.reasoning_details`);
    items.set(index, item);
    if (readText(entry.id) !== null) item.id = entry.id;
    if (entry.type === "reasoning.summary") item.summary.push({ type: "summary_text", text: entry.summary });
    else if (entry.type === "reasoning.encrypted") item.encrypted_content = entry.data;
    else if (entry.type === "reasoning.text") {
      item.content = [...readList(item.content), { type: "reasoning_text", text: entry.text }];
    }
  }
  if (items.size > 0) return [...items.values()];
  const plain = readText(message.reasoning_content) ?? readText(message.reasoning) ?? "";
  if (plain === "") return [];
  const summary = [{ type: "summary_text", text: plain }];
  return [withOrigin({ type: "reasoning", summary }, `${path}.reasoning_content`)];
}
