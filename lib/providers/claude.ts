/** Anthropic: API keys, and subscriptions through the logins of Claude Code. */
import { readClaudeQuota } from "./claude_limits.ts";
import {
  claudeAnswerHeaders,
  claudeHeaders,
  claudePageHeaders,
  claudeSharedLimitKey,
  claudeUrl,
  claudeUsageUrl,
} from "./claude_request.ts";
import { readClaudeSignal } from "./claude_signals.ts";
import { parseClaudeUsage } from "./claude_usage.ts";
import type { ProviderDescriptor } from "./provider.ts";

export const CLAUDE: ProviderDescriptor = {
  kind: "anthropic",
  logins: "anthropic",
  serves: (route) => route.base === "any",
  upstreamProtocol: (client) => client === "raw" ? "raw" : "messages",
  alwaysStreams: () => false,
  url: claudeUrl,
  headers: claudeHeaders,
  pageHeaders: claudePageHeaders,
  // Signed thinking blocks are checked byte for byte.
  fitBody: (body) => body,
  readSignal: readClaudeSignal,
  readQuotaHeaders: readClaudeQuota,
  usage: { url: claudeUsageUrl, parse: parseClaudeUsage },
  answerHeaders: claudeAnswerHeaders,
  sharedLimitKey: claudeSharedLimitKey,
};
