/**
 * From the model name a client asks for to the provider models that may serve it (design.md 3).
 *
 * Says what may serve, not who does: the order over a pool's ring, health and affinity are the selector's.
 */
import type { ClientProtocol, ModelId, ProviderId, ProviderKind, Target } from "./domain.ts";

/** The part of the configuration that names models. `Config` fits as it is. */
export interface ModelNames {
  readonly providers: readonly {
    readonly id: ProviderId;
    readonly kind: ProviderKind;
    readonly models: readonly ModelId[];
  }[];
  readonly models: readonly {
    readonly alias: string;
    readonly provider: ProviderId;
    readonly model: ModelId;
  }[];
  readonly pools: readonly {
    readonly name: string;
    readonly members: readonly WeightedTarget[];
    readonly fallback: readonly { readonly provider: ProviderId; readonly model: ModelId }[];
  }[];
}

/** What each provider said it lists (its models page), `codex` among them. Absent: not known. */
export type ListedModels = ReadonlyMap<ProviderId, ReadonlySet<ModelId>>;

export interface WeightedTarget {
  readonly provider: ProviderId;
  readonly model: ModelId;
  /** Slots in the pool's ring, 1..100. */
  readonly weight: number;
}

export interface ModelResolution {
  /** In the order of the configuration; one entry unless a pool was named. Never empty. */
  readonly targets: readonly (Target & { readonly weight: number })[];
  /** Tried only when no target can serve. */
  readonly fallbacks: readonly Target[];
  /** The pool's name when one was named. */
  readonly pool: string | null;
}

/** The provider that is always there, from auth-dir. */
export const CODEX_PROVIDER: ProviderId = "codex";

/** The dialect each kind speaks by itself, where a client of the same dialect gets bytes untouched. */
const NATIVE_PROTOCOLS: Readonly<Record<ProviderKind, readonly ClientProtocol[]>> = {
  codex: ["responses", "raw"],
  anthropic: ["messages"],
  zai: ["messages", "chat"],
  openai: ["chat"],
};

/**
 * Resolves a model name: pool name, alias, `provider/model`, a provider that lists the model, else the default
 * provider of the client's dialect, which gets the name as it is and may refuse it.
 *
 * Where several providers list a model, the one that speaks the client's own dialect comes first, then codex,
 * then the order of the configuration. Names are compared exactly.
 *
 * @param name  as the client sent it; `null` on routes and bodies that name none.
 */
export function resolveModel(
  names: ModelNames,
  listed: ListedModels,
  protocol: ClientProtocol,
  name: ModelId | null,
): ModelResolution {
  if (name === null || name === "") return single(defaultProvider(names, protocol), null);

  const pool = names.pools.find((pool) => pool.name === name);
  if (pool !== undefined) {
    return { targets: pool.members, fallbacks: pool.fallback, pool: pool.name };
  }
  const alias = names.models.find((entry) => entry.alias === name);
  if (alias !== undefined) return single(alias.provider, alias.model);

  const addressed = readProviderPrefix(names, name);
  if (addressed !== null) return single(addressed.provider, addressed.model);

  const lister = providerListing(names, listed, protocol, name);
  return single(lister ?? defaultProvider(names, protocol), name);
}

function single(provider: ProviderId, model: ModelId | null): ModelResolution {
  return { targets: [{ provider, model, weight: 1 }], fallbacks: [], pool: null };
}

/**
 * Only the first slash divides, since models of OpenAI-compatible hosts have slashes of their own
 * (`lab/meta/llama`); a prefix that is no provider's id belongs to the model's name.
 */
function readProviderPrefix(
  names: ModelNames,
  name: string,
): { provider: ProviderId; model: ModelId } | null {
  const slash = name.indexOf("/");
  if (slash < 1 || slash === name.length - 1) return null;
  const provider = name.slice(0, slash);
  const known = provider === CODEX_PROVIDER || names.providers.some((entry) => entry.id === provider);
  return known ? { provider, model: name.slice(slash + 1) } : null;
}

function providerListing(
  names: ModelNames,
  listed: ListedModels,
  protocol: ClientProtocol,
  model: ModelId,
): ProviderId | null {
  let first: ProviderId | null = null;
  const kinds: { id: ProviderId; kind: ProviderKind; models: readonly ModelId[] }[] = [
    { id: CODEX_PROVIDER, kind: "codex", models: [] },
    ...names.providers,
  ];
  for (const provider of kinds) {
    const lists = provider.models.includes(model) || listed.get(provider.id)?.has(model) === true;
    if (!lists) continue;
    if (NATIVE_PROTOCOLS[provider.kind].includes(protocol)) return provider.id;
    first ??= provider.id;
  }
  return first;
}

function defaultProvider(names: ModelNames, protocol: ClientProtocol): ProviderId {
  if (protocol !== "messages") return CODEX_PROVIDER;
  return names.providers.find((provider) => provider.kind === "anthropic")?.id ?? CODEX_PROVIDER;
}
