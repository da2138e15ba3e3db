/** The configured providers as the shell uses them: one descriptor and its settings each. */
import type { Config } from "./config_types.ts";
import type { ProviderId, ProviderKind } from "./core/domain.ts";
import { CODEX_PROVIDER } from "./core/model_resolution.ts";
import { descriptorFor } from "./providers/registry.ts";
import type { ProviderEntry } from "./proxy/deps.ts";

export function providerEntries(config: Config): Map<ProviderId, ProviderEntry> {
  const common = {
    chatgptBaseUrl: config.chatgptBaseUrl,
    userAgent: config.codexUserAgent,
    betaFeatures: config.codexBetaFeatures,
  };
  const entries = new Map<ProviderId, ProviderEntry>();
  const add = (
    id: ProviderId,
    kind: ProviderKind,
    baseUrl: string,
    plan: "general" | "coding" | null,
  ): void => {
    const descriptor = descriptorFor(kind);
    if (descriptor !== null) {
      entries.set(id, { descriptor, settings: { ...common, id, kind, baseUrl, plan } });
    }
  };
  add(CODEX_PROVIDER, "codex", config.codexBaseUrl, null);
  for (const provider of config.providers) add(provider.id, provider.kind, provider.baseUrl, provider.plan);
  return entries;
}
