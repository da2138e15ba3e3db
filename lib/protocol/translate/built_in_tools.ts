/**
 * Tools whose schema the Responses API has built in and which the client itself runs, told as plain functions.
 *
 * The upstream sees a function; its call becomes the item the client expects, and the client's result a text.
 */
import { type JsonObject, parseObject, readList, readText } from "./json.ts";
import type { ToolForm } from "./tool_names.ts";

export type BuiltInForm = Exclude<ToolForm, "function" | "custom">;

export interface BuiltInTool {
  readonly form: BuiltInForm;
  readonly callType: string;
  readonly outputType: string;
  readonly description: string;
  readonly parameters: JsonObject;
  /** The arguments of a call item, as an object. */
  argumentsOf(call: JsonObject): JsonObject;
  /** The members a call item gets from the arguments; broken ones make a call that the client will turn down. */
  membersOf(args: JsonObject): JsonObject;
  /** What the client reports, as text for the model. */
  outputText(output: JsonObject): string;
}

const TEXT = { type: "string" };
const NUMBER = { type: "number" };
const TEXTS = { type: "array", items: TEXT };

function schema(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: "object", properties, required, additionalProperties: false };
}

const BUILT_INS: readonly BuiltInTool[] = [
  {
    form: "local_shell",
    callType: "local_shell_call",
    outputType: "local_shell_call_output",
    description: "Runs a command on the user's machine and returns its output.",
    parameters: schema({
      command: { ...TEXTS, description: "The command and its arguments." },
      working_directory: TEXT,
      timeout_ms: NUMBER,
      env: { type: "object", additionalProperties: TEXT },
      user: TEXT,
    }, ["command"]),
    argumentsOf: (call) => without(call.action, "type"),
    membersOf: (args) => ({
      action: { ...args, type: "exec", command: readList(args.command), env: args.env ?? {} },
    }),
    outputText: (output) => readText(output.output) ?? "",
  },
  {
    form: "shell",
    callType: "shell_call",
    outputType: "shell_call_output",
    description: "Runs shell commands and returns the output of each.",
    parameters: schema({ commands: TEXTS, timeout_ms: NUMBER, max_output_length: NUMBER }, ["commands"]),
    argumentsOf: (call) => without(call.action, ""),
    membersOf: (args) => ({
      action: {
        commands: readList(args.commands),
        timeout_ms: args.timeout_ms ?? null,
        max_output_length: args.max_output_length ?? null,
      },
      environment: null,
    }),
    outputText: (output) => JSON.stringify(output.output ?? []),
  },
  {
    form: "apply_patch",
    callType: "apply_patch_call",
    outputType: "apply_patch_call_output",
    description: "Creates, updates or deletes one file by a V4A diff.",
    parameters: schema({
      type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
      path: TEXT,
      diff: { ...TEXT, description: "Absent when a file is deleted." },
    }, ["type", "path"]),
    argumentsOf: (call) => without(call.operation, ""),
    membersOf: (args) => ({ operation: { type: args.type ?? "update_file", ...args } }),
    outputText: (output) => [readText(output.status), readText(output.output)].filter(Boolean).join(": "),
  },
  {
    form: "tool_search",
    callType: "tool_search_call",
    outputType: "tool_search_output",
    description: "Finds further tools.",
    parameters: schema({ query: TEXT, limit: NUMBER }, ["query"]),
    argumentsOf: (call) =>
      typeof call.arguments === "string" ? parseObject(call.arguments) ?? {} : without(call.arguments, ""),
    membersOf: (args) => ({ execution: "client", arguments: args }),
    outputText: (output) => JSON.stringify(output.tools ?? []),
  },
];

const BY_TYPE = new Map(BUILT_INS.flatMap((tool) => [
  [tool.form as string, tool],
  [tool.callType, tool],
  [tool.outputType, tool],
]));

/** The tool of a tool type, a call item's type or an output item's type. */
export function builtInOf(type: unknown): BuiltInTool | null {
  return typeof type === "string" ? BY_TYPE.get(type) ?? null : null;
}

function without(value: unknown, key: string): JsonObject {
  if (typeof value !== "object" || value === null) return {};
  const { [key]: _left, ...rest } = value as JsonObject;
  return Object.fromEntries(Object.entries(rest).filter(([, one]) => one !== null));
}
