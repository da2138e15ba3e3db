/**
 * What one kind of upstream is: how a request to it is made and what its answers say.
 *
 * Descriptors are pure. They read evidence into signals of one vocabulary; `core/classify.ts` judges.
 */
import type { ClientProtocol, ModelId, ProviderKind } from "../core/domain.ts";
import type { Evidence, HeaderLookup } from "../core/evidence.ts";
import type { HeaderFields, HeaderList } from "../core/header_fields.ts";
import type { QuotaReading } from "../core/records.ts";
import type { Signal } from "../core/classify.ts";
import type { Credential, RefreshCall } from "../ports.ts";
import type { JsonMember } from "../protocol/json_scan.ts";
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
  readonly clientHeaders: HeaderList;
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

/** A reading before its reader adds when and where it was seen. */
export type QuotaFigures = Omit<QuotaReading, "observedAtMs" | "source">;

/**
 * Where a provider shows what is left of an account's quota, and how to read it.
 *
 * A page that is refused says nothing about the account: these pages have limits of their own, and our own calls
 * are never evidence (ruling 12; wire-facts 6.6). Its Retry-After holds for the page alone.
 */
export interface UsageReader {
  /** Address of the page; `null` where an account of this make has none. Asked with `pageHeaders`. */
  url(settings: ProviderSettings, credential: Credential): string | null;
  /** Figures of a parsed page; `null` when it is none: then nothing was learned, good or bad. */
  parse(json: unknown, nowMs: number): QuotaFigures | null;
}

export interface ProviderDescriptor {
  readonly kind: ProviderKind;
  /** Which token endpoint renews this kind's logins; `null` where accounts are keys only. */
  readonly logins: RefreshCall["kind"] | null;
  /** False for routes this kind has no counterpart of, e.g. counting tokens at an OpenAI-compatible host. */
  serves(route: Route): boolean;
  /** The protocol this provider is spoken to in, for a client's protocol; equal = bytes untouched. */
  upstreamProtocol(client: ClientProtocol, settings: ProviderSettings): ClientProtocol;
  /** True when the answer is a stream whatever the client asked for (Codex over HTTP, ruling 11). */
  alwaysStreams(route: Route): boolean;
  /** @param credential  logins and keys may be served at different addresses. */
  url(request: OutgoingRequest, settings: ProviderSettings, credential: Credential): string;
  /** All headers of the upstream request, credentials included, hop-by-hop and foreign ones removed. */
  headers(request: OutgoingRequest, settings: ProviderSettings, credential: Credential): HeaderFields;
  /** Headers of our own reads: usage page, list of models. Nothing of any client is in them. */
  pageHeaders(settings: ProviderSettings, credential: Credential): HeaderFields;
  /**
   * Fits a JSON body to what this upstream takes (wire-facts 5.4 …): drops refused fields, sets required ones.
   * Returns the same bytes when nothing has to change.
   *
   * @param known  the body's top-level members where somebody has looked at them already.
   */
  fitBody(
    body: Uint8Array<ArrayBuffer>,
    request: OutgoingRequest,
    known?: readonly JsonMember[] | null,
  ): Uint8Array<ArrayBuffer>;
  /** What the evidence says in the common vocabulary; `null`: judge by status alone. */
  readSignal(evidence: Evidence, context: SignalContext): Signal | null;
  /** Quota figures in the headers of an answer, or null. `nowMs` anchors relative reset times. */
  readQuotaHeaders(headers: HeaderLookup, nowMs: number): QuotaFigures | null;
  readonly usage: UsageReader | null;
  /**
   * What an answer's headers say to a client beyond `filterResponseHeaders`: names of the owner's organisation go,
   * and so do limits of one account that a client would take for the limits of all.
   *
   * @param headers  already filtered; may be changed and given back.
   */
  answerHeaders(headers: HeaderFields): HeaderFields;
  /**
   * What other accounts share this account's limits: the organisation's id, as an answer to a key names it. When a
   * limit or missing credit is booked on one account of a provider, it holds for those with the same key.
   *
   * @returns `null` where limits are the account's own or nothing names the organisation. An id: not to be logged.
   */
  sharedLimitKey(headers: HeaderLookup, credential: Credential): string | null;
}
