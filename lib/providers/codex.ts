/**
 * Codex: ChatGPT's backend as the Codex CLI speaks to it, with ChatGPT logins.
 *
 * Undocumented upstream: every list here is open-ended, and what is unknown passes or falls to a safe default.
 */
import { readCodexQuota } from "./codex_quota.ts";
import { codexHeaders, codexPageHeaders, codexUrl, fitCodexBody, usageUrl } from "./codex_request.ts";
import { readCodexSignal } from "./codex_signals.ts";
import { parseUsage } from "./codex_usage.ts";
import type { ProviderDescriptor } from "./provider.ts";

/** Routes that end at `POST /responses`, which answers with a stream only (design.md ruling 11). */
const STREAMING_ROUTES: ReadonlySet<string> = new Set(["responses", "chat", "messages"]);

export const CODEX: ProviderDescriptor = {
  kind: "codex",
  logins: "codex",
  serves: (route) => route.name !== "count_tokens",
  upstreamProtocol: (client) => client === "raw" ? "raw" : "responses",
  alwaysStreams: (route) => STREAMING_ROUTES.has(route.name),
  url: codexUrl,
  headers: codexHeaders,
  pageHeaders: codexPageHeaders,
  fitBody: fitCodexBody,
  readSignal: readCodexSignal,
  readQuotaHeaders: readCodexQuota,
  // The limits are of the ChatGPT plan; a key has no page there.
  usage: {
    url: (settings, credential) => credential.kind === "oauth" ? usageUrl(settings) : null,
    parse: parseUsage,
  },
  answerHeaders: (headers) => headers,
  // Members of a workspace have windows of their own.
  sharedLimitKey: () => null,
};
