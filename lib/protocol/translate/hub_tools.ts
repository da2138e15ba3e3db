/**
 * The tools of a hub request as one flat list, for upstreams that know named functions alone.
 */
import { builtInOf } from "./built_in_tools.ts";
import { isObject, type JsonObject, readList, readText } from "./json.ts";
import type { TranslationReport } from "./report.ts";
import type { HubRequest } from "./sides.ts";
import { SEARCH_NAME } from "./web_search.ts";
import { flatName, type ToolName, type ToolNames } from "./tool_names.ts";

export interface FlatTool {
  /** The one name the upstream knows. */
  readonly name: string;
  readonly description: string | null;
  readonly parameters: JsonObject;
  readonly strict: boolean;
  /** The format of a free-text tool, where the upstream knows such tools; else `null`. */
  readonly custom: { readonly format: JsonObject | null } | null;
}

export interface FlatTools {
  readonly tools: readonly FlatTool[];
  readonly names: ToolNames;
  /** Web search with the upstream's own means was asked for, in the hub's form. */
  readonly webSearch: JsonObject | null;
}

export interface ToolAbilities {
  readonly customTools: boolean;
  readonly webSearch: boolean;
}

/** @param abilities  what the upstream knows besides functions. */
export function readHubTools(
  hub: HubRequest,
  abilities: ToolAbilities,
  report: TranslationReport,
): FlatTools {
  const reader = new ToolReader(abilities, report);
  readList(hub.tools).forEach((tool, index) => reader.add(tool, `tools[${index}]`));
  // Tools a client found while the conversation went on count from then on.
  readList(hub.input).forEach((item, index) => {
    if (!isObject(item) || (item.type !== "additional_tools" && item.type !== "tool_search_output")) return;
    readList(item.tools).forEach((tool, at) => reader.add(tool, `input[${index}].tools[${at}]`));
  });
  return { tools: [...reader.tools.values()], names: reader.names, webSearch: reader.webSearch };
}

class ToolReader {
  readonly tools = new Map<string, FlatTool>();
  readonly names: Record<string, ToolName> = {};
  webSearch: JsonObject | null = null;
  readonly #abilities: ToolAbilities;
  readonly #report: TranslationReport;

  constructor(abilities: ToolAbilities, report: TranslationReport) {
    this.#abilities = abilities;
    this.#report = report;
  }

  add(tool: unknown, path: string, namespace: string | null = null): void {
    if (!isObject(tool)) return this.#report.refuse(path, "must be an object");
    const type = readText(tool.type);
    if (type === "function") return this.#addFunction(tool, namespace);
    if (type === "custom") return this.#addCustom(tool, path, namespace);
    if (type === "namespace" && namespace === null) {
      const name = readText(tool.name) ?? "";
      readList(tool.tools).forEach((one, index) => this.add(one, `${path}.tools[${index}]`, name));
      return;
    }
    if (type === "web_search" || type === "web_search_preview" || type === "web_search_2025_08_26") {
      return this.#addWebSearch(tool, path);
    }
    const builtIn = builtInOf(type);
    if (
      builtIn === null || builtIn.form !== type || (type === "tool_search" && tool.execution !== "client")
    ) {
      return this.#report.refuseType(path, tool.type, "a tool its provider runs, unknown to the upstream");
    }
    this.names[builtIn.form] = { form: builtIn.form, name: builtIn.form, namespace: null };
    this.#put({
      name: builtIn.form,
      description: readText(tool.description) ?? builtIn.description,
      parameters: isObject(tool.parameters) ? tool.parameters : builtIn.parameters,
      strict: false,
      custom: null,
    });
  }

  #addFunction(tool: JsonObject, namespace: string | null): void {
    const name = readText(tool.name) ?? "";
    const flat = flatName(name, namespace);
    if (namespace !== null) this.names[flat] = { form: "function", name, namespace };
    this.#put({
      name: flat,
      description: readText(tool.description),
      parameters: objectSchema(tool.parameters),
      strict: tool.strict === true,
      custom: null,
    });
  }

  #addCustom(tool: JsonObject, path: string, namespace: string | null): void {
    const name = readText(tool.name) ?? "";
    const flat = flatName(name, namespace);
    const format = isObject(tool.format) ? tool.format : null;
    if (this.#abilities.customTools && namespace === null) {
      const custom = { format };
      this.#put({ name, description: readText(tool.description), parameters: {}, strict: false, custom });
      return;
    }
    this.names[flat] = { form: "custom", name, namespace };
    const grammar = format?.type === "grammar" ? format : null;
    if (grammar !== null) {
      this.#report.note(`${path}.format told in the tool's description: no grammars upstream`);
    }
    this.#put({
      name: flat,
      description: [readText(tool.description), grammarHint(grammar)].filter(Boolean).join("\n\n") || null,
      parameters: CUSTOM_PARAMETERS,
      strict: false,
      custom: null,
    });
  }

  #addWebSearch(tool: JsonObject, path: string): void {
    if (tool.external_web_access === false) {
      // Codex offers it by default; an index of its provider is nothing another one could search.
      this.#report.note(`${path} left out: searches an index of OpenAI alone`);
    } else if (this.#abilities.webSearch) this.webSearch = tool;
    else this.#report.refuseType(path, tool.type, "the upstream has no web search of its own");
  }

  #put(tool: FlatTool): void {
    if (!this.tools.has(tool.name)) this.tools.set(tool.name, tool);
  }
}

