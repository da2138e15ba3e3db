/**
 * From a client's HTTP request to the one answer it gets.
 */
import { isLoop } from "../protocol/hops.ts";
import { findMember, tellKind } from "../protocol/json_scan.ts";
import { matchRoute, type Route, type RouteMatch } from "../protocol/route.ts";
import { admit, type Tenant } from "./admission.ts";
import { runAttempt } from "./attempt_runner.ts";
import type { HandlerDeps, ProxyDeps } from "./deps.ts";
import { type Asked, describe } from "./describe_request.ts";
import type { ConnectionInfo } from "./local_routes.ts";
import { enterRecovery } from "./recovery.ts";
import { refuse } from "./refusal.ts";
import {
  type BodyFields,
  type BodyProblem,
  readBodyFields,
  readRequestBody,
  type RequestBody,
} from "./request_body.ts";
import { countUsage, recordDone } from "./request_record.ts";
import { BODY_TOO_SLOW } from "./request_context.ts";
import { runRequest } from "./request_runner.ts";
import { serveSocket } from "./upgrade_handler.ts";
import { HeaderFields } from "../core/header_fields.ts";

/** The runtime joins Host and target to a URL: with these in it the host would reach into the path. */
const HOST_SMUGGLES = /[/?#@\\\s]/;

/** The handler `Deno.serve` calls. Never throws for anything a client or an upstream may do. */
export function createHandler(
  deps: HandlerDeps,
): (request: Request, info?: ConnectionInfo) => Response | Promise<Response> {
  return (request, info) => {
    const host = request.headers.get("host") ?? "";
    if (HOST_SMUGGLES.test(host)) {
      return refuse(deps, "invalid_request", "raw", deps.ids.requestId(), "The Host header is not a host");
    }
    const { url } = request;
    if (namesOtherHost(url, host)) {
      const detail = "The request target names another host than the Host header";
      return refuse(deps, "invalid_request", "raw", deps.ids.requestId(), detail);
    }
    const { path, search } = splitUrl(url);
    const local = deps.local(request, path, search, info);
    if (local !== null) return local;
    const upgrade = request.headers.get("upgrade");
    const match = matchRoute(request.method, path, upgrade !== null && upgrade.toLowerCase() === "websocket");
    const id = deps.ids.requestId();
    if (match === null) return refuse(deps, "not_found", "raw", id);
    if (isLoop(request.headers, deps.instanceId)) {
      return refuse(deps, "loop_detected", match.route.protocol, id);
    }
    if (deps.isDraining()) return refuse(deps, "shutting_down", match.route.protocol, id);
    const admission = admit(request.headers, match.route, deps.admission);
    if (!admission.ok) return refuse(deps, admission.problem, match.route.protocol, id);
    if (match.route.websocket) return serveSocket(deps, request, match, search, admission.tenant, id);
    return serve(deps, request, match, search, admission.tenant, id);
  };
}

async function serve(
  deps: HandlerDeps,
  request: Request,
  match: RouteMatch,
  search: string,
  tenant: Tenant,
  id: string,
): Promise<Response> {
  const { route } = match;
  const receivedAtMs = deps.clock.now();
  const abort = new AbortController();
  const watched = { request, abort, sinceMs: receivedAtMs };
  deps.cancelWatch.add(watched);
  const headers = HeaderFields.from(request.headers);
  const contentType = headers.get("content-type");
  const isJson = contentType === null || contentType.includes("json");
  const read = await readRequestBody(request, {
    inflate: deps.inflate,
    watch: deps.bodyWatch,
    graceMs: deps.config().timeouts.requestBodyMs,
    mustInspect: isJson && route.namesModel,
    tooSlow: () => abort.abort(BODY_TOO_SLOW),
  });
  if (!read.ok) {
    deps.cancelWatch.remove(watched);
    return refuseBody(deps, read.problem, route, id);
  }
  deps.traffic.bytesFromClients += lengthOf(read.body);
  const inspected = inspect(read.body, route, isJson);
  if (!inspected.ok) {
    deps.cancelWatch.remove(watched);
    return refuse(
      deps,
      inspected.tooLarge ? "request_too_large" : "invalid_request",
      route.protocol,
      id,
      inspected.problem,
    );
  }
  const fields = inspected.fields;
  const asked: Asked = {
    id,
    tenant,
    match,
    method: request.method,
    search,
    contentType,
    headers,
    body: read.body,
    fields,
    receivedAtMs,
  };
  const { context, turnStateAccount } = describe(deps, asked, abort);
  if (context.spec.targets.length + context.spec.fallbacks.length === 0) {
    deps.cancelWatch.remove(watched);
    return refuse(
      deps,
      "not_found",
      route.protocol,
      id,
      "No configured provider of this model serves this route",
    );
  }
  const { recovery } = deps.config().streaming;
  const { spec, slot } = enterRecovery(deps.recoverySlots, recovery, context.spec, route.protocol);
  const started = spec === context.spec ? context : { ...context, spec };
  try {
    return await runRequest(deps, {
      context: started,
      slot,
      turnStateAccount,
      attempt: runAttempt,
      onDone: (record, usage, launch) => {
        countUsage(deps, started, record, usage, launch);
        recordDone(deps, started, record, usage, launch);
      },
    });
  } catch (error) {
    slot?.release();
    throw error;
  } finally {
    deps.cancelWatch.remove(watched);
  }
}

/** Bodies that stream by are counted as far as their length was declared. */
function lengthOf(body: RequestBody): number {
  return body.kind === "bytes" ? body.bytes.length : body.kind === "stream" ? body.length ?? 0 : 0;
}

type Inspection =
  | { readonly ok: true; readonly fields: BodyFields | null }
  | { readonly ok: false; readonly tooLarge: boolean; readonly problem: string };

/** No provider names a model at such length. */
const MODEL_NAME_LIMIT_CHARACTERS = 256;

function inspect(body: RequestBody, route: Route, isJson: boolean): Inspection {
  if (!route.namesModel) return { ok: true, fields: null };
  if (body.kind === "stream") return { ok: true, fields: null };
  if (body.kind === "none") {
    return route.protocol === "raw"
      ? { ok: true, fields: null }
      : { ok: false, tooLarge: false, problem: "The request has no body" };
  }
  if (!isJson && route.protocol === "raw") return { ok: true, fields: null };
  const read = readBodyFields(body.bytes);
  if (read.ok) {
    const model = findMember(read.fields.members, "model");
    if (model !== null && model.kind !== "string" && model.kind !== "null") {
      // Taken for a missing one it would go to the default provider, or be told that no account is available.
      const problem = `"model" must be a string, got ${tellKind(model.kind)}`;
      return { ok: false, tooLarge: false, problem };
    }
    const length = read.fields.model?.length ?? 0;
    if (length <= MODEL_NAME_LIMIT_CHARACTERS) return { ok: true, fields: read.fields };
    // It would be kept with each of the last decisions.
    return {
      ok: false,
      tooLarge: false,
      problem: `"model" must be at most ${MODEL_NAME_LIMIT_CHARACTERS} characters, got ${length}`,
    };
  }
  return { ok: false, tooLarge: false, problem: `The request body is not a JSON object: ${read.problem}` };
}

function refuseBody(deps: ProxyDeps, problem: BodyProblem, route: Route, id: string): Response {
  const invalid = (detail: string) => refuse(deps, "invalid_request", route.protocol, id, detail);
  switch (problem) {
    case "bad_length":
      return lastOnConnection(invalid("The request body does not have the length it declares"));
    case "bad_transfer":
      return lastOnConnection(invalid("The transfer-encoding of the request body is not chunked alone"));
    case "too_slow":
      return refuse(deps, "request_timeout", route.protocol, id);
    case "aborted":
      return invalid("The request body ended before it was complete");
    case "unknown_coding":
      return refuse(deps, "unsupported_encoding", route.protocol, id);
    case "corrupt_coding":
      return invalid("The request body cannot be decompressed");
    case "too_large":
      return refuse(deps, "request_too_large", route.protocol, id);
  }
}

/**
 * Where it is in doubt where a request ends, whoever stands before us must not send another behind it. The runtime
 * itself would still answer one that came already; it needs a key of its own.
 */
function lastOnConnection(answer: Response): Response {
  answer.headers.set("connection", "close");
  return answer;
}

/**
 * True where a target in absolute form contradicts `Host`: one of the two is a lie, and which one counts differs
 * between readers (RFC 9112 section 3.2.2 takes the target, most programs the header).
 */
export function namesOtherHost(url: string, host: string): boolean {
  // HTTP/2 and HTTP/1.0 may do without the header.
  if (host === "") return false;
  // How the runtime writes every target that is a path alone.
  if (url.startsWith(HTTP) && url.startsWith(host, HTTP.length) && url[HTTP.length + host.length] === "/") {
    return false;
  }
  const authority = /^https?:\/\/([^/?#]*)/.exec(url)?.[1];
  return authority === undefined || plainHost(authority) !== plainHost(host);
}

const HTTP = "http://";

function plainHost(authority: string): string {
  return authority.toLowerCase().replace(/:80$/, "");
}

/** Path and query of an absolute request URL, byte for byte as received. */
export function splitUrl(url: string): { path: string; search: string } {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return { path: "/", search: "" };
  const query = url.indexOf("?", start);
  return query < 0
    ? { path: url.slice(start), search: "" }
    : { path: url.slice(start, query), search: url.slice(query) };
}
