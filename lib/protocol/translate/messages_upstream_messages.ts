/**
 * Turns of a hub request as Anthropic messages: user and assistant in turns, results before everything else.
 */
import type { AssistantEntry, CallResult, HubTurn } from "./hub_turns.ts";
import { type JsonObject, originOf, parseObject, readText } from "./json.ts";
import { textOfBase64 } from "./messages_parts.ts";
import { anthropicBlockOf } from "./reasoning_carrier.ts";
import { quoted, type TranslationReport } from "./report.ts";

export function writeMessages(turns: readonly HubTurn[], report: TranslationReport): JsonObject[] {
  const messages: { role: "user" | "assistant"; content: JsonObject[] }[] = [];
  for (const turn of turns) {
    const role = turn.role === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(turn, report);
    if (blocks.length === 0) continue;
    const last = messages.at(-1);
    if (last?.role !== role) messages.push({ role, content: blocks });
    // Results answer the calls before them and must stand first in their message.
    else if (turn.role === "results") last.content = resultsFirst(last.content, blocks);
    else last.content.push(...blocks);
  }
  return messages;
}

function blocksOf(turn: HubTurn, report: TranslationReport): JsonObject[] {
  switch (turn.role) {
    case "user":
      return partBlocks(turn.parts, report);
    case "system":
    case "developer":
      // In the midst of a conversation Claude's own clients speak like this.
      return textBlock(`<system-reminder>\n${turn.text}\n</system-reminder>`);
    case "assistant":
      return turn.entries.flatMap((entry) => entryBlocks(entry, report));
    case "results":
      return turn.results.map((result) => resultBlock(result, report));
    default:
      return turn satisfies never;
  }
}

function resultsFirst(content: readonly JsonObject[], results: readonly JsonObject[]): JsonObject[] {
  const isResult = (block: JsonObject) => block.type === "tool_result";
  return [...content.filter(isResult), ...results, ...content.filter((block) => !isResult(block))];
}

function entryBlocks(entry: AssistantEntry, report: TranslationReport): JsonObject[] {
  switch (entry.kind) {
    case "text":
    case "refusal":
      return textBlock(entry.text);
    case "reasoning": {
      const block = anthropicBlockOf(entry.item);
      if (block === null) report.note(`${entry.path} left out: reasoning of another provider`);
      return block === null ? [] : [{ ...block }];
    }
    case "call": {
      const id = messagesCallId(entry.callId);
      return [{ type: "tool_use", id, name: entry.name, input: callInput(entry.arguments) }];
    }
    default:
      return entry satisfies never;
  }
}

function resultBlock({ callId, output }: CallResult, report: TranslationReport): JsonObject {
  const content = typeof output === "string" ? output : partBlocks(output, report);
  return { type: "tool_result", tool_use_id: messagesCallId(callId), content };
}

/** Anthropic refuses empty texts. */
function textBlock(text: string): JsonObject[] {
  return text === "" ? [] : [{ type: "text", text }];
}

function partBlocks(parts: readonly JsonObject[], report: TranslationReport): JsonObject[] {
  return parts.flatMap((part) => {
    if (part.type === "input_text") return textBlock(readText(part.text) ?? "");
    return part.type === "input_image" ? imageBlock(part, report) : fileBlock(part, report);
  });
}

const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*?)(;base64)?,/;
const FOREIGN_FILE = "a file id is known to the provider that stored it alone";

function imageBlock(part: JsonObject, report: TranslationReport): JsonObject[] {
  const url = readText(part.image_url);
  if (url === null) {
    report.refuse(`${originOf(part, "input")}.file_id`, FOREIGN_FILE);
    return [];
  }
  const data = DATA_URL.exec(url);
  if (data === null) return [{ type: "image", source: { type: "url", url } }];
  const source = { type: "base64", media_type: data[1], data: url.slice(data[0].length) };
  return [{ type: "image", source }];
}

function fileBlock(part: JsonObject, report: TranslationReport): JsonObject[] {
  const path = originOf(part, "input");
  const url = readText(part.file_url);
  const name = readText(part.filename);
  const title = name === null ? {} : { title: name };
  if (url !== null) return [{ type: "document", source: { type: "url", url }, ...title }];
  const fileData = readText(part.file_data);
  if (fileData === null) {
    report.refuse(`${path}.file_id`, FOREIGN_FILE);
    return [];
  }
  const data = DATA_URL.exec(fileData);
  const type = data?.[1] ?? "";
  const base64 = fileData.slice(data?.[0].length ?? 0);
  if (type === "application/pdf") {
    return [{ type: "document", source: { type: "base64", media_type: type, data: base64 }, ...title }];
  }
  const text = type.startsWith("text/") ? textOfBase64(base64) : null;
  if (text === null) {
    report.refuse(`${path}.file_data ${quoted(type)}`, "Anthropic takes PDF and text alone");
    return [];
  }
  return [{ type: "document", source: { type: "text", media_type: "text/plain", data: text }, ...title }];
}

/**
 * A call's id as Anthropic allows it. Call and result get the same one, because the rule looks at nothing else.
 */
function messagesCallId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, (char) => `_${char.charCodeAt(0).toString(16)}`);
}

/**
 * Arguments as the object Anthropic wants. What the model wrote wrongly stays readable for it, inside an object
 * (field case B102).
 */
function callInput(argumentsText: string): JsonObject {
  if (argumentsText.trim() === "") return {};
  return parseExact(argumentsText) ?? { raw_arguments: argumentsText };
}

interface RawJson {
  rawJSON(text: string): unknown;
}

/** Parsed so that whole numbers of more than 15 digits, such as ids, are written out again digit by digit. */
function parseExact(text: string): JsonObject | null {
  if (!/\d{16}/.test(text)) return parseObject(text);
  try {
    const value: unknown = JSON.parse(text, (_key, one: unknown, context?: { source?: string }) => {
      const source = context?.source;
      if (typeof one !== "number" || source === undefined || String(one) === source) return one;
      return (JSON as unknown as RawJson).rawJSON(source);
    });
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : null;
  } catch {
    return null;
  }
}
