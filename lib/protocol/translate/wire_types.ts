/** The wire forms of the three protocols, from the official packages' type files: types alone, nothing is loaded. */
export type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionMessageParam,
  ChatCompletionTool,
  ChatCompletionToolChoiceOption,
} from "openai/resources/chat/completions";
export type {
  ResponseFunctionToolCall,
  ResponseInputItem,
  ResponseStreamEvent,
  ResponseUsage,
  Tool as ResponseTool,
} from "openai/resources/responses/responses";
export type { CompletionUsage } from "openai/resources/completions";
export type {
  ContentBlock,
  Message,
  MessageDeltaUsage,
  RawMessageStreamEvent,
  StopReason,
  Usage as MessageUsage,
} from "@anthropic-ai/sdk/resources/messages/messages";
