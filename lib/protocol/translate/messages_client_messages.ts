/**
 * Anthropic messages in the hub's form: input items in the order of the conversation.
 */
import { isObject, type JsonObject, readList, readText, withOrigin } from "./json.ts";
import { readMessagesPart, readToolResult, readToolUse } from "./messages_parts.ts";
import { reasoningOfRedacted, reasoningOfThinking } from "./reasoning_carrier.ts";
import { quoted, type TranslationReport } from "./report.ts";
import { SEARCH_NAME } from "./web_search.ts";

export function readMessages(messages: readonly unknown[], report: TranslationReport): JsonObject[] {
  const items: JsonObject[] = [];
  messages.forEach((message, index) => {
    const path = `messages[${index}]`;
    const before = items.length;
    items.push(...readMessage(message, path, report));
    if (items.length === before) report.note(`${path} left out: it says nothing`);
  });
  return items;
}

function readMessage(message: unknown, path: string, report: TranslationReport): JsonObject[] {
  if (!isObject(message)) {
    report.refuse(path, "must be an object");
    return [];
  }
  const blocks = blocksOf(message.content, path);
  switch (message.role) {
    case "user":
    case "system":
      return readInput(message.role, blocks, path, report);
    case "assistant":
      return readAssistant(blocks, path, report);
    default:
      report.refuse(`${path}.role ${quoted(message.role)}`, "no such role");
      return [];
  }
}

type Block = readonly [block: unknown, path: string];

function blocksOf(content: unknown, path: string): Block[] {
  if (typeof content === "string") return content === "" ? [] : [[{ type: "text", text: content }, path]];
  return readList(content).map((block, index) => [block, `${path}.content[${index}]`]);
}

function readInput(
  role: string,
  blocks: readonly Block[],
  path: string,
  report: TranslationReport,
): JsonObject[] {
  const items: JsonObject[] = [];
  let parts: JsonObject[] = [];
  const flush = () => {
    if (parts.length > 0) items.push(withOrigin({ type: "message", role, content: parts }, path));
    parts = [];
  };
  for (const [block, blockPath] of blocks) {
    if (!isObject(block)) report.refuse(blockPath, "must be an object");
    else if (block.type === "tool_result") {
      flush();
      items.push(readToolResult(block, blockPath, report));
    } else parts.push(...readMessagesPart(block, blockPath, report));
  }
  flush();
  return items;
}

function readAssistant(blocks: readonly Block[], path: string, report: TranslationReport): JsonObject[] {
  const items: JsonObject[] = [];
  let texts: JsonObject[] = [];
  const flush = () => {
    if (texts.length > 0) {
      items.push(withOrigin({ type: "message", role: "assistant", content: texts }, path));
    }
    texts = [];
  };
  for (const [block, blockPath] of blocks) {
    if (!isObject(block)) {
      report.refuse(blockPath, "must be an object");
      continue;
    }
    if (block.type === "text") {
      const text = readText(block.text) ?? "";
      if (text !== "") texts.push(withOrigin({ type: "output_text", text }, blockPath));
      continue;
    }
    flush();
    switch (block.type) {
      case "thinking": {
        const item = reasoningOfThinking(readText(block.thinking) ?? "", readText(block.signature) ?? "");
        items.push(withOrigin(item, blockPath));
        break;
      }
      case "redacted_thinking":
        items.push(withOrigin(reasoningOfRedacted(readText(block.data) ?? ""), blockPath));
        break;
      case "server_tool_use":
      case "web_search_tool_result":
        if (block.type === "server_tool_use" && block.name !== SEARCH_NAME) {
          report.refuseType(blockPath, block.type, "a tool of Anthropic's own");
        } else report.note(`${blockPath} left out: the record of a finished web search`);
        break;
      case "tool_use":
        items.push(readToolUse(block, blockPath, report));
        break;
      default:
        report.refuseType(blockPath, block.type, "no counterpart in the other protocol");
    }
  }
  flush();
  return items;
}
