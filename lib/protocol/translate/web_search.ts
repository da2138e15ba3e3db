/**
 * Web search, the one tool both OpenAI and Anthropic run themselves: its offer, its record, its citations.
 *
 * A finished search is not brought back in the next turn: each provider seals its results for itself, and what was
 * found is in the text.
 */
import type { CallShape } from "./hub_items.ts";
import { isObject, type JsonObject, parseObject, readList, readNumber, readText } from "./json.ts";
import type { TranslationReport } from "./report.ts";
import type { TextCitation, ToldBlock } from "./wire_types.ts";

/** The name Anthropic gives the tool; its type carries a date. */
export const SEARCH_NAME = "web_search";
const SEARCH_TYPE = "web_search_20250305";

const KNOWN = new Set([
  "type",
  "name",
  "allowed_domains",
  "user_location",
  "cache_control",
  "blocked_domains",
]);

export function isMessagesSearch(tool: JsonObject): boolean {
  return (readText(tool.type) ?? "").startsWith("web_search_");
}

/** Anthropic's offer as the hub's. */
export function searchOfMessages(tool: JsonObject, path: string, report: TranslationReport): JsonObject {
  if (readList(tool.blocked_domains).length > 0) {
    report.refuse(`${path}.blocked_domains`, "only allowed domains can be carried");
  }
  report.noteExtras(tool, KNOWN, path);
  const domains = readList(tool.allowed_domains);
  return {
    type: "web_search",
    ...(domains.length === 0 ? {} : { filters: { allowed_domains: domains } }),
    ...(isObject(tool.user_location) ? { user_location: tool.user_location } : {}),
  };
}

/** The hub's offer as Anthropic's. */
export function messagesSearchTool(tool: JsonObject): JsonObject {
  const domains = isObject(tool.filters) ? readList(tool.filters.allowed_domains) : [];
  return {
    type: SEARCH_TYPE,
    name: SEARCH_NAME,
    ...(domains.length === 0 ? {} : { allowed_domains: domains }),
    ...(isObject(tool.user_location) ? { user_location: tool.user_location } : {}),
  };
}

/** A finished search of the hub as the two blocks of an Anthropic answer. */
export function searchBlocks(item: JsonObject): ToldBlock[] {
  const id = `srvtoolu_${(readText(item.id) ?? "").replace(/^ws_/, "")}`;
  const action = isObject(item.action) ? item.action : {};
  const query = readText(action.query) ?? readText(readList(action.queries)[0]) ?? readText(action.url) ?? "";
  const content = readList(action.sources).flatMap((source) => {
    const url = isObject(source) ? readText(source.url) : null;
    return url === null
      ? []
      : [{ type: "web_search_result" as const, url, title: url, encrypted_content: "", page_age: null }];
  });
  return [
    { type: "server_tool_use", id, name: SEARCH_NAME, input: { query } },
    { type: "web_search_tool_result", tool_use_id: id, content },
  ];
}

/** A search of an Anthropic answer as the hub's record of it; `text` is its input. */
export function searchShape(): CallShape {
  return {
    item: { type: "web_search_call" },
    idPrefix: "ws",
    textField: null,
    streams: false,
    finishItem: (text) => ({ action: { type: "search", query: readText(parseObject(text)?.query) ?? "" } }),
  };
}

/** A citation of a search, in the hub's form; it covers the text up to `textLength`. Others have no counterpart. */
export function annotationOfCitation(citation: unknown, textLength: number): JsonObject | null {
  if (!isObject(citation) || citation.type !== "web_search_result_location") return null;
  return {
    type: "url_citation",
    start_index: 0,
    end_index: textLength,
    title: readText(citation.title) ?? "",
    url: readText(citation.url) ?? "",
  };
}

/** The hub's citation as Anthropic's, with the words it covers. */
export function citationOfAnnotation(annotation: JsonObject, text: string): TextCitation | null {
  if (annotation.type !== "url_citation") return null;
  return {
    type: "web_search_result_location",
    url: readText(annotation.url) ?? "",
    title: readText(annotation.title) ?? "",
    cited_text: text.slice(readNumber(annotation.start_index) ?? 0, readNumber(annotation.end_index) ?? 0),
    encrypted_index: "",
  };
}
