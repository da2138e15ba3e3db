/** Requests and clients for tests of everything that goes through `Upstream`. */
import type { Clock, Upstream, UpstreamRequest, UpstreamResponse, UpstreamResult } from "../../lib/ports.ts";
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createUpstream, type UpstreamOptions } from "../../lib/upstream/http_client.ts";
import { TEST_CA } from "./rude_sockets.ts";

export const KEY_A = "SENT-tok-A";

export function testUpstream(clock: Clock, options: Partial<UpstreamOptions> = {}): Upstream & Disposable {
  const upstream = createUpstream({
    clock,
    proxyUrl: "direct",
    environment: NO_PROXY_ENVIRONMENT,
    caCerts: [TEST_CA],
    ...options,
  });
  return {
    send: (request, signal) => upstream.send(request, signal),
    forget: (body) => upstream.forget(body),
    bodyFailure: (error) => upstream.bodyFailure(error),
    readErrorBody: (response) => upstream.readErrorBody(response),
    undoMissingLabel: (whole, limitBytes) => upstream.undoMissingLabel(whole, limitBytes),
    close: () => upstream.close(),
    [Symbol.dispose]: () => upstream.close(),
  };
}

export function requestTo(url: string, changes: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    method: "POST",
    url,
    headers: new Headers({ authorization: `Bearer ${KEY_A}` }),
    body: new TextEncoder().encode('{"model":"m1"}'),
    bodyLength: null,
    fresh: false,
    connectTimeoutMs: 15_000,
    firstByteTimeoutMs: 600_000,
    attempt: "req_test:1",
    ...changes,
  };
}

/** Sends with a signal nobody aborts. */
export function send(upstream: Upstream, request: UpstreamRequest): Promise<UpstreamResult> {
  return upstream.send(request, new AbortController().signal);
}

/** @throws Error when the send failed. */
export function answerOf(result: UpstreamResult): UpstreamResponse {
  if (!result.ok) throw new Error(`Send failed: ${JSON.stringify(result.evidence)}`);
  return result.response;
}

/** @throws Error when the send failed, and whatever reading the body throws. */
export async function textOf(result: UpstreamResult): Promise<string> {
  return await new Response(answerOf(result).body).text();
}
