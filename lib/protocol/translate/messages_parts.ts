/**
 * Anthropic content blocks in the hub's form.
 *
 * Used for Anthropic clients, and for chat clients that put such blocks into chat content.
 */
import { isObject, type JsonObject, readList, readText, withOrigin } from "./json.ts";
import type { TranslationReport } from "./report.ts";

const FOREIGN_FILE = "a file id is known to the provider that stored it alone";

/**
 * A block of a user turn as hub parts: one, or those of a document made of blocks; none after a refusal.
 *
 * `tool_result` is not a part (`readToolResult()`).
 */
export function readMessagesPart(block: JsonObject, path: string, report: TranslationReport): JsonObject[] {
  switch (block.type) {
    case "text":
      return [withOrigin({ type: "input_text", text: readText(block.text) ?? "" }, path)];
    case "image":
      return readImage(block, path, report);
    case "document":
      return readDocument(block, path, report);
    default:
      report.refuseType(path, block.type, "no counterpart in the other protocol");
      return [];
  }
}

/** A list of blocks as hub parts. */
function readMessagesParts(
  blocks: readonly unknown[],
  path: string,
  report: TranslationReport,
): JsonObject[] {
  return blocks.flatMap((block, index) => {
    const blockPath = `${path}[${index}]`;
    if (isObject(block)) return readMessagesPart(block, blockPath, report);
    report.refuse(blockPath, "must be an object");
    return [];
  });
}

function readImage(block: JsonObject, path: string, report: TranslationReport): JsonObject[] {
  const source = isObject(block.source) ? block.source : {};
  const url = source.type === "base64"
    ? `data:${readText(source.media_type) ?? "image/png"};base64,${readText(source.data) ?? ""}`
    : source.type === "url"
    ? readText(source.url) ?? ""
    : null;
  if (url === null) {
    report.refuseType(`${path}.source`, source.type, FOREIGN_FILE);
    return [];
  }
  return [withOrigin({ type: "input_image", image_url: url, detail: "auto" }, path)];
}

function readDocument(block: JsonObject, path: string, report: TranslationReport): JsonObject[] {
  const source = isObject(block.source) ? block.source : {};
  if (isObject(block.citations) && block.citations.enabled === true) {
    report.refuse(`${path}.citations`, "citations of documents are known to Anthropic alone");
    return [];
  }
  if (readText(block.context) !== null) report.note(`${path}.context left out: no counterpart`);
  const title = readText(block.title);
  switch (source.type) {
    case "base64": {
      const type = readText(source.media_type) ?? "application/pdf";
      const data = `data:${type};base64,${readText(source.data) ?? ""}`;
      return [withOrigin({ type: "input_file", filename: title ?? "document.pdf", file_data: data }, path)];
    }
    case "text": {
      const data = `data:text/plain;base64,${base64OfText(readText(source.data) ?? "")}`;
      return [withOrigin({ type: "input_file", filename: title ?? "document.txt", file_data: data }, path)];
    }
    case "url":
      return [withOrigin({ type: "input_file", file_url: readText(source.url) ?? "" }, path)];
    case "content": {
      const content = source.content;
      const blocks = typeof content === "string" ? [{ type: "text", text: content }] : readList(content);
      return readMessagesParts(blocks, `${path}.source.content`, report);
    }
    default:
      report.refuseType(`${path}.source`, source.type, FOREIGN_FILE);
      return [];
  }
}

/** A `tool_use` block as a function call. */
export function readToolUse(block: JsonObject, path: string, report: TranslationReport): JsonObject {
  if (readText(block.toolset_name) !== null) {
    report.refuse(`${path}.toolset_name`, "toolsets are Anthropic's own");
  }
  return withOrigin({
    type: "function_call",
    call_id: readText(block.id) ?? "",
    name: readText(block.name) ?? "",
    arguments: JSON.stringify(block.input ?? {}),
  }, path);
}

/** The words that stand before the output of a tool that failed: no other protocol has a flag for it. */
const TOOL_ERROR_PREFIX = "The tool reported an error:\n";

/** A `tool_result` block as a call's output. */
export function readToolResult(block: JsonObject, path: string, report: TranslationReport): JsonObject {
  const failed = block.is_error === true;
  const content = block.content;
  let output: string | JsonObject[];
  if (typeof content === "string" || content === null || content === undefined) {
    output = (failed ? TOOL_ERROR_PREFIX : "") + (content ?? "");
  } else {
    output = readMessagesParts(readList(content), `${path}.content`, report);
    if (failed) output.unshift({ type: "input_text", text: TOOL_ERROR_PREFIX });
    if (output.length === 0) output = "";
  }
  return withOrigin(
    { type: "function_call_output", call_id: readText(block.tool_use_id) ?? "", output },
    path,
  );
}

/** Base64 of a text's UTF-8 bytes. */
export function base64OfText(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  // In slices: a spread of a whole document would not fit the call's arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

/** The text behind base64 of UTF-8, or `null` when it is neither. */
export function textOfBase64(base64: string): string | null {
  try {
    const binary = atob(base64);
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
