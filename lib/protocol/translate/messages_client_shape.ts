/**
 * The JSON types of an Anthropic client's request.
 *
 * What Anthropic lets a client leave out, and what its readers here have a default for, is optional.
 * Source: the type files of `@anthropic-ai/sdk`.
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
} from "./shape.ts";
import { isMessagesSearch } from "./web_search.ts";

const TEXT_BLOCK = objectOf({ text: TEXT });

const IMAGE_BLOCK = objectOf({
  source: byType({
    base64: objectOf({ media_type: optional(TEXT), data: TEXT }),
    url: objectOf({ url: TEXT }),
  }),
});

const DOCUMENT_BLOCK = objectOf({
  title: optional(TEXT),
  context: optional(TEXT),
  citations: optional(objectOf({ enabled: optional(FLAG) })),
  source: byType({
    base64: objectOf({ media_type: optional(TEXT), data: TEXT }),
    text: objectOf({ data: TEXT }),
    url: objectOf({ url: TEXT }),
    content: objectOf({ content: textOrListOf(byType({ text: TEXT_BLOCK, image: IMAGE_BLOCK })) }),
  }),
});

const PARTS = { text: TEXT_BLOCK, image: IMAGE_BLOCK, document: DOCUMENT_BLOCK };

/** The blocks of a message, by their type; chat clients mix some of them into their own content. */
export const MESSAGES_BLOCK_SHAPES: Readonly<Record<string, Shape>> = {
  ...PARTS,
  tool_result: objectOf({
    tool_use_id: TEXT,
    content: optional(textOrListOf(byType(PARTS))),
    is_error: optional(FLAG),
  }),
  tool_use: objectOf({ id: TEXT, name: TEXT, input: optional(OBJECT), toolset_name: optional(TEXT) }),
  thinking: objectOf({ thinking: TEXT, signature: optional(TEXT) }),
  redacted_thinking: objectOf({ data: TEXT }),
};

const FUNCTION_TOOL = objectOf({
  name: TEXT,
  description: optional(TEXT),
  input_schema: optional(OBJECT),
  strict: optional(FLAG),
  input_examples: optional(listOf(OBJECT)),
});

const SEARCH_TOOL = objectOf({
  blocked_domains: optional(listOf(TEXT)),
  allowed_domains: optional(listOf(TEXT)),
  user_location: optional(OBJECT),
});

const CHOICE = objectOf({ disable_parallel_tool_use: optional(FLAG) });
const NAMED_CHOICE = objectOf({ name: TEXT, disable_parallel_tool_use: optional(FLAG) });

export const MESSAGES_REQUEST_SHAPE: Shape = objectOf({
  messages: listOf(objectOf({ content: textOrListOf(byType(MESSAGES_BLOCK_SHAPES)) })),
  system: optional(textOrListOf(byType({ text: TEXT_BLOCK }))),
  max_tokens: optional(NUMBER),
  stream: optional(FLAG),
  temperature: optional(NUMBER),
  top_p: optional(NUMBER),
  top_k: optional(NUMBER),
  stop_sequences: optional(listOf(TEXT)),
  tools: optional(listOf(chosenBy((tool) => {
    if (isMessagesSearch(tool)) return SEARCH_TOOL;
    return tool.type === undefined || tool.type === null || tool.type === "custom" ? FUNCTION_TOOL : null;
  }))),
  tool_choice: optional(chosenBy((choice) => choice.type === "tool" ? NAMED_CHOICE : CHOICE)),
  thinking: optional(objectOf({ budget_tokens: optional(NUMBER), display: optional(TEXT) })),
  output_config: optional(objectOf({
    effort: optional(TEXT),
    format: optional(byType({ json_schema: objectOf({ schema: OBJECT }) })),
  })),
  metadata: optional(objectOf({ user_id: optional(TEXT) })),
  service_tier: optional(TEXT),
});
