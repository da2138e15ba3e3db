/** How a request to Codex is made: its URL, its headers, and a body the backend takes (wire-facts 5.1, 5.4, 5.5). */
import { HeaderFields } from "../core/header_fields.ts";
import type { Credential } from "../ports.ts";
import { setHeader } from "../protocol/headers.ts";
import {
  editTopLevel,
  findMember,
  type JsonEdit,
  type JsonMember,
  scanTopLevel,
} from "../protocol/json_scan.ts";
import { fitContent, keepHeaders, type KeptHeaders, setDefault } from "./outgoing_headers.ts";
import type { OutgoingRequest, ProviderSettings } from "./provider.ts";

// ---------------------------------------------------------------- url

/** Routes of other protocols, which reach Codex translated to the Responses form. */
const TRANSLATED_ROUTES: ReadonlySet<string> = new Set(["chat", "messages"]);

export function codexUrl(request: OutgoingRequest, settings: ProviderSettings): string {
  const { route, search } = request;
  if (route.name === "wham_usage") return usageUrl(settings) + search;
  if (route.base === "chatgpt") return settings.chatgptBaseUrl + request.upstreamPath + search;
  // A foreign protocol's query (`?beta=true`) belongs to that protocol.
  const url = TRANSLATED_ROUTES.has(route.name)
    ? `${settings.baseUrl}/responses`
    : settings.baseUrl + request.upstreamPath + search;
  return request.websocket ? url.replace(/^http/, "ws") : url;
}

/** Where the usage page is: a base without `/backend-api` speaks the newer path (wire-facts 3.3). */
export function usageUrl(settings: Pick<ProviderSettings, "chatgptBaseUrl">): string {
  const base = settings.chatgptBaseUrl;
  return base.includes("/backend-api") ? `${base}/wham/usage` : `${base}/api/codex/usage`;
}

// ---------------------------------------------------------------- headers

const KEPT: KeptHeaders = {
  names: new Set([
    "accept",
    "content-type",
    "user-agent",
    "originator",
    "version",
    "session_id",
    "session-id",
    "thread_id",
    "thread-id",
    "conversation_id",
    "conversation-id",
    "x-client-request-id",
    "traceparent",
    "tracestate",
    // Hosted MCP (`/ps/mcp`) is spoken in streamable HTTP.
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "if-none-match",
  ]),
  prefixes: ["x-codex-", "x-openai-", "x-oai-", "x-responsesapi-", "openai-"],
};

const DEFAULT_ORIGINATOR = "codex_cli_rs";
/** `originator/version (OS ver; arch) terminal`, as the client of that version sends it. */
const DEFAULT_USER_AGENT = "codex_cli_rs/0.171.0 (Linux 6.8.0; x86_64) unknown";
const WEBSOCKET_BETA = "responses_websockets=2026-02-06";
/** Of the time before WebSockets; a handshake with it is refused. */
const HTTP_BETA = "responses=experimental";

export function codexHeaders(
  request: OutgoingRequest,
  settings: ProviderSettings,
  credential: Credential,
): HeaderFields {
  const headers = keepHeaders(request.clientHeaders, KEPT);
  if (!request.keepTurnState) headers.delete("x-codex-turn-state");
  introduce(headers, settings);
  if (request.websocket) fitHandshake(headers, request);
  else fitContent(headers, request);
  setCredential(headers, credential);
  return headers;
}

/** Headers of our own reads: usage page, list of models. */
export function codexPageHeaders(settings: ProviderSettings, credential: Credential): HeaderFields {
  const headers = HeaderFields.from({ accept: "application/json" });
  introduce(headers, settings);
  setCredential(headers, credential);
  return headers;
}

/** Who is calling, where the client does not say. */
function introduce(headers: HeaderFields, settings: ProviderSettings): void {
  setDefault(headers, "originator", DEFAULT_ORIGINATOR);
  setDefault(headers, "user-agent", settings.userAgent || DEFAULT_USER_AGENT);
  if (settings.betaFeatures !== "") setDefault(headers, "x-codex-beta-features", settings.betaFeatures);
}

