/**
 * The JSON types of a Responses client's request, as far as other protocols can carry it.
 *
 * Source: the type files of `openai`; what Codex sends beyond them (namespaces, client-run tools) is optional.
 */
import {
  byType,
  chosenBy,
  FLAG,
  listOf,
  NUMBER,
  OBJECT,
  objectOf,
  optional,
  type Shape,
  TEXT,
  textOrListOf,
  textOrObject,
  withOneOf,
} from "./shape.ts";

const TEXT_PART = objectOf({ text: TEXT });

/** Parts of the hub's own form; chat clients mix some of them into their own content. */
export const RESPONSES_PART_SHAPES: Readonly<Record<string, Shape>> = {
  input_text: TEXT_PART,
  output_text: TEXT_PART,
  text: TEXT_PART,
  refusal: objectOf({ refusal: TEXT }),
  input_image: withOneOf(
    ["image_url", "file_id"],
    objectOf({ image_url: optional(TEXT), file_id: optional(TEXT), detail: optional(TEXT) }),
  ),
  input_file: withOneOf(
    ["file_data", "file_id", "file_url"],
    objectOf({
      file_data: optional(TEXT),
      file_id: optional(TEXT),
      file_url: optional(TEXT),
      filename: optional(TEXT),
    }),
  ),
};

const CONTENT = textOrListOf(byType(RESPONSES_PART_SHAPES));
const MESSAGE = objectOf({ content: CONTENT });

/** What every call and every result has; a call without a `call_id` goes by its own id. */
const CALL = { call_id: optional(TEXT), id: optional(TEXT) };
const NAMED_CALL = { ...CALL, name: TEXT, namespace: optional(TEXT) };
const RESULT = objectOf({ ...CALL, output: optional(CONTENT) });

const FUNCTION_TOOL = objectOf({
  name: TEXT,
  description: optional(TEXT),
  parameters: optional(OBJECT),
  strict: optional(FLAG),
});
const CUSTOM_TOOL = objectOf({
  name: TEXT,
  description: optional(TEXT),
  format: optional(byType({ grammar: objectOf({ syntax: TEXT, definition: TEXT }) })),
});
const SEARCH_TOOL = objectOf({
  external_web_access: optional(FLAG),
  filters: optional(objectOf({ allowed_domains: optional(listOf(TEXT)) })),
  user_location: optional(OBJECT),
});
const BUILT_IN_TOOL = objectOf({ description: optional(TEXT), parameters: optional(OBJECT) });

const TOOLS = listOf(byType({
  function: FUNCTION_TOOL,
  custom: CUSTOM_TOOL,
  namespace: objectOf({
    name: TEXT,
    tools: listOf(byType({ function: FUNCTION_TOOL, custom: CUSTOM_TOOL })),
  }),
  web_search: SEARCH_TOOL,
  web_search_preview: SEARCH_TOOL,
  web_search_2025_08_26: SEARCH_TOOL,
  local_shell: BUILT_IN_TOOL,
  shell: BUILT_IN_TOOL,
  apply_patch: BUILT_IN_TOOL,
  tool_search: BUILT_IN_TOOL,
}));

const TYPED_ITEM = byType({
  message: MESSAGE,
  reasoning: objectOf({
    id: optional(TEXT),
    summary: optional(listOf(byType({ summary_text: TEXT_PART }))),
    content: optional(listOf(byType({ reasoning_text: TEXT_PART, text: TEXT_PART }))),
    encrypted_content: optional(TEXT),
  }),
  function_call: objectOf({ ...NAMED_CALL, arguments: optional(TEXT) }),
  custom_tool_call: objectOf({ ...NAMED_CALL, input: optional(TEXT) }),
  function_call_output: RESULT,
  custom_tool_call_output: RESULT,
  local_shell_call: objectOf({ ...CALL, action: OBJECT }),
  local_shell_call_output: objectOf({ ...CALL, output: optional(TEXT) }),
  shell_call: objectOf({ ...CALL, action: OBJECT }),
  shell_call_output: objectOf({ ...CALL, output: optional(listOf(OBJECT)) }),
  apply_patch_call: objectOf({ ...CALL, operation: OBJECT }),
  apply_patch_call_output: objectOf({ ...CALL, status: optional(TEXT), output: optional(TEXT) }),
  tool_search_call: objectOf({ ...CALL, arguments: optional(textOrObject(OBJECT)) }),
  tool_search_output: objectOf({ ...CALL, tools: optional(TOOLS) }),
  additional_tools: objectOf({ tools: optional(TOOLS) }),
});
const WRONG_TYPE = objectOf({ type: TEXT });

const ITEM = chosenBy((item) => {
  if (item.type === undefined || item.type === null) return item.role === undefined ? null : MESSAGE;
  return typeof item.type === "string" ? TYPED_ITEM : WRONG_TYPE;
});

const CHOSEN_TOOL = byType({
  function: objectOf({ name: TEXT, namespace: optional(TEXT) }),
  custom: objectOf({ name: TEXT, namespace: optional(TEXT) }),
});

export const RESPONSES_REQUEST_SHAPE: Shape = objectOf({
  input: textOrListOf(ITEM),
  instructions: optional(TEXT),
  stream: optional(FLAG),
  max_output_tokens: optional(NUMBER),
  temperature: optional(NUMBER),
  top_p: optional(NUMBER),
  top_k: optional(NUMBER),
  stop: optional(textOrListOf(TEXT)),
  tools: optional(TOOLS),
  tool_choice: optional(
    textOrObject(
      chosenBy((choice) =>
        choice.type === "allowed_tools"
          ? objectOf({ mode: optional(TEXT), tools: listOf(CHOSEN_TOOL) })
          : CHOSEN_TOOL
      ),
    ),
  ),
  parallel_tool_calls: optional(FLAG),
  reasoning: optional(objectOf({ effort: optional(TEXT), summary: optional(TEXT) })),
  text: optional(objectOf({
    format: optional(byType({
      json_schema: objectOf({
        name: optional(TEXT),
        description: optional(TEXT),
        schema: OBJECT,
        strict: optional(FLAG),
      }),
    })),
    verbosity: optional(TEXT),
  })),
  include: optional(listOf(TEXT)),
  top_logprobs: optional(NUMBER),
  metadata: optional(objectOf({ user_id: optional(TEXT) })),
  user: optional(TEXT),
  safety_identifier: optional(TEXT),
  prompt_cache_key: optional(TEXT),
  prompt_cache_options: optional(OBJECT),
  prompt_cache_retention: optional(TEXT),
  service_tier: optional(TEXT),
});
