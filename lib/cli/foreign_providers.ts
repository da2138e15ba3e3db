/**
 * Upstream keys of a CLIProxyAPI configuration, grouped into providers, and the names clients use for their models.
 */
import { asList, asMapping, asText, isSaying, type Mapping } from "./foreign_values.ts";

/** The part of a conversion that providers need. */
export interface Conversion {
  takeMapping(key: string): Mapping;
  takeList(key: string): Mapping[];
  set(key: string, value: unknown): void;
  drop(path: string, why: string): void;
}

/** @param claudeFiles  Claude logins found in the foreign auth folder. */
export function convertProviders(conversion: Conversion, claudeFiles: readonly string[]): void {
  new Providers(conversion).convert(claudeFiles);
}

interface Provider {
  readonly id: string;
  readonly kind: "anthropic" | "zai" | "openai";
  readonly "base-url"?: string;
  readonly plan?: "general" | "coding";
  readonly models: string[];
  readonly accounts: Record<string, string>[];
}

/** Keys grouped by where they are sent, and the names clients use for their models. */
class Providers {
  readonly #conversion: Conversion;
  readonly #providers: Provider[] = [];
  readonly #aliases = new Map<string, { provider: string; model: string }[]>();

  constructor(conversion: Conversion) {
    this.#conversion = conversion;
  }

  convert(claudeFiles: readonly string[]): void {
    const conversion = this.#conversion;
    for (const [at, entry] of conversion.takeList("claude-api-key").entries()) {
      const url = asText(entry["base-url"]);
      const provider = this.#provider("claude", "anthropic", url ?? "https://api.anthropic.com");
      this.#addKey(provider, entry, `claude-api-key[${at}]`);
    }
    if (claudeFiles.length > 0) {
      const provider = this.#provider("claude", "anthropic", "https://api.anthropic.com");
      for (const path of claudeFiles) {
        provider.accounts.push({ id: freeId("login", provider.accounts), credentials: path });
      }
    }
    for (const [at, entry] of conversion.takeList("codex-api-key").entries()) {
      const url = asText(entry["base-url"]) ?? "https://api.openai.com/v1";
      const provider = this.#provider("openai", "openai", url);
      conversion.drop(
        `codex-api-key[${at}]`,
        `is kept as provider ${provider.id}, spoken to in chat completions`,
      );
      this.#addKey(provider, entry, `codex-api-key[${at}]`);
    }
    for (const [at, entry] of conversion.takeList("openai-compatibility").entries()) {
      this.#addCompatible(entry, `openai-compatibility[${at}]`);
    }
    this.#addOauthAliases();
    if (this.#providers.length > 0) conversion.set("providers", this.#providers);
    this.#setAliases();
  }

  #addCompatible(entry: Mapping, path: string): void {
    if (entry["disabled"] === true) return this.#conversion.drop(path, "is disabled");
    const name = asText(entry["name"]) ?? "provider";
    const provider = this.#provider(slug(name), "openai", asText(entry["base-url"]) ?? "");
    const keys = asList(entry["api-key-entries"]).map(asMapping);
    for (const [at, key] of keys.entries()) {
      provider.accounts.push({
        id: freeId("key", provider.accounts),
        "api-key": asText(key["api-key"]) ?? "none",
      });
      this.#dropDetails(key, `${path}.api-key-entries[${at}]`);
    }
    if (keys.length === 0) provider.accounts.push({ id: "key", "api-key": "none" });
    this.#addModels(provider, entry);
    this.#dropDetails(entry, path);
  }

