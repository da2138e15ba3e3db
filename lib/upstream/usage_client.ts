/**
 * Reads the page on which a provider shows what is left of an account (wire-facts 3.3): one call, one value.
 *
 * Which page and with which headers is the provider descriptor's knowledge, and so is what the page means. Our own
 * calls are never evidence about an account (design.md ruling 12): a failure says when to ask again, no more.
 */
import { formatAttemptId } from "../core/domain.ts";
import { parseRetryAfter } from "../core/retry_after.ts";
import type { Clock, Upstream, UsageAnswer, UsageClient } from "../ports.ts";
import { readErrorBody } from "./error_body.ts";

const CONNECT_LIMIT_MS = 10_000;
const FIRST_BYTE_LIMIT_MS = 20_000;
/** Pages are 1 to 4 KB; with many model families perhaps ten times that. */
const PAGE_LIMIT_BYTES = 262_144;
/** A page's own limit is minutes; nobody is kept from asking for longer than a day. */
const RETRY_CAP_MS = 86_400_000;

export function createUsageClient(upstream: Upstream, clock: Clock): UsageClient {
  let callCount = 0;
  return {
    async read(call, signal) {
      callCount += 1;
      const sent = await upstream.send({
        method: "GET",
        url: call.url,
        headers: call.headers,
        body: null,
        bodyLength: null,
        fresh: true,
        connectTimeoutMs: CONNECT_LIMIT_MS,
        firstByteTimeoutMs: FIRST_BYTE_LIMIT_MS,
        attempt: formatAttemptId("usage", callCount),
      }, signal);
      if (!sent.ok) {
        const { evidence } = sent;
        if (evidence.kind === "client_cancelled") return failed("cancelled", null, null);
        return failed(evidence.kind === "transport" ? evidence.cause : evidence.kind, null, null);
      }
      const { status, headers } = sent.response;
      const bytes = await readErrorBody(sent.response, PAGE_LIMIT_BYTES, clock);
      if (signal.aborted) return failed("cancelled", null, null);
      if (status !== 200) {
        const nowMs = clock.now();
        const stated = parseRetryAfter(headers.get("retry-after"), nowMs, headers.get("date"));
        return failed("refused", status, stated === null ? null : Math.min(stated, nowMs + RETRY_CAP_MS));
      }
      try {
        return { ok: true, json: JSON.parse(new TextDecoder().decode(bytes)) as unknown };
      } catch {
        return failed("not_json", status, null);
      }
    },
  };
}

function failed(reason: string, status: number | null, retryAtMs: number | null): UsageAnswer {
  return { ok: false, reason, status, retryAtMs };
}
