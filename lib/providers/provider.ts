/**
 * What one kind of upstream is: how a request to it is made and what its answers say.
 *
 * Descriptors are pure. They read evidence into signals of one vocabulary; `core/classify.ts` judges.
 */
import type { ClientProtocol, ModelId, ProviderKind } from "../core/domain.ts";
import type { Evidence, HeaderLookup } from "../core/evidence.ts";
import type { QuotaReading } from "../core/records.ts";
import type { Signal } from "../core/classify.ts";
import type { Credential } from "../ports.ts";
import type { Route, RouteBase } from "../protocol/route.ts";

export interface ProviderSettings {
  readonly id: string;
  readonly kind: ProviderKind;
  /** Without trailing slash. For codex: the codex base; `chatgptBaseUrl` serves the routes of base `chatgpt`. */
  readonly baseUrl: string;
  readonly chatgptBaseUrl: string;
  readonly plan: "general" | "coding" | null;
  readonly userAgent: string;
  readonly betaFeatures: string;
}

/** A request in the provider's own protocol, still without credentials. */
export interface OutgoingRequest {
  readonly route: Route;
  /** Path below the base, as the route match filled it in. */
  readonly upstreamPath: string;
  /** Query of the client including `?`, or "". */
  readonly search: string;
  readonly method: string;
  readonly clientHeaders: HeaderLookup & Iterable<[string, string]>;
  readonly protocol: ClientProtocol;
  /** True when the provider is asked for a stream. */
  readonly streaming: boolean;
  /** True when the turn-state header of the client may go along (same account, ruling 8). */
  readonly keepTurnState: boolean;
  readonly websocket: boolean;
  /** Content coding the outgoing bytes still have, for bodies passed on unread; absent when they are plain. */
  readonly bodyCoding?: string | null;
}

export interface SignalContext {
  readonly nowMs: number;
  readonly model: ModelId | null;
  /** Base of the route that was called: account pages have limits of their own. Absent: a model's route. */
  readonly base?: RouteBase;
}

export interface ProviderDescriptor {
  readonly kind: ProviderKind;
  /** The protocol this provider is spoken to in, for a client's protocol; equal = bytes untouched. */
  upstreamProtocol(client: ClientProtocol, settings: ProviderSettings): ClientProtocol;
  /** True when the answer is a stream whatever the client asked for (Codex over HTTP, ruling 11). */
  alwaysStreams(route: Route): boolean;
  url(request: OutgoingRequest, settings: ProviderSettings): string;
  /** All headers of the upstream request, credentials included, hop-by-hop and foreign ones removed. */
  headers(request: OutgoingRequest, settings: ProviderSettings, credential: Credential): Headers;
  /**
   * Fits a JSON body to what this upstream takes (wire-facts 5.4 …): drops refused fields, sets required ones.
   * Returns the same bytes when nothing has to change.
   */
  fitBody(body: Uint8Array<ArrayBuffer>, request: OutgoingRequest): Uint8Array<ArrayBuffer>;
  /** What the evidence says in the common vocabulary; `null`: judge by status alone. */
  readSignal(evidence: Evidence, context: SignalContext): Signal | null;
  /** Quota figures in the headers of an answer, or null. `nowMs` anchors relative reset times. */
  readQuotaHeaders(
    headers: HeaderLookup,
    nowMs: number,
  ): Omit<QuotaReading, "observedAtMs" | "source"> | null;
}
