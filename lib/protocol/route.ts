/**
 * The route table: every client route, where it goes and whether it may be sent again (design.md 4).
 *
 * One table for the server, the replay rule, the tests that walk it and the table in the documents.
 */
import type { ClientProtocol } from "../core/domain.ts";

/** Which upstream base a route belongs to: Codex's own, ChatGPT's backend, or any kind by model. */
export type RouteBase = "codex" | "chatgpt" | "any";

export type RouteName =
  | "responses"
  | "responses_ws"
  | "compact"
  | "search"
  | "images_generations"
  | "images_edits"
  | "trace_summarize"
  | "realtime_calls"
  | "realtime_ws"
  | "files"
  | "files_uploaded"
  | "wham_usage"
  | "wham_profile"
  | "wham_accounts"
  | "wham_nudge"
  | "wham_apps"
  | "mcp"
  | "chat"
  | "messages"
  | "count_tokens";

export interface Route {
  readonly name: RouteName;
  readonly methods: readonly string[];
  /** Client paths, without query. `{id}` matches one segment. */
  readonly paths: readonly string[];
  readonly base: RouteBase;
  /** Path below the base; `{id}` is filled from the client's path. */
  readonly upstreamPath: string;
  readonly protocol: ClientProtocol;
  /**
   * `replayable`: may be sent again while nothing was committed. `json_only`: replayable with a JSON or absent
   * content type. `once`: exactly one launch. Bodies that cannot be recreated are sent once on every route.
   */
  readonly replay: "replayable" | "json_only" | "once";
  readonly websocket: boolean;
  /** True where an access token of one of our own accounts is accepted as the client key (ruling 14). */
  readonly admitsAccountToken: boolean;
  /** True where a JSON body names a model. */
  readonly namesModel: boolean;
}

interface RouteSketch {
  name: RouteName;
  methods: string[];
  paths: string[];
  base: RouteBase;
  upstreamPath: string;
  protocol?: ClientProtocol;
  replay: Route["replay"];
  websocket?: boolean;
  admitsAccountToken?: boolean;
  namesModel?: boolean;
}

const SKETCHES: RouteSketch[] = [
  {
    name: "responses",
    methods: ["POST"],
    paths: ["/v1/responses", "/backend-api/codex/responses"],
    base: "any",
    upstreamPath: "/responses",
    protocol: "responses",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "responses_ws",
    methods: ["GET"],
    paths: ["/v1/responses", "/backend-api/codex/responses"],
    base: "codex",
    upstreamPath: "/responses",
    protocol: "responses",
    replay: "replayable",
    websocket: true,
  },
  {
    name: "compact",
    methods: ["POST"],
    paths: ["/v1/responses/compact", "/backend-api/codex/responses/compact"],
    base: "codex",
    upstreamPath: "/responses/compact",
    protocol: "responses",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "search",
    methods: ["POST"],
    paths: ["/v1/alpha/search", "/backend-api/codex/alpha/search"],
    base: "codex",
    upstreamPath: "/alpha/search",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "images_generations",
    methods: ["POST"],
    paths: ["/v1/images/generations", "/backend-api/codex/images/generations"],
    base: "codex",
    upstreamPath: "/images/generations",
    replay: "json_only",
    namesModel: true,
  },
  {
    name: "images_edits",
    methods: ["POST"],
    paths: ["/v1/images/edits", "/backend-api/codex/images/edits"],
    base: "codex",
    upstreamPath: "/images/edits",
    replay: "once",
    namesModel: true,
  },
  {
    name: "trace_summarize",
    methods: ["POST"],
    paths: ["/v1/memories/trace_summarize", "/backend-api/codex/memories/trace_summarize"],
    base: "codex",
    upstreamPath: "/memories/trace_summarize",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "realtime_calls",
    methods: ["POST"],
    paths: ["/v1/realtime/calls", "/backend-api/codex/realtime/calls"],
    base: "codex",
    upstreamPath: "/realtime/calls",
    replay: "once",
  },
  {
    name: "realtime_ws",
    methods: ["GET"],
    paths: ["/v1/realtime", "/backend-api/codex/realtime"],
    base: "codex",
    upstreamPath: "/realtime",
    replay: "once",
    websocket: true,
  },
  {
    name: "files",
    methods: ["POST"],
    paths: ["/files", "/backend-api/files"],
    base: "chatgpt",
    upstreamPath: "/files",
    replay: "once",
    admitsAccountToken: true,
  },
  {
    name: "files_uploaded",
    methods: ["POST"],
    paths: ["/files/{id}/uploaded", "/backend-api/files/{id}/uploaded"],
    base: "chatgpt",
    upstreamPath: "/files/{id}/uploaded",
    replay: "once",
    admitsAccountToken: true,
  },
  {
    name: "wham_usage",
    methods: ["GET", "HEAD"],
    paths: ["/backend-api/wham/usage"],
    base: "chatgpt",
    upstreamPath: "/wham/usage",
    replay: "replayable",
    admitsAccountToken: true,
  },
  {
    name: "wham_profile",
    methods: ["GET", "HEAD"],
    paths: ["/backend-api/wham/profiles/me"],
    base: "chatgpt",
    upstreamPath: "/wham/profiles/me",
    replay: "replayable",
    admitsAccountToken: true,
  },
  {
    name: "wham_accounts",
    methods: ["GET", "HEAD"],
    paths: ["/backend-api/wham/accounts/check"],
    base: "chatgpt",
    upstreamPath: "/wham/accounts/check",
    replay: "replayable",
    admitsAccountToken: true,
  },
  {
    name: "wham_nudge",
    methods: ["POST"],
    paths: ["/backend-api/wham/accounts/send_add_credits_nudge_email"],
    base: "chatgpt",
    upstreamPath: "/wham/accounts/send_add_credits_nudge_email",
    replay: "once",
    admitsAccountToken: true,
  },
  {
    name: "wham_apps",
    methods: ["POST"],
    paths: ["/backend-api/wham/apps"],
    base: "chatgpt",
    upstreamPath: "/wham/apps",
    replay: "once",
    admitsAccountToken: true,
  },
  {
    name: "mcp",
    methods: ["POST"],
    paths: ["/backend-api/ps/mcp"],
    base: "chatgpt",
    upstreamPath: "/ps/mcp",
    replay: "once",
    admitsAccountToken: true,
  },
  {
    name: "chat",
    methods: ["POST"],
    paths: ["/v1/chat/completions"],
    base: "any",
    upstreamPath: "/chat/completions",
    protocol: "chat",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "messages",
    methods: ["POST"],
    paths: ["/v1/messages"],
    base: "any",
    upstreamPath: "/v1/messages",
    protocol: "messages",
    replay: "replayable",
    namesModel: true,
  },
  {
    name: "count_tokens",
    methods: ["POST"],
    paths: ["/v1/messages/count_tokens"],
    base: "any",
    upstreamPath: "/v1/messages/count_tokens",
    protocol: "messages",
    replay: "replayable",
    namesModel: true,
  },
];

