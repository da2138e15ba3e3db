/** OpenAI's platform, and every host that speaks its chat protocol: gateways, vLLM, llama.cpp, Ollama. */
import { readOpenAiQuota } from "./openai_compatible_quota.ts";
import {
  openAiAnswerHeaders,
  openAiHeaders,
  openAiPageHeaders,
  openAiProtocol,
  openAiSharedLimitKey,
  openAiUrl,
} from "./openai_compatible_request.ts";
import { readOpenAiSignal } from "./openai_compatible_signals.ts";
import type { ProviderDescriptor } from "./provider.ts";

export const OPENAI_COMPATIBLE: ProviderDescriptor = {
  kind: "openai",
  logins: null,
  serves: (route) => route.base === "any" && route.name !== "count_tokens",
  upstreamProtocol: openAiProtocol,
  alwaysStreams: () => false,
  url: openAiUrl,
  headers: openAiHeaders,
  pageHeaders: openAiPageHeaders,
  // Hosts differ in the fields they know, and only the host itself can say so (field case B116).
  fitBody: (body) => body,
  readSignal: readOpenAiSignal,
  readQuotaHeaders: readOpenAiQuota,
  usage: null,
  answerHeaders: openAiAnswerHeaders,
  sharedLimitKey: openAiSharedLimitKey,
};
