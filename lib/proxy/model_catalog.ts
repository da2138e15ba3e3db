/**
 * The merged model list (design.md 4): asked of the upstreams when somebody wants it, kept for five minutes,
 * dropped when accounts or configuration change. Which names a provider lists is remembered longer, because names
 * lead by it. Its calls are background calls: never a strike, never evidence.
 */
import type { AccountId, ModelId, ProviderId, ProviderKind } from "../core/domain.ts";
import type { Config } from "../config_types.ts";
import type { Clock, Upstream } from "../ports.ts";
import { readWhole } from "./answer_body.ts";
import type { Credentials, ProviderEntry } from "./deps.ts";
import { json } from "./local_routes.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

const KEPT_MS = 300_000;
/** A list that could not be read whole is asked for again sooner. */
const KEPT_AFTER_FAILURE_MS = 15_000;
const LIST_TIMEOUT_MS = 10_000;
const LIST_LIMIT_BYTES = 8_388_608;
/** Lists differ by plan; this many accounts of a provider are asked and merged. */
const ASKED_ACCOUNTS = 4;
/** Sent upstream when the client names no version of its own. */
const DEFAULT_CLIENT_VERSION = "0.171.0";

interface ListedModel {
  readonly id: ModelId;
  readonly provider: ProviderId;
  /** The upstream's own entry, for Codex's shape. */
  readonly entry: Readonly<Record<string, unknown>>;
}

export interface CatalogDeps {
  readonly config: () => Config;
  readonly clock: Clock;
  readonly upstream: Upstream;
  readonly credentials: Credentials;
  readonly providers: () => readonly { readonly id: ProviderId; readonly entry: ProviderEntry }[];
  /** Accounts of a provider that may be asked now, healthiest first. */
  readonly askable: (provider: ProviderId, nowMs: number) => readonly AccountId[];
}

export class ModelCatalog {
  readonly #deps: CatalogDeps;
  #kept: { version: string; models: readonly ListedModel[]; untilMs: number } | null = null;
  #flight: { version: string; generation: number; promise: Promise<readonly ListedModel[]> } | null = null;
  #generation = 0;
  /** What each provider listed when it was last asked: names lead where they led, until it lists something else. */
  readonly #known = new Map<ProviderId, ReadonlySet<ModelId>>();
  /** Put together when somebody asks, until a list or the configuration changes. */
  #listed: ReadonlyMap<ProviderId, ReadonlySet<ModelId>> | null = null;

  constructor(deps: CatalogDeps) {
    this.#deps = deps;
  }

  /** Accounts or configuration changed: nothing older is shown any more, not even an answer under way. */
  invalidate(): void {
    this.#generation++;
    this.#kept = null;
    this.#flight = null;
    this.#listed = null;
  }

  /**
   * Asks for the lists when it depends on one that was never seen where a name leads: the first request must not lead
   * elsewhere than the one after somebody looked at the models.
   */
  warm(): void {
    const { providers } = this.#deps.config();
    const isUnknown = providers.some(({ id, kind, models }) =>
      kind !== "zai" && models.length === 0 && !this.#known.has(id)
    );
    if (isUnknown) void this.#models(DEFAULT_CLIENT_VERSION);
  }

  /** What each provider is known to list, for resolving model names: as configured, and as it was last told. */
  listed(): ReadonlyMap<ProviderId, ReadonlySet<ModelId>> {
    return this.#listed ??= this.#putTogether();
  }

