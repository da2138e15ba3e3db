/** A call of Claude Code's shell tool as Codex streams it. Made. */
import { created, event, type Step } from "../../lib/demo/simulated_replies.ts";

/** All of the turn but its end. */
export function codexToolCall(command: string): Step[] {
  const item = {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    name: "Bash",
    arguments: JSON.stringify({ command, description: "say it" }),
  };
  return [
    created("resp_tool"),
    event("response.output_item.added", {
      type: "response.output_item.added",
      output_index: 0,
      item: { ...item, arguments: "" },
    }),
    event("response.function_call_arguments.delta", {
      type: "response.function_call_arguments.delta",
      output_index: 0,
      item_id: "fc_1",
      delta: item.arguments,
    }),
    event("response.function_call_arguments.done", {
      type: "response.function_call_arguments.done",
      output_index: 0,
      item_id: "fc_1",
      arguments: item.arguments,
    }),
    event("response.output_item.done", { type: "response.output_item.done", output_index: 0, item }),
  ];
}
