/** What the request headers of all kinds have in common: which of the client's pass, and the labels of the body. */
import type { HeaderFields, HeaderList } from "../core/header_fields.ts";
import { filterRequestHeaders, setHeader } from "../protocol/headers.ts";
import type { OutgoingRequest } from "./provider.ts";

/**
 * What a client may say to a provider. A list of what passes, not of what does not: foreign headers trip the edge's
 * firewall, and a key under a name nobody thought of must not leave the machine.
 */
export interface KeptHeaders {
  readonly names: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

/** They name the organisation of the client's own key, or are such a key (`x-openai-api-key`). */
const FOREIGN = /^openai-(?:organization|project)$|api-?key|token|secret|password/;

export function keepHeaders(
  clientHeaders: HeaderList,
  { names, prefixes }: KeptHeaders,
): HeaderFields {
  return filterRequestHeaders(
    clientHeaders,
    (name) => (names.has(name) || prefixes.some((prefix) => name.startsWith(prefix))) && !FOREIGN.test(name),
  );
}

export function setDefault(headers: HeaderFields, name: string, value: string): void {
  if ((headers.get(name) ?? "") === "") setHeader(headers, name, value);
}

/** Asks for the form of answer the request is about and labels the body. */
export function fitContent(headers: HeaderFields, request: OutgoingRequest): void {
  if (request.streaming && request.method === "POST") headers.set("accept", "text/event-stream");
  else setDefault(headers, "accept", "application/json");
  if (request.route.protocol !== "raw") setDefault(headers, "content-type", "application/json");
  if (request.bodyCoding) setHeader(headers, "content-encoding", request.bodyCoding);
}

/** The query as it goes upstream: one of a foreign protocol belongs to that protocol (`?beta=true`). */
export function keptSearch(request: OutgoingRequest): string {
  return request.protocol === request.route.protocol ? request.search : "";
}
