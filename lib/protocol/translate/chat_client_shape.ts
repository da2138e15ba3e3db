/**
 * The JSON types of a chat client's request.
 *
 * `content` may be missing or `null` where an assistant says something else instead (calls, a refusal, reasoning).
 * Source: the type files of `openai`; blocks of other protocols inside chat content have the shapes of theirs.
 */
import type { JsonObject } from "./json.ts";
import { MESSAGES_BLOCK_SHAPES } from "./messages_client_shape.ts";
import { RESPONSES_PART_SHAPES } from "./responses_client_shape.ts";
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

const CONTENT = textOrListOf(byType({
  ...MESSAGES_BLOCK_SHAPES,
  ...RESPONSES_PART_SHAPES,
  image_url: objectOf({ image_url: textOrObject(objectOf({ url: TEXT, detail: optional(TEXT) })) }),
  file: objectOf({
    file: withOneOf(
      ["file_data", "file_id", "file_url"],
      objectOf({
        file_data: optional(TEXT),
        file_id: optional(TEXT),
        file_url: optional(TEXT),
        filename: optional(TEXT),
      }),
    ),
  }),
}));

const CALLED_FUNCTION = objectOf({ name: TEXT, arguments: optional(TEXT) });
const FUNCTION_CALL = objectOf({ id: TEXT, function: CALLED_FUNCTION });
const CUSTOM_CALL = objectOf({ id: TEXT, custom: objectOf({ name: TEXT, input: optional(TEXT) }) });
const UNTYPED_CALL = objectOf({ id: TEXT, function: optional(CALLED_FUNCTION) });

function callShape(call: JsonObject): Shape {
  if (call.type === "custom") return CUSTOM_CALL;
  return call.type === "function" ? FUNCTION_CALL : UNTYPED_CALL;
}

const INPUT_MESSAGE = objectOf({ content: CONTENT });
const TOOL_MESSAGE = objectOf({ content: CONTENT, tool_call_id: TEXT });

const ASSISTANT = {
  refusal: optional(TEXT),
  tool_calls: optional(listOf(chosenBy(callShape))),
  reasoning_content: optional(TEXT),
  reasoning: optional(TEXT),
  reasoning_details: optional(listOf(OBJECT)),
  audio: optional(OBJECT),
  function_call: optional(OBJECT),
};
const SILENT_ASSISTANT = objectOf({ ...ASSISTANT, content: CONTENT });
const ASSISTANT_MESSAGE = objectOf({ ...ASSISTANT, content: optional(CONTENT) });

function messageShape(message: JsonObject): Shape | null {
  switch (message.role) {
    case "system":
    case "developer":
    case "user":
      return INPUT_MESSAGE;
    case "tool":
      return TOOL_MESSAGE;
    case "assistant":
      return message.content === undefined && saysNothing(message) ? SILENT_ASSISTANT : ASSISTANT_MESSAGE;
    default:
      return null;
  }
}

/** True for an assistant message without anything that may stand instead of content. */
function saysNothing(message: JsonObject): boolean {
  return Object.keys(ASSISTANT).every((key) => {
    const value = message[key];
    return value === null || value === undefined || (Array.isArray(value) && value.length === 0);
  });
}

const TOOL = byType({
  function: objectOf({
    function: objectOf({
      name: TEXT,
      description: optional(TEXT),
      parameters: optional(OBJECT),
      strict: optional(FLAG),
    }),
  }),
  custom: objectOf({
    custom: objectOf({
      name: TEXT,
      description: optional(TEXT),
      format: optional(objectOf({
        grammar: optional(objectOf({ syntax: TEXT, definition: TEXT })),
      })),
    }),
  }),
});

const CHOSEN_TOOL = {
  function: objectOf({ function: objectOf({ name: TEXT }) }),
  custom: objectOf({ custom: objectOf({ name: TEXT }) }),
};

export const CHAT_REQUEST_SHAPE: Shape = objectOf({
  messages: listOf(chosenBy(messageShape)),
  stream: optional(FLAG),
  stream_options: optional(objectOf({
    include_usage: optional(FLAG),
    include_obfuscation: optional(FLAG),
  })),
  max_completion_tokens: optional(NUMBER),
  max_tokens: optional(NUMBER),
  temperature: optional(NUMBER),
  top_p: optional(NUMBER),
  tools: optional(listOf(TOOL)),
  tool_choice: optional(textOrObject(byType({
    ...CHOSEN_TOOL,
    allowed_tools: objectOf({
      allowed_tools: objectOf({ mode: optional(TEXT), tools: listOf(byType(CHOSEN_TOOL)) }),
    }),
  }))),
  parallel_tool_calls: optional(FLAG),
  reasoning_effort: optional(TEXT),
  verbosity: optional(TEXT),
  response_format: optional(byType({
    json_schema: objectOf({
      json_schema: objectOf({
        name: optional(TEXT),
        description: optional(TEXT),
        schema: optional(OBJECT),
        strict: optional(FLAG),
      }),
    }),
  })),
  logprobs: optional(FLAG),
  top_logprobs: optional(NUMBER),
  metadata: optional(objectOf({ user_id: optional(TEXT) })),
  store: optional(FLAG),
  user: optional(TEXT),
  safety_identifier: optional(TEXT),
  prompt_cache_key: optional(TEXT),
  prompt_cache_options: optional(OBJECT),
  prompt_cache_retention: optional(TEXT),
  service_tier: optional(TEXT),
  web_search_options: optional(objectOf({
    search_context_size: optional(TEXT),
    user_location: optional(objectOf({ approximate: optional(OBJECT) })),
  })),
});
