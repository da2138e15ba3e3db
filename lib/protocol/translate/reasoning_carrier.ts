/**
 * Reversible carriers for what only one protocol can sign: a client brings the block back and the upstream gets its
 * own bytes again.
 *
 * A carrier starts with `hf.` and a word. In a Responses item it lives in `encrypted_content`, in an Anthropic block
 * in `signature`. Both are opaque to every client.
 */
import { isObject, type JsonObject, readList, readText } from "./json.ts";
import type { RedactedThinkingBlock, ThinkingBlock } from "./wire_types.ts";

/** Anthropic `signature` inside a Responses item. */
const SIGNATURE = "hf.sig1:";
/** Anthropic `redacted_thinking.data` inside a Responses item. */
const REDACTED = "hf.red1:";
/** Marks plain reasoning text of a chat upstream, which may be given back to one. */
const PLAIN = "hf.txt1:";
/** A whole Responses reasoning item (id, part lengths, encrypted content) inside an Anthropic signature. */
const ITEM = "hf.enc1:";

/** Between two summary parts where a protocol has one text alone. */
export const PART_SEPARATOR = "\n\n";

export type ReasoningOrigin = "anthropic" | "redacted" | "chat" | "openai" | "unsigned";

/** Who can read the encrypted part of a Responses reasoning item. */
export function reasoningOrigin(encryptedContent: string | null): ReasoningOrigin {
  if (encryptedContent === null || encryptedContent === "") return "unsigned";
  if (encryptedContent.startsWith(SIGNATURE)) return "anthropic";
  if (encryptedContent.startsWith(REDACTED)) return "redacted";
  if (encryptedContent.startsWith(PLAIN)) return "chat";
  return "openai";
}

export const PLAIN_REASONING = PLAIN;

export function carrySignature(signature: string): string {
  return SIGNATURE + signature;
}

export function carryRedacted(data: string): string {
  return REDACTED + data;
}

/** The text parts of a reasoning item, summaries first, as the clients of one-text protocols see them. */
export function reasoningTexts(item: JsonObject): { summary: string[]; content: string[] } {
  return { summary: partTexts(item.summary), content: partTexts(item.content) };
}

/**
 * A Responses reasoning item as an Anthropic block.
 *
 * @returns `null` for an item with neither text nor encrypted content: there is nothing to show or to bring back.
 */
export function blockOfReasoning(item: JsonObject): ThinkingBlock | RedactedThinkingBlock | null {
  const encrypted = readText(item.encrypted_content);
  const { summary, content } = reasoningTexts(item);
  const thinking = [...summary, ...content].join(PART_SEPARATOR);
  const origin = reasoningOrigin(encrypted);
  if (origin === "redacted") return { type: "redacted_thinking", data: encrypted!.slice(REDACTED.length) };
  if (origin === "unsigned" && thinking === "") return null;
  return { type: "thinking", thinking, signature: signatureOfReasoning(item) };
}

/** The `signature` an Anthropic client gets for a reasoning item that is not redacted. */
export function signatureOfReasoning(item: JsonObject): string {
  const encrypted = readText(item.encrypted_content) ?? "";
  if (encrypted.startsWith(SIGNATURE)) return encrypted.slice(SIGNATURE.length);
  const { summary, content } = reasoningTexts(item);
  const lengths = (texts: string[]) => texts.map((text) => text.length).join(",");
  // An id that is no plain word would break the header; reasoning works without its id.
  const id = /^[\w-]*$/.test(readText(item.id) ?? "") ? readText(item.id) ?? "" : "";
  return `${ITEM}${id}:${lengths(summary)}:${lengths(content)}:${encrypted}`;
}

/** An Anthropic thinking block as a Responses reasoning item; the inverse of `blockOfReasoning()`. */
export function reasoningOfThinking(thinking: string, signature: string): JsonObject {
  const item = unpackItem(thinking, signature);
  if (item !== null) return item;
  return {
    type: "reasoning",
    summary: thinking === "" ? [] : [{ type: "summary_text", text: thinking }],
    ...(signature === "" ? {} : { encrypted_content: carrySignature(signature) }),
  };
}

export function reasoningOfRedacted(data: string): JsonObject {
  return { type: "reasoning", summary: [], encrypted_content: carryRedacted(data) };
}

/** The signature and data an Anthropic upstream once gave, byte for byte; `null` when it gave none. */
export function anthropicBlockOf(item: JsonObject): ThinkingBlock | RedactedThinkingBlock | null {
  const origin = reasoningOrigin(readText(item.encrypted_content));
  return origin === "anthropic" || origin === "redacted" ? blockOfReasoning(item) : null;
}

function unpackItem(thinking: string, signature: string): JsonObject | null {
  if (!signature.startsWith(ITEM)) return null;
  const [id, summaryLengths, contentLengths] = signature.slice(ITEM.length).split(":", 3);
  if (id === undefined || summaryLengths === undefined || contentLengths === undefined) return null;
  const header = ITEM.length + id.length + summaryLengths.length + contentLengths.length + 3;
  const encrypted = signature.slice(header);
  const texts = cutTexts(thinking, [summaryLengths, contentLengths]);
  const item: JsonObject = { type: "reasoning" };
  if (id !== "") item.id = id;
  item.summary = texts[0]!.map((text) => ({ type: "summary_text", text }));
  if (texts[1]!.length > 0) item.content = texts[1]!.map((text) => ({ type: "reasoning_text", text }));
  if (encrypted !== "") item.encrypted_content = encrypted;
  return item;
}

/** Splits a joined text at the remembered lengths; a text that was edited since stays in one piece. */
function cutTexts(text: string, lengthLists: readonly string[]): string[][] {
  const lists = lengthLists.map((list) => list === "" ? [] : list.split(",").map(Number));
  const count = lists.reduce((sum, list) => sum + list.length, 0);
  const total = lists.flat().reduce((sum, length) => sum + length, 0);
  if (total + Math.max(0, count - 1) * PART_SEPARATOR.length !== text.length) {
    return [text === "" ? [] : [text], []];
  }
  let at = 0;
  return lists.map((list) =>
    list.map((length) => {
      const part = text.slice(at, at + length);
      at += length + PART_SEPARATOR.length;
      return part;
    })
  );
}

function partTexts(parts: unknown): string[] {
  return readList(parts).flatMap((part) => {
    const text = isObject(part) ? readText(part.text) : null;
    return text === null || text === "" ? [] : [text];
  });
}
