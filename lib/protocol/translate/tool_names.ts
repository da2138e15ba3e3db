/**
 * Tools as one flat list of functions, and the way back from a flat name to what a Responses client calls it.
 *
 * Chat and Anthropic know named functions alone. Responses also has free-text (`custom`) tools, namespaces, and tools
 * whose schema is built in but which the client itself runs (`local_shell`, `shell`, `apply_patch`, `tool_search`).
 */
import { entryOf } from "./json.ts";

export type ToolForm = "function" | "custom" | "local_shell" | "shell" | "apply_patch" | "tool_search";

export interface ToolName {
  readonly form: ToolForm;
  readonly name: string;
  readonly namespace: string | null;
}

/** Flat name -> tool; only the names that do not simply mean a function of that name. */
export type ToolNames = Readonly<Record<string, ToolName>>;

/** @returns the tool behind a name an upstream used; unknown names are functions. */
export function toolNamed(tools: ToolNames, flatName: string): ToolName {
  return entryOf(tools, flatName) ?? { form: "function", name: flatName, namespace: null };
}

/** The one name under which a tool goes to an upstream without namespaces. */
export function flatName(name: string, namespace: string | null): string {
  if (namespace === null || namespace === "") return name;
  return namespace.endsWith("__") || name.startsWith("__") ? namespace + name : `${namespace}__${name}`;
}
