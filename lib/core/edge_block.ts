/**
 * Blocks and challenges put up in front of a provider: by its edge, or for a whole region.
 *
 * They meet every account alike, so no account may be cooled for them (design.md ruling 4).
 */
import type { ErrorFacts, HeaderLookup } from "./evidence.ts";

export type EdgeBlockCode = "edge_challenge" | "edge_blocked" | "edge_empty" | "region_blocked";

/**
 * Reads a failure answer for an edge's own hand.
 *
 * @returns a safe code, or `null` when the answer is the provider's. A JSON answer keeps its own meaning unless
 *   the edge's challenge header says otherwise.
 * Source: wire-facts 1.2 (Cloudflare block, challenge, empty 403); field case B148.
 */
export function readEdgeBlock(
  status: number,
  headers: HeaderLookup,
  error: ErrorFacts,
): EdgeBlockCode | null {
  // Cloudflare sends this header with a challenge only, whatever the body looks like.
  if (headers.get("cf-mitigated") !== null) return "edge_challenge";
  // RFC 7725: refused for legal reasons, which is a matter of where the proxy stands.
  if (status === 451) return "region_blocked";
  if (error.form === "html" || error.form === "text") {
    const text = error.message ?? "";
    if (CHALLENGE.test(text)) return "edge_challenge";
    if (BLOCK.test(text)) return "edge_blocked";
  }
  if (status === 403) {
    if (error.form === "html") return "edge_blocked";
    if (error.form === "empty") return "edge_empty";
  }
  if (status === 404 && isEdgeServer(headers)) {
    if (error.form === "html") return "edge_blocked";
    if (error.form === "empty") return "edge_empty";
  }
  return null;
}

const CHALLENGE =
  /challenge-platform|cf-mitigated|cf_chl_|just a moment\.\.\.|enable javascript and cookies/i;
/** `error code: 1020` is all Cloudflare says to a client it takes for no browser. */
const BLOCK =
  /attention required! \| cloudflare|sorry, you have been blocked|cloudflare ray id|^\s*error code: 1\d{3}\s*$/i;

function isEdgeServer(headers: HeaderLookup): boolean {
  return headers.get("cf-ray") !== null || EDGE_SERVER.test(headers.get("server") ?? "");
}

const EDGE_SERVER = /^(?:cloudflare|cloudfront|akamaighost|akamainetstorage|fastly|varnish)\b/i;