  #putTogether(): ReadonlyMap<ProviderId, ReadonlySet<ModelId>> {
    const listed = new Map<ProviderId, Set<ModelId>>();
    for (const { id } of this.#deps.providers()) {
      const known = this.#known.get(id);
      if (known !== undefined) listed.set(id, new Set(known));
    }
    for (const { id, models } of this.#deps.config().providers) {
      if (models.length > 0) listed.set(id, new Set([...models, ...listed.get(id) ?? []]));
    }
    return listed;
  }

  async answer(request: ClientRequest, search: string): Promise<Answer> {
    const version = new URLSearchParams(search).get("client_version");
    const models = await this.#models(version ?? DEFAULT_CLIENT_VERSION);
    const named = this.#withNames(models);
    if (version !== null) {
      return json({ models: named.filter(isCodexEntry).map(({ id, entry }) => ({ ...entry, slug: id })) });
    }
    if (request.headers.has("anthropic-version")) {
      return json({
        data: named.map(({ id }) => ({
          type: "model",
          id,
          display_name: id,
          created_at: "1970-01-01T00:00:00Z",
        })),
        has_more: false,
        first_id: named[0]?.id ?? null,
        last_id: named.at(-1)?.id ?? null,
      });
    }
    return json({
      object: "list",
      data: named.map(({ id, provider }) => ({ id, object: "model", created: 0, owned_by: provider })),
    });
  }

  /** Aliases and pools stand beside the models they lead to. */
  #withNames(models: readonly ListedModel[]): ListedModel[] {
    const config = this.#deps.config();
    const named = new Map(models.map((model) => [model.id, model]));
    const add = (id: string, provider: ProviderId, model: ModelId): void => {
      const target = models.find((listed) => listed.id === model && listed.provider === provider);
      named.set(id, {
        id,
        provider,
        entry: target === undefined ? {} : { ...target.entry, display_name: id },
      });
    };
    for (const provider of config.providers) {
      for (const id of provider.models) if (!named.has(id)) add(id, provider.id, id);
    }
    for (const { alias, provider, model } of config.models) add(alias, provider, model);
    for (const { name, members } of config.pools) {
      if (members[0] !== undefined) add(name, members[0].provider, members[0].model);
    }
    return [...named.values()];
  }

  #models(version: string): Promise<readonly ListedModel[]> {
    const nowMs = this.#deps.clock.now();
    if (this.#kept !== null && this.#kept.version === version && nowMs < this.#kept.untilMs) {
      return Promise.resolve(this.#kept.models);
    }
    if (this.#flight?.version === version) return this.#flight.promise;
    const generation = this.#generation;
    const promise = this.#fetchAll(version).then(({ models, complete }) => {
      if (this.#generation === generation) {
        for (const [provider, list] of Map.groupBy(models, (model) => model.provider)) {
          this.#known.set(provider, new Set(list.map(({ id }) => id)));
        }
        this.#listed = null;
        this.#kept = {
          version,
          models,
          untilMs: this.#deps.clock.now() + (complete ? KEPT_MS : KEPT_AFTER_FAILURE_MS),
        };
        this.#flight = null;
      }
      return models;
    });
    this.#flight = { version, generation, promise };
    return promise;
  }

  async #fetchAll(version: string): Promise<{ models: ListedModel[]; complete: boolean }> {
    const nowMs = this.#deps.clock.now();
    const calls = this.#deps.providers().flatMap(({ id, entry }) => {
      const path = listUrl(entry, version);
      if (path === null) return [];
      return this.#deps.askable(id, nowMs).slice(0, ASKED_ACCOUNTS).map((account) =>
        this.#fetchOne(id, entry, path, account)
      );
    });
    const results = await Promise.all(calls);
    const merged = new Map<string, ListedModel>();
    for (const model of results.flatMap((result) => result ?? [])) {
      const key = `${model.provider}\0${model.id}`;
      if (!merged.has(key)) merged.set(key, model);
    }
    return { models: [...merged.values()], complete: results.every((result) => result !== null) };
  }

  async #fetchOne(
    provider: ProviderId,
    entry: ProviderEntry,
    url: string,
    account: AccountId,
  ): Promise<ListedModel[] | null> {
    const nowMs = this.#deps.clock.now();
    const usable = await this.#deps.credentials.prepare(account, null);
    if (!usable.ok) return null;
    const abort = new AbortController();
    const scheduled = this.#deps.clock.schedule(nowMs + LIST_TIMEOUT_MS, () => abort.abort());
    try {
      const result = await this.#deps.upstream.send({
        method: "GET",
        url,
        headers: entry.descriptor.pageHeaders(entry.settings, usable.credential),
        body: null,
        bodyLength: null,
        fresh: false,
        connectTimeoutMs: this.#deps.config().timeouts.connectMs,
        firstByteTimeoutMs: LIST_TIMEOUT_MS,
        attempt: "models:1",
      }, abort.signal);
      if (!result.ok) return null;
      const { status, body, contentLength } = result.response;
      const read = body === null ? null : await readWhole(body, contentLength, LIST_LIMIT_BYTES);
      if (!read?.whole) body?.cancel();
      if (status !== 200 || !read?.whole) return null;
      return readModels(JSON.parse(new TextDecoder().decode(read.bytes)), provider, entry.descriptor.kind);
    } catch {
      // A list that cannot be read is no list; the ones of other accounts still count.
      return null;
    } finally {
      scheduled.cancel();
    }
  }
}

function isCodexEntry(model: ListedModel): boolean {
  return typeof model.entry.slug === "string";
}

/** Where a provider lists its models; null for kinds without a list. */
function listUrl(entry: ProviderEntry, version: string): string | null {
  switch (entry.descriptor.kind) {
    case "codex":
      return `${entry.settings.baseUrl}/models?client_version=${encodeURIComponent(version)}`;
    case "openai":
      return `${entry.settings.baseUrl}/models`;
    case "anthropic":
      return `${entry.settings.baseUrl}/v1/models?limit=1000`;
    case "zai":
      return null;
  }
}

/** Codex gives `models[].slug`, everybody else `data[].id`. */
export function readModels(body: unknown, provider: ProviderId, kind: ProviderKind): ListedModel[] {
  if (typeof body !== "object" || body === null) return [];
  const list = (body as Record<string, unknown>)[kind === "codex" ? "models" : "data"];
  if (!Array.isArray(list)) return [];
  return list.flatMap((item: unknown) => {
    if (typeof item !== "object" || item === null) return [];
    const entry = item as Record<string, unknown>;
    const id = entry[kind === "codex" ? "slug" : "id"];
    return typeof id === "string" && id !== "" ? [{ id, provider, entry }] : [];
  });
}
