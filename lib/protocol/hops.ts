/**
 * Notices that a request came back to the proxy that sent it (B142).
 *
 * Only hosts reached over plain http can be another proxy of the owner's; public providers never see the header.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import type { HeaderFields } from "../core/header_fields.ts";

export const HOPS_HEADER = "x-holdfast-hops";
/** Chains of proxies longer than this are a mistake even without a loop. */
const LONGEST_CHAIN = 4;

export function isLoop(headers: HeaderLookup, instanceId: string): boolean {
  const hops = readHops(headers);
  return hops.includes(instanceId) || hops.length >= LONGEST_CHAIN;
}

/** Marks an outgoing request to a plain-http host. */
export function markHop(
  url: string,
  outgoing: HeaderFields,
  incoming: HeaderLookup,
  instanceId: string,
): void {
  if (url.startsWith("http:")) outgoing.set(HOPS_HEADER, [...readHops(incoming), instanceId].join(","));
}

function readHops(headers: HeaderLookup): string[] {
  return (headers.get(HOPS_HEADER) ?? "").split(",").map((hop) => hop.trim()).filter((hop) => hop !== "");
}
