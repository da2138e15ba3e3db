/**
 * `/status`: one page that shows what the proxy is doing, for whoever has the admin key. Reads only.
 */
import type { Clock, Digest, Ids, Log } from "../ports.ts";
import { AdminSessions, SESSION_MS } from "./admin_sessions.ts";
import { BodyPace, type BodyWatch } from "./body_pace.ts";
import type { DecisionLog } from "./decision_log.ts";
import { isoTime, viewDecision } from "./decision_view.ts";
import { tellBlock } from "./block_words.ts";
import { tellDecision } from "./decision_words.ts";
import type { EventFeed } from "./event_feed.ts";
import { readBounded } from "./json_input.ts";
import { json } from "./local_routes.ts";
import { LoginThrottle } from "./login_throttle.ts";
import { problem } from "./management.ts";
import type { StateView } from "./state_view.ts";
import { isOwnHost, isOwnPage } from "./status_guard.ts";
import { composePages, type StatusPages } from "./status_page.ts";
import { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface StatusDeps {
  readonly version: string;
  /** SHA-256 of the admin key; null: the page is off. */
  readonly adminKeyHash: () => string | null;
  /** `host` of the configuration. */
  readonly configuredHost: () => string;
  /** The port listened on; cookies know no ports, so that it is part of their name. */
  readonly port: () => number;
  readonly clock: Clock;
  readonly bodyWatch: BodyWatch;
  readonly digest: Digest;
  readonly ids: Ids;
  readonly log: Log;
  readonly decisions: DecisionLog;
  readonly state: StateView;
  readonly feed: EventFeed;
}

export type StatusRoutes = (
  request: ClientRequest,
  path: string,
) => Answer | Promise<Answer>;

const OFF = "The status page is off: set admin-api-key in the configuration to turn it on\n";
/** The key and its name, URL-encoded. */
const LOGIN_LIMIT_BYTES = 4_096;
/** Nobody who asks for this has shown a key yet. */
const LOGIN_LIMIT_MS = 10_000;
const REQUEST_PATH = /^\/status\/requests\/([A-Za-z0-9_-]{1,80})$/;

const COMMON_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  // Not `no-referrer`: with it browsers send `Origin: null` along with our own forms.
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

export function createStatus(deps: StatusDeps): StatusRoutes {
  const sessions = new AdminSessions(deps.ids, deps.digest);
  const throttle = new LoginThrottle();
  let pages: StatusPages | null = null;
  const context: Context = {
    ...deps,
    sessions,
    throttle,
    // Put together when somebody looks for the first time.
    pages: () => pages ??= composePages(deps.digest, deps.version),
  };
  return (request, path) => {
    const answer = route(context, request, path);
    return answer instanceof Promise ? answer.then(harden) : harden(answer);
  };
}

interface Context extends StatusDeps {
  readonly sessions: AdminSessions;
  readonly throttle: LoginThrottle;
  readonly pages: () => StatusPages;
}

function route(
  context: Context,
  request: ClientRequest,
  path: string,
): Answer | Promise<Answer> {
  const keyHash = context.adminKeyHash();
  if (keyHash === null) return text(404, OFF);
  const { headers } = request;
  if (!isOwnHost(headers.get("host"), context.configuredHost())) {
    return text(
      403,
      "This name does not belong to the status page: open it by the configured host or localhost\n",
    );
  }
  const reads = request.method === "GET" || request.method === "HEAD";
  if (!isOwnPage(headers, !reads)) {
    return text(403, "Another page asked for this; open the status page itself\n");
  }
  const session = readCookie(headers.get("cookie"), cookieName(context));
  const isOpen = () => context.sessions.isOpen(session, context.adminKeyHash(), context.clock.now());
  const one = REQUEST_PATH.exec(path);
  if (path === "/status" || path === "/status/") {
    if (!reads) return notAllowed("GET, HEAD");
    return isOpen() ? showPage(context) : showLogin(context, 200, null);
  }
  if (path === "/status/login" || path === "/status/logout") {
    if (request.method !== "POST") return notAllowed("POST");
    return path === "/status/login"
      ? logIn(context, request, keyHash, request.address ?? "unknown")
      : logOut(context, request, session);
  }
  if (path !== "/status/events" && one === null) return text(404, "There is no such page\n");
  if (request.method !== "GET") return notAllowed("GET");
  if (!isOpen()) return problem(401, "not_logged_in", "Log in at /status first");
  return one === null
    ? context.feed.open({ detail: "page", isAllowed: isOpen })
    : showRequest(context, one[1]!);
}

function showPage(context: Context): Answer {
  const { page, pagePolicy } = context.pages();
  return html(200, page, pagePolicy);
}

function showLogin(context: Context, status: number, said: string | null): Answer {
  const pages = context.pages();
  return html(status, pages.login(said), pages.loginPolicy);
}

async function logIn(
  context: Context,
  request: ClientRequest,
  keyHash: string,
  address: string,
): Promise<Answer> {
  const { clock, digest, throttle, log } = context;
  const waitMs = throttle.waitMs(address, clock.now());
  if (waitMs > 0) return tooMany(context, waitMs);
  const type = request.headers.get("content-type") ?? "";
  if (!type.startsWith("application/x-www-form-urlencoded")) {
    return showLogin(context, 415, "The form must be sent as a form.");
  }
  const bytes = await readBounded(
    request.body,
    LOGIN_LIMIT_BYTES,
    new BodyPace(context.bodyWatch, LOGIN_LIMIT_MS),
  );
  if (typeof bytes === "string") return showLogin(context, 413, "That is no key.");
  const key = new URLSearchParams(new TextDecoder().decode(bytes)).get("key")?.trim() ?? "";
  const nowMs = clock.now();
  // Asked again: tries sent side by side must not overtake the wait that the first of them earned.
  const overtakenMs = throttle.waitMs(address, nowMs);
  if (overtakenMs > 0) return tooMany(context, overtakenMs);
  if (!digest.equal(keyHash, digest.sha256(key))) {
    throttle.failed(address, nowMs);
    log.write("warn", "status_login_failed", { address });
    return showLogin(context, 401, "That is not the admin key.");
  }
  throttle.succeeded(address);
  log.write("info", "status_login", { address });
  const id = context.sessions.open(keyHash, nowMs);
  return redirect(cookie(context, request, id, SESSION_MS / 1_000));
}

function tooMany(context: Context, waitMs: number): Answer {
  const seconds = Math.ceil(waitMs / 1_000);
  const answer = showLogin(context, 429, `Too many wrong keys. Try again in ${seconds} s.`);
  answer.headers.set("retry-after", String(seconds));
  return answer;
}

function logOut(context: Context, request: ClientRequest, session: string | null): Answer {
  context.sessions.end(session);
  return redirect(cookie(context, request, "", 0));
}

function showRequest(context: Context, id: string): Answer {
  const { decisions, state } = context;
  const record = decisions.find(id);
  if (record === null) return problem(404, "not_found", "That request is not among the last 1,000");
  const story = tellDecision(record, (account) => state.label(account));
  return json({
    ...viewDecision(record),
    result: story.result,
    title: story.title,
    because: story.because,
    story: story.lines.map(({ atMs, ...line }) => ({
      at: isoTime(atMs),
      offset_ms: atMs - record.atMs,
      ...line,
    })),
    others: record.candidates
      .filter(({ block }) => block !== null)
      .map(({ account, block }) => ({
        account,
        words: tellBlock(block!.kind, block!.source),
        until: isoTime(block!.untilMs),
      })),
  });
}

// ---------------------------------------------------------------- cookies

/** Two proxies on one machine share their cookies, but not their sessions. */
function cookieName(context: Context): string {
  return `holdfast_${context.port()}`;
}

function cookie(context: Context, request: ClientRequest, value: string, maxAgeSeconds: number): string {
  const parts = [
    `${cookieName(context)}=${value}`,
    "Path=/status",
    "HttpOnly",
    "SameSite=Strict",
    `Max-Age=${maxAgeSeconds}`,
  ];
  if (cameByHttps(request)) parts.push("Secure");
  return parts.join("; ");
}

/** TLS may end at a proxy in front; the browser itself still says what it used. */
function cameByHttps(request: ClientRequest): boolean {
  return request.headers.get("origin")?.startsWith("https:") === true ||
    request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim() === "https";
}

function readCookie(header: string | null, name: string): string | null {
  for (const part of header?.split(";") ?? []) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return null;
}

// ---------------------------------------------------------------- answers

function html(status: number, body: string, policy: string): Answer {
  return new Answer(body, {
    status,
    headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": policy },
  });
}

function text(status: number, body: string): Answer {
  return new Answer(body, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
}

function notAllowed(allow: string): Answer {
  const answer = text(405, "This is not done here\n");
  answer.headers.set("allow", allow);
  return answer;
}

function redirect(setCookie: string): Answer {
  return new Answer(null, { status: 303, headers: { location: "/status", "set-cookie": setCookie } });
}

function harden(answer: Answer): Answer {
  for (const [name, value] of Object.entries(COMMON_HEADERS)) answer.headers.set(name, value);
  if (!answer.headers.has("content-security-policy")) {
    answer.headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  }
  return answer;
}