export const ROUTES: readonly Route[] = SKETCHES.map((sketch) => ({
  protocol: "raw",
  websocket: false,
  admitsAccountToken: false,
  namesModel: false,
  ...sketch,
}));

const EXACT = new Map<string, Route>();
const PATTERNS: {
  readonly method: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly route: Route;
}[] = [];
for (const route of ROUTES) {
  for (const method of route.methods) {
    for (const path of route.paths) {
      const at = path.indexOf("{id}");
      if (at < 0) EXACT.set(key(method, path, route.websocket), route);
      else PATTERNS.push({ method, prefix: path.slice(0, at), suffix: path.slice(at + 4), route });
    }
  }
}

export interface RouteMatch {
  readonly route: Route;
  /** Path below the upstream base, `{id}` filled in as it came (still percent-encoded). */
  readonly upstreamPath: string;
  readonly id: string | null;
}

/**
 * Finds the route of a request.
 *
 * @param path  the path as received, without query; compared byte for byte, so `//` or `%2e` never match by accident.
 * @param upgrade  true when the client asks for a WebSocket.
 * @returns `null` for everything else: 404, nothing sent.
 */
export function matchRoute(method: string, path: string, upgrade: boolean): RouteMatch | null {
  const route = EXACT.get(key(method, path, upgrade));
  if (route !== undefined) return { route, upstreamPath: route.upstreamPath, id: null };
  if (upgrade) return null;
  for (const pattern of PATTERNS) {
    if (method !== pattern.method || !path.startsWith(pattern.prefix) || !path.endsWith(pattern.suffix)) {
      continue;
    }
    const id = path.slice(pattern.prefix.length, path.length - pattern.suffix.length);
    if (!RESOURCE_ID.test(id)) continue;
    return { route: pattern.route, upstreamPath: pattern.route.upstreamPath.replace("{id}", id), id };
  }
  return null;
}

/** True when some other method of this path exists: 405 is still a 404 to us, but the message may say so. */
export function pathIsKnown(path: string): boolean {
  return ROUTES.some((route) => route.paths.includes(path));
}

/** Ids are opaque words; anything that could change the path (dots, slashes, percent) is refused. */
const RESOURCE_ID = /^[A-Za-z0-9_-]{1,200}$/;

function key(method: string, path: string, websocket: boolean): string {
  return websocket ? `WS ${path}` : `${method} ${path}`;
}
