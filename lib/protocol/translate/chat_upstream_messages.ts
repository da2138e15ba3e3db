/**
 * Turns of a hub request as chat messages.
 */
import type { AssistantEntry, CallResult, HubTurn } from "./hub_turns.ts";
import { isObject, type JsonObject, originOf, readText } from "./json.ts";
import { PART_SEPARATOR, reasoningOrigin, reasoningTexts } from "./reasoning_carrier.ts";
import type { TranslationReport } from "./report.ts";
import type { TargetQuirks } from "./targets.ts";

export function writeChatMessages(
  turns: readonly HubTurn[],
  quirks: TargetQuirks,
  report: TranslationReport,
): JsonObject[] {
  const messages: JsonObject[] = [];
  for (const turn of turns) {
    switch (turn.role) {
      case "system":
      case "developer":
        writeSystem(turn.role, turn.text, quirks, messages);
        break;
      case "user":
        messages.push({ role: "user", content: chatParts(turn.parts, report) });
        break;
      case "assistant":
        messages.push(...assistantMessage(turn.entries, quirks, report));
        break;
      case "results":
        messages.push(...resultMessages(turn.results, report));
        break;
      default:
        return turn satisfies never;
    }
  }
  return messages;
}

function writeSystem(
  role: "system" | "developer",
  text: string,
  quirks: TargetQuirks,
  messages: JsonObject[],
): void {
  const last = messages.at(-1);
  if (quirks.developerRole) messages.push({ role, content: text });
  // Many chat templates take one system message alone; what follows another one joins it.
  else if (last?.role === "system") last.content = `${last.content}${PART_SEPARATOR}${text}`;
  else messages.push({ role: "system", content: text });
}

/** Parts of a user message; a lone text is sent as a text, which every host understands. */
function chatParts(parts: readonly JsonObject[], report: TranslationReport): string | JsonObject[] {
  const only = parts[0];
  if (parts.length === 1 && only!.type === "input_text") return readText(only!.text) ?? "";
  return parts.map((part) => chatPart(part, report));
}

function chatPart(part: JsonObject, report: TranslationReport): JsonObject {
  const path = originOf(part, "input");
  if (part.type === "input_text") return { type: "text", text: readText(part.text) ?? "" };
  if (part.type === "input_image") {
    const url = readText(part.image_url);
    if (url === null) {
      report.refuse(`${path}.file_id`, "a file id is known to the provider that stored it alone");
    }
    const detail = readText(part.detail);
    const known = detail === null || detail === "auto" ? {} : { detail };
    return { type: "image_url", image_url: { url: url ?? "", ...known } };
  }
  if (readText(part.file_url) !== null) {
    report.refuse(`${path}.file_url`, "chat takes files by their data alone");
  }
  const { type: _type, detail: _detail, ...file } = part;
  return { type: "file", file };
}

function assistantMessage(
  entries: readonly AssistantEntry[],
  quirks: TargetQuirks,
  report: TranslationReport,
): JsonObject[] {
  const texts: string[] = [];
  const refusals: string[] = [];
  const reasoning: string[] = [];
  const calls: JsonObject[] = [];
  for (const entry of entries) {
    switch (entry.kind) {
      case "text":
        texts.push(entry.text);
        break;
      case "refusal":
        refusals.push(entry.text);
        break;
      case "reasoning":
        reasoning.push(...plainReasoning(entry.item, entry.path, report));
        break;
      case "call":
        calls.push(chatCall(entry, quirks));
        break;
      default:
        return entry satisfies never;
    }
  }
  // A turn of foreign reasoning alone leaves nothing to say.
  if (texts.length + refusals.length + reasoning.length + calls.length === 0) return [];
  return [{
    role: "assistant",
    content: texts.length > 0 ? texts.join(PART_SEPARATOR) : calls.length + refusals.length > 0 ? null : "",
    ...(refusals.length === 0 ? {} : { refusal: refusals.join(PART_SEPARATOR) }),
    ...(reasoning.length === 0 ? {} : { reasoning_content: reasoning.join(PART_SEPARATOR) }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }];
}

/** Reasoning goes back to a chat upstream only where a chat upstream said it in the first place. */
function plainReasoning(item: JsonObject, path: string, report: TranslationReport): string[] {
  if (reasoningOrigin(readText(item.encrypted_content)) === "chat") {
    const { summary, content } = reasoningTexts(item);
    return [...summary, ...content];
  }
  report.note(`${path} left out: reasoning of another provider`);
  return [];
}

function chatCall(entry: AssistantEntry & { kind: "call" }, quirks: TargetQuirks): JsonObject {
  if (entry.customInput !== null && quirks.customTools) {
    return { id: entry.callId, type: "custom", custom: { name: entry.name, input: entry.customInput } };
  }
  return { id: entry.callId, type: "function", function: { name: entry.name, arguments: entry.arguments } };
}

/**
 * Results of tools. Chat's tool messages hold text alone: pictures and files follow in a user message that says which
 * call they belong to, after all results, because nothing may stand between a call's turn and its results.
 */
function resultMessages(results: readonly CallResult[], report: TranslationReport): JsonObject[] {
  const messages: JsonObject[] = [];
  const attachments: JsonObject[] = [];
  for (const { callId, output } of results) {
    if (typeof output === "string") {
      messages.push({ role: "tool", tool_call_id: callId, content: output });
      continue;
    }
    const texts = output.filter((part) => part.type === "input_text").map((part) =>
      readText(part.text) ?? ""
    );
    const others = output.filter((part) => isObject(part) && part.type !== "input_text");
    if (others.length > 0) {
      texts.push(ATTACHED);
      attachments.push({ type: "text", text: `Attachments of the result of tool call ${callId}:` });
      attachments.push(...others.map((part) => chatPart(part, report)));
    }
    messages.push({ role: "tool", tool_call_id: callId, content: texts.join("\n") });
  }
  if (attachments.length > 0) messages.push({ role: "user", content: attachments });
  return messages;
}

const ATTACHED = "(attachments follow in the next message)";
