/**
 * Which headers may cross the proxy, in either direction.
 *
 * Knows what belongs to one connection, to one hop or to one party; what a provider wants to see is the
 * descriptor's business. Nothing here throws: a pair that is not a legal header is left out.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import { HeaderFields, type HeaderList, isLegalField } from "../core/header_fields.ts";

/** RFC 9110 section 7.6.1, with the older names still seen in the field. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

/** Headers about the client, its key or its way to us: the upstream must not see them. */
const CLIENT_ONLY: ReadonlySet<string> = new Set([
  // The client's key opens this proxy, not the upstream.
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "cookie",
  "cookie2",
  // Who the client is and which way it came.
  "forwarded",
  "via",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "fastly-client-ip",
  "origin",
  "referer",
  // Made anew for the next hop.
  "host",
  "content-length",
  "expect",
  // `fetch` asks for the codings it can undo; the body it sends is already decoded.
  "accept-encoding",
  "content-encoding",
]);
const CLIENT_ONLY_PREFIXES = ["x-forwarded-", "cf-", "x-stainless-", "x-envoy-", "x-amzn-", "sec-"];

/** Headers about the upstream's edge, its cookies or its transport: the client must not see them. */
const UPSTREAM_ONLY: ReadonlySet<string> = new Set([
  "set-cookie",
  "set-cookie2",
  "www-authenticate",
  "authentication-info",
  "alt-svc",
  "strict-transport-security",
  "public-key-pins",
  "expect-ct",
  "server",
  "server-timing",
  "via",
  "x-powered-by",
  "x-served-by",
  "nel",
  "report-to",
  "reporting-endpoints",
  "date",
  "x-request-id",
]);
const UPSTREAM_ONLY_PREFIXES = ["cf-", "access-control-", "x-envoy-", "x-amzn-", "sec-"];

/** Where the upstream's own `x-request-id` goes; under its old name the client gets ours. */
const UPSTREAM_REQUEST_ID = "x-upstream-request-id";
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * The client's headers as far as any upstream may see them, names in lower case, repeats kept in order.
 *
 * Takes out what is hop-by-hop, also by the `Connection` header's own list, the client's credentials and cookies,
 * everything that tells who it is or how it came, and what the next hop makes anew.
 * Source: RFC 9110 section 7.6.1; wire-facts 5.1.
 *
 * @param wanted  what of the rest is to be kept.
 */
export function filterRequestHeaders(
  headers: HeaderList,
  wanted: (name: string) => boolean = () => true,
): HeaderFields {
  return filter(
    headers,
    (name) =>
      wanted(name) && !CLIENT_ONLY.has(name) &&
      !CLIENT_ONLY_PREFIXES.some((prefix) => name.startsWith(prefix)),
  );
}

/**
 * The upstream's headers as far as the client may see them.
 *
 * @param bodyUnchanged  true when the client gets exactly the bytes the upstream's `content-length` and
 *   `content-encoding` speak of; otherwise both are left out.
 * @returns headers without `x-request-id`: the caller sets its own.
 */
export function filterResponseHeaders(headers: HeaderList, bodyUnchanged: boolean): HeaderFields {
  const kept = filter(headers, (name) => {
    if (UPSTREAM_ONLY.has(name) || UPSTREAM_ONLY_PREFIXES.some((prefix) => name.startsWith(prefix))) {
      return false;
    }
    return bodyUnchanged || (name !== "content-length" && name !== "content-encoding");
  });
  const requestId = headers.get("x-request-id")?.trim() ?? null;
  if (requestId !== null && REQUEST_ID.test(requestId)) kept.set(UPSTREAM_REQUEST_ID, requestId);
  return kept;
}

/** What Codex reads from the answer that opens its WebSocket (wire-facts 5.7). */
const UPGRADE_ANSWER = [
  "x-codex-turn-state",
  "x-models-etag",
  "x-reasoning-included",
  "openai-model",
  "x-codex-websocket-max-message-bytes",
] as const;

/** The headers of an upstream's 101 that go into ours; absent ones are not invented. */
export function websocketUpgradeHeaders(headers: HeaderLookup): HeaderFields {
  const kept = new HeaderFields();
  for (const name of UPGRADE_ANSWER) {
    const value = headers.get(name);
    if (value !== null) setHeader(kept, name, value);
  }
  return kept;
}

/**
 * Sets a header, or leaves it out when the value cannot be one.
 *
 * `set` would throw; a broken token must end in a refused request, not in
 * a message that shows it.
 */
export function setHeader(headers: HeaderFields, name: string, value: string): void {
  if (isLegalField(name, value)) headers.set(name, value);
}

function filter(headers: HeaderList, allows: (name: string) => boolean): HeaderFields {
  const listed = connectionListed(headers.get("connection"));
  const kept = new HeaderFields();
  headers.forEach((value, rawName) => {
    const name = rawName.toLowerCase();
    if (HOP_BY_HOP.has(name) || listed?.has(name) === true || !allows(name)) return;
    kept.appendLegal(name, value);
  });
  return kept;
}

/** A sender may declare more headers hop-by-hop by naming them in `Connection`. */
function connectionListed(connection: string | null): ReadonlySet<string> | null {
  // What nearly every sender says.
  if (connection === null || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((token) => token.trim().toLowerCase()));
}
