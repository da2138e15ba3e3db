/** The wire forms of the three protocols, from the official packages' type files: types alone, nothing is loaded. */
import type { ChatCompletionChunk, ChatCompletionMessage } from "openai/resources/chat/completions";
import type {
  ContentBlock,
  RawMessageStreamEvent,
  ServerToolUseBlock,
  ToolUseBlock,
  Usage,
  WebSearchToolResultBlock,
} from "@anthropic-ai/sdk/resources/messages/messages";
import type { JsonObject } from "./json.ts";

export type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionCustomTool,
  ChatCompletionMessage,
  ChatCompletionMessageToolCall,
  ChatCompletionTokenLogprob,
  ChatCompletionTool,
  ChatCompletionToolChoiceOption,
} from "openai/resources/chat/completions";
export type { CompletionUsage } from "openai/resources/completions";
export type { ResponseUsage } from "openai/resources/responses/responses";
export type {
  Message,
  MessageDeltaUsage,
  RawContentBlockDelta,
  RedactedThinkingBlock,
  StopReason,
  TextCitation,
  ThinkingBlock,
} from "@anthropic-ai/sdk/resources/messages/messages";

/** Reasoning as other chat servers tell it; OpenAI's own type has no place for it. */
interface ToldReasoning {
  reasoning_content?: string;
  reasoning_details?: JsonObject[];
}

export type ToldChatMessage = ChatCompletionMessage & ToldReasoning;

export type ToldChatDelta =
  & ChatCompletionChunk.Choice.Delta
  & ToldReasoning
  & Pick<ChatCompletionMessage, "annotations">;

/** An event of a stream, with blocks as we tell them; the SDK's types have no word for its errors. */
export type ToldEvent =
  | Exclude<RawMessageStreamEvent, { type: "content_block_start" }>
  | { type: "content_block_start"; index: number; content_block: ToldBlock }
  | { type: "error"; error: { type: string; message: string } };

/** Counts, and whether they are a guess of ours. */
export type ToldUsage = Usage & { estimated?: true };

/** A block of an answer; who called a tool is said by Anthropic's own servers alone. */
export type ToldBlock =
  | ContentBlock
  | Omit<ToolUseBlock, "caller">
  | Omit<ServerToolUseBlock, "caller">
  | Omit<WebSearchToolResultBlock, "caller">;