  #addKey(provider: Provider, entry: Mapping, path: string): void {
    provider.accounts.push({
      id: freeId("key", provider.accounts),
      "api-key": asText(entry["api-key"]) ?? "",
    });
    this.#addModels(provider, entry);
    this.#dropDetails(entry, path);
  }

  #provider(id: string, kind: Provider["kind"], baseUrl: string): Provider {
    const url = baseUrl.replace(/\/+$/, "");
    const zai = URL.canParse(url) && new URL(url).hostname === "api.z.ai";
    const wanted = zai ? "https://api.z.ai" : url;
    const known = this.#providers.find((provider) =>
      provider["base-url"] === wanted && provider.kind === (zai ? "zai" : kind)
    );
    if (known !== undefined) return known;
    const made: Provider = {
      id: freeId(id, this.#providers),
      kind: zai ? "zai" : kind,
      "base-url": wanted,
      ...(zai ? { plan: url.includes("/coding/") || kind === "anthropic" ? "coding" : "general" } : {}),
      models: [],
      accounts: [],
    };
    this.#providers.push(made);
    return made;
  }

  #addModels(provider: Provider, entry: Mapping): void {
    for (const model of asList(entry["models"]).map(asMapping)) {
      const name = asText(model["name"]);
      if (name === null) continue;
      if (!provider.models.includes(name)) provider.models.push(name);
      this.#addAlias(asText(model["alias"]), provider.id, name);
    }
  }

  #addAlias(alias: string | null, provider: string, model: string): void {
    if (alias === null || alias === model) return;
    const targets = this.#aliases.get(alias) ?? [];
    if (!targets.some((target) => target.provider === provider && target.model === model)) {
      this.#aliases.set(alias, [...targets, { provider, model }]);
    }
  }

  #addOauthAliases(): void {
    const channels = this.#conversion.takeMapping("oauth-model-alias");
    for (const [channel, list] of Object.entries(channels)) {
      const claude = this.#providers.find(({ id }) => id === "claude");
      const provider = channel === "codex" ? "codex" : channel === "claude" ? claude?.id ?? null : null;
      if (provider === null) {
        this.#conversion.drop(`oauth-model-alias.${channel}`, "names accounts that Holdfast does not have");
        continue;
      }
      for (const entry of asList(list).map(asMapping)) {
        const model = asText(entry["name"]);
        if (model !== null) this.#addAlias(asText(entry["alias"]), provider, model);
      }
    }
  }

  /** An alias of several models was a pool there, and is one here. */
  #setAliases(): void {
    const models: Mapping[] = [];
    const pools: Mapping[] = [];
    for (const [alias, targets] of this.#aliases) {
      if (targets.length === 1) models.push({ alias, ...targets[0]! });
      else pools.push({ name: alias, members: targets.map((target) => ({ ...target, weight: 1 })) });
    }
    if (models.length > 0) this.#conversion.set("models", models);
    if (pools.length > 0) this.#conversion.set("pools", pools);
  }

  #dropDetails(entry: Mapping, path: string): void {
    for (const [key, why] of DETAILS) if (isSaying(entry[key])) this.#conversion.drop(`${path}.${key}`, why);
  }
}

const DETAILS: readonly (readonly [string, string])[] = [
  ["prefix", "has no counterpart; clients can ask for <provider>/<model>"],
  ["headers", "has no counterpart: Holdfast sends no headers of one's own"],
  ["proxy-url", "has no counterpart for one key; proxy-url holds for all"],
  ["excluded-models", "has no counterpart; models that an account lacks are learnt"],
  ["weight", "has no counterpart for keys; pools have weights"],
  ["request-retry", "has no counterpart for one key"],
  ["disable-cooling", "has no counterpart"],
  ["request-scoped-errors", "has no counterpart: refusals are understood by themselves"],
  ["cloak", "has no counterpart"],
];

function slug(name: string): string {
  const cleaned = name.toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 48);
  return cleaned === "" || cleaned === "codex" ? "provider" : cleaned;
}

function freeId(wanted: string, taken: readonly { readonly id?: string }[]): string {
  const used = new Set(taken.map(({ id }) => id));
  if (!used.has(wanted)) return wanted;
  let number = 2;
  while (used.has(`${wanted}-${number}`)) number++;
  return `${wanted}-${number}`;
}
