/**
 * From a client's HTTP request to the one answer it gets.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import { isLoop } from "../protocol/hops.ts";
import { findMember, tellKind } from "../protocol/json_scan.ts";
import { matchRoute, type Route, type RouteMatch } from "../protocol/route.ts";
import { admit, type Tenant } from "./admission.ts";
import { runAttempt } from "./attempt_runner.ts";
import type { HandlerDeps, ProxyDeps } from "./deps.ts";
import { type Asked, describe } from "./describe_request.ts";
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
import { forgetBody } from "./upstream_body.ts";
import type { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

/** What no host name holds. */
const NO_HOST = /[/?#@\\\s,]/;

/** The handler the listener calls. Never throws for anything a client or an upstream may do. */
export function createHandler(
  deps: HandlerDeps,
): (request: ClientRequest) => Answer | Promise<Answer> {
  /** Every answer can be asked about; those about requests bring the id of theirs. */
  const name = (answer: Answer): Answer => {
    if (!answer.headers.has("x-request-id")) answer.headers.set("x-request-id", deps.ids.requestId());
    return answer;
  };
  return (request) => {
    const { headers, target } = request;
    if (isFramingDoubtful(headers)) {
      const detail = "The request states its length in a way that can be read differently";
      return lastOnConnection(refuse(deps, "invalid_request", "raw", deps.ids.requestId(), detail));
    }
    const host = headers.get("host") ?? "";
    if (NO_HOST.test(host)) {
      return refuse(deps, "invalid_request", "raw", deps.ids.requestId(), "The Host header is not a host");
    }
    const split = splitTarget(target);
    if (split === null) {
      const detail = "The request target is neither a path nor a URL";
      return refuse(deps, "invalid_request", "raw", deps.ids.requestId(), detail);
    }
    if (namesOtherHost(target, host)) {
      const detail = "The request target names another host than the Host header";
      return refuse(deps, "invalid_request", "raw", deps.ids.requestId(), detail);
    }
    const { path, search } = split;
    const local = deps.local(request, path, search);
    if (local !== null) return local instanceof Promise ? local.then(name) : name(local);
    const wantsSocket = headers.get("upgrade")?.toLowerCase() === "websocket";
    const match = matchRoute(request.method, path, wantsSocket);
    const id = deps.ids.requestId();
    if (match === null) return refuse(deps, "not_found", "raw", id);
    if (isLoop(headers, deps.instanceId)) {
      return refuse(deps, "loop_detected", match.route.protocol, id);
    }
    if (deps.isDraining()) return refuse(deps, "shutting_down", match.route.protocol, id);
    const admission = admit(headers, match.route, deps.admission);
    if (!admission.ok) return refuse(deps, admission.problem, match.route.protocol, id);
    if (match.route.websocket) return serveSocket(deps, request, match, search, admission.tenant, id);
    return serve(deps, request, match, search, admission.tenant, id);
  };
}

async function serve(
  deps: HandlerDeps,
  request: ClientRequest,
  match: RouteMatch,
  search: string,
  tenant: Tenant,
  id: string,
): Promise<Answer> {
  const { route } = match;
  const receivedAtMs = deps.clock.now();
  const abort = new AbortController();
  request.whenLeft(() => abort.abort());
  const { headers } = request;
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
    // Whose upload was under way when we stopped did nothing wrong.
    const endedByUs = read.problem === "aborted" && deps.isDraining();
    return endedByUs
      ? refuse(deps, "shutting_down", route.protocol, id)
      : refuseBody(deps, read.problem, route, id);
  }
  deps.traffic.bytesFromClients += lengthOf(read.body);
  const inspected = inspect(read.body, route, isJson);
  if (!inspected.ok) {
    forgetBody(read.body, deps.upstream);
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
    forgetBody(read.body, deps.upstream);
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

function refuseBody(deps: ProxyDeps, problem: BodyProblem, route: Route, id: string): Answer {
  const invalid = (detail: string) => refuse(deps, "invalid_request", route.protocol, id, detail);
  switch (problem) {
    case "bad_length":
      return lastOnConnection(invalid("The request body does not have the length it declares"));
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
 * Whether the next reader could see another body: with a coding below the chunks, which nobody would undo, or with a
 * length beside a transfer coding, were it an empty one.
 */
function isFramingDoubtful(headers: HeaderLookup): boolean {
  const coding = headers.get("transfer-encoding");
  return coding !== null &&
    (coding.trim().toLowerCase() !== "chunked" || headers.get("content-length") !== null);
}

/** Where it is in doubt where a request ends, nobody's next one may be taken from behind it. */
function lastOnConnection(answer: Answer): Answer {
  answer.headers.set("connection", "close");
  return answer;
}

/**
 * True where a target in absolute form contradicts `Host`: one of the two is a lie, and which one counts differs
 * between readers (RFC 9112 section 3.2.2 takes the target, most programs the header).
 */
export function namesOtherHost(target: string, host: string): boolean {
  // HTTP/1.0 may do without the header.
  if (target.startsWith("/") || host === "") return false;
  const authority = WHOLE_URL.exec(target)?.[1];
  return authority === undefined || plainHost(authority) !== plainHost(host);
}

const WHOLE_URL = /^https?:\/\/([^/?#]*)/i;

function plainHost(authority: string): string {
  return authority.toLowerCase().replace(/:80$/, "");
}

/** Path and query of a request target, byte for byte as received. @returns `null` when it has none. */
export function splitTarget(target: string): { path: string; search: string } | null {
  const begin = target.startsWith("/") ? 0 : WHOLE_URL.exec(target)?.[0].length;
  if (begin === undefined) return null;
  const query = target.indexOf("?", begin);
  const path = query < 0 ? target.slice(begin) : target.slice(begin, query);
  if (path !== "" && !path.startsWith("/")) return null;
  return { path: path === "" ? "/" : path, search: query < 0 ? "" : target.slice(query) };
}
