/**
 * Which hub item a tool call of an upstream becomes: what the client calls the tool decides it.
 */
import { builtInOf } from "./built_in_tools.ts";
import type { CallShape } from "./hub_items.ts";
import { type JsonObject, parseObject, readText } from "./json.ts";
import { type ToolName, toolNamed, type ToolNames } from "./tool_names.ts";

/** @param flatName  the name the upstream used. */
export function callShape(tools: ToolNames, flatName: string, callId: string): CallShape {
  const tool = toolNamed(tools, flatName);
  if (tool.form === "function") return functionShape(tool, callId);
  if (tool.form === "custom") {
    return {
      ...customShape(tool, callId),
      streams: false,
      finishItem: (text) => ({ input: customInput(text) }),
    };
  }
  const builtIn = builtInOf(tool.form)!;
  return {
    item: { type: builtIn.callType, call_id: callId },
    idPrefix: "call_item",
    textField: null,
    streams: false,
    finishItem: (text) => builtIn.membersOf(parseObject(text) ?? {}),
  };
}

/** A call of an upstream that knows free-text tools itself: its pieces are the text. */
export function nativeCustomShape(name: string, callId: string): CallShape {
  return customShape({ form: "custom", name, namespace: null }, callId);
}

function functionShape(tool: ToolName, callId: string): CallShape {
  return {
    item: { type: "function_call", call_id: callId, ...naming(tool) },
    idPrefix: "fc",
    textField: "arguments",
    streams: true,
    // Every client parses the arguments; a call without any says so with an empty object.
    finishItem: (text) => ({ arguments: text === "" ? "{}" : text }),
  };
}

function customShape(tool: ToolName, callId: string): CallShape {
  return {
    item: { type: "custom_tool_call", call_id: callId, ...naming(tool) },
    idPrefix: "ctc",
    textField: "input",
    streams: true,
    finishItem: (text) => ({ input: text }),
  };
}

function naming(tool: ToolName): JsonObject {
  return tool.namespace === null ? { name: tool.name } : { name: tool.name, namespace: tool.namespace };
}

/** The text inside the arguments of a free-text tool told as a function; a model that forgot the object is believed. */
function customInput(argumentsText: string): string {
  const object = parseObject(argumentsText);
  return (object === null ? null : readText(object.input)) ?? argumentsText;
}
