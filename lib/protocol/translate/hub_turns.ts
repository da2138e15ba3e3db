/**
 * The input of a hub request as turns: what chat and Anthropic upstreams both are told, in their own words each.
 *
 * Every item type a Responses client may send is either read here or refused by name.
 */
import { builtInOf } from "./built_in_tools.ts";
import { entryOf, isObject, type JsonObject, originOf, readList, readText, withOrigin } from "./json.ts";
import { quoted, type TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import { flatName } from "./tool_names.ts";

export type AssistantEntry =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refusal"; readonly text: string }
  | { readonly kind: "reasoning"; readonly item: JsonObject; readonly path: string }
  | {
    readonly kind: "call";
    readonly callId: string;
    readonly name: string;
    /** JSON as the model wrote it, possibly broken. */
    readonly arguments: string;
    /** The bare text of a free-text call, else `null`. */
    readonly customInput: string | null;
  };

export interface CallResult {
  readonly callId: string;
  /** A text, or validated `input_text`, `input_image` and `input_file` parts. */
  readonly output: string | readonly JsonObject[];
}

export type HubTurn =
  | { readonly role: "system" | "developer"; readonly text: string }
  | { readonly role: "user"; readonly parts: readonly JsonObject[] }
  | { readonly role: "assistant"; readonly entries: AssistantEntry[] }
  | { readonly role: "results"; readonly results: CallResult[] };

export function readHubTurns(hub: HubRequest, report: TranslationReport): HubTurn[] {
  const reader = new TurnReader(report);
  const instructions = readText(hub.instructions);
  if (instructions !== null && instructions !== "") reader.turns.push({ role: "system", text: instructions });
  if (typeof hub.input === "string") {
    reader.turns.push({ role: "user", parts: [{ type: "input_text", text: hub.input }] });
  } else readList(hub.input).forEach((item, index) => reader.read(item, `input[${index}]`));
  return reader.turns;
}

/** Item types whose content is sealed for the provider that made it, or lies on its side. */
const SEALED = "known to the provider that made it alone";
const REFUSED_ITEMS: Readonly<Record<string, string>> = {
  item_reference: "the item is stored upstream",
  compaction: SEALED,
  compaction_summary: SEALED,
  compaction_trigger: "compaction is the Responses API's own",
  configuration_update: "no counterpart in the other protocol",
  program: SEALED,
  program_output: SEALED,
};

class TurnReader {
  readonly turns: HubTurn[] = [];
  readonly #report: TranslationReport;

  constructor(report: TranslationReport) {
    this.#report = report;
  }

  read(item: unknown, index: string): void {
    if (!isObject(item)) return this.#report.refuse(index, "must be an object");
    const path = originOf(item, index);
    const type = readText(item.type) ?? (item.role === undefined ? null : "message");
    switch (type) {
      case "message":
        return this.#readMessage(item, path);
      case "reasoning":
        return this.#addEntry({ kind: "reasoning", item, path });
      case "function_call":
        return this.#addCall(item, readText(item.arguments) ?? "", null);
      case "custom_tool_call": {
        const input = readText(item.input) ?? "";
        return this.#addCall(item, JSON.stringify({ input }), input);
      }
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#addResult(item, this.#readOutput(item.output, path));
      case "additional_tools":
        return;
      case "web_search_call":
        // A finished search holds nothing the model still needs: what it found is in the text after it.
        return this.#report.note(`${path} left out: the record of a finished web search`);
      default:
        return this.#readOther(item, type, path);
    }
  }

  #readOther(item: JsonObject, type: string | null, path: string): void {
    const builtIn = builtInOf(type);
    if (builtIn?.callType === type) {
      const args = JSON.stringify(builtIn!.argumentsOf(item));
      return this.#addCall({ ...item, name: builtIn!.form }, args, null);
    }
    if (builtIn?.outputType === type) return this.#addResult(item, builtIn!.outputText(item));
    const reason = entryOf(REFUSED_ITEMS, type ?? "") ?? "no counterpart in the other protocol";
    this.#report.refuseType(path, item.type, reason);
  }

  #readMessage(item: JsonObject, path: string): void {
    switch (item.role) {
      case "user":
        this.turns.push({ role: "user", parts: this.#readParts(item.content, path) });
        return;
      case "assistant":
        return this.#readAssistant(item.content, path);
      case "system":
      case "developer": {
        const texts = this.#readParts(item.content, path).map((part) => {
          if (part.type !== "input_text") {
            this.#report.refuseType(originOf(part, path), part.type, "a system message is text");
          }
          return readText(part.text) ?? "";
        });
        this.turns.push({ role: item.role, text: texts.join("\n\n") });
        return;
      }
      default:
        return this.#report.refuse(`${path}.role ${quoted(item.role)}`, "no such role upstream");
    }
  }

  #readParts(content: unknown, path: string): JsonObject[] {
    if (typeof content === "string") return [{ type: "input_text", text: content }];
    return readList(content).flatMap((part, index) => {
      const partPath = isObject(part)
        ? originOf(part, `${path}.content[${index}]`)
        : `${path}.content[${index}]`;
      if (isObject(part) && PART_TYPES.has(readText(part.type) ?? "")) {
        return part.type === "text" || part.type === "output_text"
          ? [{ type: "input_text", text: readText(part.text) ?? "" }]
          // A copy that knows its place: whoever cannot take it refuses it by name.
          : [withOrigin({ ...part }, partPath)];
      }
      this.#report.refuseType(
        partPath,
        isObject(part) ? part.type : part,
        "no counterpart in the other protocol",
      );
      return [];
    });
  }

  #readAssistant(content: unknown, path: string): void {
    if (typeof content === "string") return this.#addEntry({ kind: "text", text: content });
    // Parts of one message may break in mid-sentence; messages are entries of their own.
    let text = "";
    const flush = () => {
      this.#addEntry({ kind: "text", text });
      text = "";
    };
    readList(content).forEach((part, index) => {
      if (!isObject(part)) return this.#report.refuse(`${path}.content[${index}]`, "must be an object");
      if (part.type === "output_text" || part.type === "input_text" || part.type === "text") {
        text += readText(part.text) ?? "";
      } else if (part.type === "refusal") {
        flush();
        this.#addEntry({ kind: "refusal", text: readText(part.refusal) ?? "" });
      } else {
        const partPath = originOf(part, `${path}.content[${index}]`);
        this.#report.refuseType(partPath, part.type, "no counterpart in the other protocol");
      }
    });
    flush();
  }

  #readOutput(output: unknown, path: string): CallResult["output"] {
    if (typeof output === "string") return output;
    return output === null || output === undefined ? "" : this.#readParts(output, path);
  }

  #addCall(item: JsonObject, args: string, customInput: string | null): void {
    this.#addEntry({
      kind: "call",
      callId: readText(item.call_id) ?? readText(item.id) ?? "",
      name: flatName(readText(item.name) ?? "", readText(item.namespace)),
      arguments: args,
      customInput,
    });
  }

  #addEntry(entry: AssistantEntry): void {
    if ((entry.kind === "text" || entry.kind === "refusal") && entry.text === "") return;
    const last = this.turns.at(-1);
    if (last?.role === "assistant") last.entries.push(entry);
    else this.turns.push({ role: "assistant", entries: [entry] });
  }

  #addResult(item: JsonObject, output: CallResult["output"]): void {
    const result = { callId: readText(item.call_id) ?? readText(item.id) ?? "", output };
    const last = this.turns.at(-1);
    if (last?.role === "results") last.results.push(result);
    else this.turns.push({ role: "results", results: [result] });
  }
}

const PART_TYPES: ReadonlySet<string> = new Set([
  "input_text",
  "text",
  "output_text",
  "input_image",
  "input_file",
]);