function fitHandshake(headers: HeaderFields, request: OutgoingRequest): void {
  headers.delete("accept");
  headers.delete("content-type");
  if (request.route.name !== "responses_ws") return;
  const betas = (headers.get("openai-beta") ?? "").split(",").map((beta) => beta.trim())
    .filter((beta) => beta !== "" && beta !== HTTP_BETA);
  // A newer client names its own revision.
  if (!betas.some((beta) => beta.startsWith("responses_websockets="))) betas.push(WEBSOCKET_BETA);
  setHeader(headers, "openai-beta", betas.join(", "));
}

function setCredential(headers: HeaderFields, credential: Credential): void {
  switch (credential.kind) {
    case "api_key":
      setHeader(headers, "authorization", `Bearer ${credential.apiKey}`);
      return;
    case "oauth":
      setHeader(headers, "authorization", `Bearer ${credential.tokens.accessToken}`);
      if (credential.accountHeader !== null) {
        setHeader(headers, "chatgpt-account-id", credential.accountHeader);
      }
      return;
    default:
      credential satisfies never;
  }
}

// ---------------------------------------------------------------- body

/**
 * Fields the backend refuses although the public API has them (wire-facts 5.4).
 *
 * `previous_response_id` is refused over HTTP as well, but leaving it out would lose the conversation in silence;
 * such a request keeps its account and its answer (design.md ruling 8).
 */
const REFUSED_FIELDS = [
  "max_output_tokens",
  "metadata",
  "prompt_cache_retention",
  "prompt_cache_options",
  "safety_identifier",
  "temperature",
  "top_p",
  "truncation",
  "user",
  "stream_options",
  "background",
  "generate",
] as const;
/** What compaction does not take on top of those. */
const COMPACT_REFUSED_FIELDS = [
  ...REFUSED_FIELDS,
  "stream",
  "store",
  "text",
  "tools",
  "tool_choice",
  "client_metadata",
] as const;

const DECODER = new TextDecoder();

/**
 * Fits a JSON body to the backend. Every other byte, and every field nobody knows, stays as it came.
 *
 * @param known  the body's members where somebody has looked at them already: a body of megabytes is scanned once.
 * @returns the same object when nothing has to change, also for bodies that are no JSON object: the upstream says
 *   what is wrong with those.
 */
export function fitCodexBody(
  body: Uint8Array<ArrayBuffer>,
  request: OutgoingRequest,
  known: readonly JsonMember[] | null = null,
): Uint8Array<ArrayBuffer> {
  const rule = bodyRule(request);
  if (rule === null) return body;
  const members = known ?? membersOf(body);
  if (members === null) return body;
  const edits: JsonEdit[] = rule.refused.filter((key) => members.some((member) => member.key === key))
    .map((key) => ({ key, remove: true }));
  if (rule.transport) {
    if (!isOnly(members, "stream", "true")) edits.push({ key: "stream", json: "true" });
    if (!isOnly(members, "store", "false")) edits.push({ key: "store", json: "false" });
  }
  const instructions = findMember(members, "instructions")?.kind ?? "null";
  if (instructions === "null") edits.push({ key: "instructions", json: '""' });
  const input = findMember(members, "input");
  if (input?.kind === "string") {
    const item = userMessage(DECODER.decode(body.subarray(input.valueStart, input.valueEnd)));
    edits.push({ key: "input", json: `[${item}]` });
  }
  return edits.length === 0 ? body : editTopLevel(body, members, edits);
}

function membersOf(body: Uint8Array<ArrayBuffer>): readonly JsonMember[] | null {
  const scan = scanTopLevel(body);
  return scan.ok ? scan.members : null;
}

function bodyRule(
  request: OutgoingRequest,
): { readonly refused: readonly string[]; readonly transport: boolean } | null {
  if (request.websocket || request.method !== "POST") return null;
  if (request.route.name === "compact") return { refused: COMPACT_REFUSED_FIELDS, transport: false };
  return request.route.name === "responses" || TRANSLATED_ROUTES.has(request.route.name)
    ? { refused: REFUSED_FIELDS, transport: true }
    : null;
}

/** True when the field is there, once, with that value; readers of doubled fields differ on which one counts. */
function isOnly(members: readonly JsonMember[], key: string, kind: JsonMember["kind"]): boolean {
  const named = members.filter((member) => member.key === key);
  return named.length === 1 && named[0]!.kind === kind;
}

/** The platform's short form of one question, spelled out; `text` is a JSON string, quotes and escapes included. */
function userMessage(text: string): string {
  return `{"type":"message","role":"user","content":[{"type":"input_text","text":${text}}]}`;
}
