/**
 * The way out of the process, whose egress proxy can be changed while it runs.
 *
 * Requests and sockets under way keep the way they took; new ones take the new one.
 */
import type { Dialer, Upstream } from "../ports.ts";
import { createUpstream, type UpstreamOptions } from "./http_client.ts";
import { createDialer } from "./websocket_dialer.ts";

export interface Network {
  readonly upstream: Upstream;
  readonly dialer: Dialer;
  /** @throws SyntaxError when the URL cannot be read; the old way stays in use. */
  useProxy(proxyUrl: string): void;
}

export function createNetwork(options: UpstreamOptions): Network {
  let proxyUrl = options.proxyUrl;
  let current = createUpstream(options);
  let dialer = createDialer(options);
  const left: Upstream[] = [];
  return {
    upstream: {
      send: (request, signal) => current.send(request, signal),
      forget: (body) => current.forget(body),
      bodyFailure: (error) => current.bodyFailure(error),
      readErrorBody: (response) => current.readErrorBody(response),
      undoMissingLabel: (whole, limitBytes) => current.undoMissingLabel(whole, limitBytes),
      close: () => {
        for (const upstream of [...left, current]) upstream.close();
      },
    },
    dialer: { dial: (request, signal) => dialer.dial(request, signal) },
    useProxy(next) {
      if (next === proxyUrl) return;
      const changed = { ...options, proxyUrl: next };
      const upstream = createUpstream(changed);
      dialer = createDialer(changed);
      left.push(current);
      current = upstream;
      proxyUrl = next;
    },
  };
}