/** A free-text tool as a function with one text. */
const CUSTOM_PARAMETERS: JsonObject = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
};

function grammarHint(grammar: JsonObject | null): string | null {
  if (grammar === null) return null;
  return `The input must match this ${grammar.syntax} grammar:\n${grammar.definition}`;
}

/** Functions without parameters, and schemas that leave out what every schema of arguments is. */
export function objectSchema(parameters: unknown): JsonObject {
  if (!isObject(parameters)) return { type: "object", properties: {} };
  return parameters.type === undefined ? { type: "object", ...parameters } : parameters;
}

export type HubToolChoice =
  | { readonly mode: "auto" | "none" | "required" }
  | { readonly mode: "named"; readonly name: string; readonly custom: boolean };

/** The choice, and the subset of tools it allows where it names one. */
export function readHubToolChoice(
  hub: HubRequest,
  tools: FlatTools,
  report: TranslationReport,
): { readonly choice: HubToolChoice | null; readonly allowed: ReadonlySet<string> | null } {
  const choice = hub.tool_choice ?? null;
  if (choice === null) return { choice: null, allowed: null };
  if (choice === "auto" || choice === "none" || choice === "required") {
    return { choice: { mode: choice }, allowed: null };
  }
  if (isObject(choice)) {
    if (choice.type === "allowed_tools") {
      const allowed = readList(choice.tools).map((tool) => isObject(tool) ? chosenName(tool) : null);
      const mode = choice.mode === "required" ? "required" : "auto";
      if (!allowed.includes(null)) return { choice: { mode }, allowed: new Set(allowed as string[]) };
    }
    const name = chosenName(choice);
    const tool = tools.tools.find((one) => one.name === name);
    if (name !== null) return { choice: { mode: "named", name, custom: !!tool?.custom }, allowed: null };
  }
  report.refuseType(
    report.field("tool_choice"),
    isObject(choice) ? choice.type : choice,
    "no such choice upstream",
  );
  return { choice: null, allowed: null };
}

function chosenName(choice: JsonObject): string | null {
  if (choice.type === "function" || choice.type === "custom") {
    const name = readText(choice.name);
    return name === null ? null : flatName(name, readText(choice.namespace));
  }
  if (choice.type === "web_search") return SEARCH_NAME;
  const builtIn = builtInOf(choice.type);
  return builtIn !== null && builtIn.form === choice.type ? builtIn.form : null;
}
