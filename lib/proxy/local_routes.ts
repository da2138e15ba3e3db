/**
 * What the proxy answers by itself, without any account: liveness, readiness, and who it is.
 */
import type { StatusRoutes } from "./status.ts";

/** Who is on the other end, as `Deno.serve` tells it. */
export interface ConnectionInfo {
  readonly remoteAddr: Deno.Addr;
}

export interface Readiness {
  readonly ready: boolean;
  /** Our own sentence; null when ready. */
  readonly reason: string | null;
}

export interface LocalRoutesDeps {
  readonly version: string;
  readonly readiness: () => Readiness;
  /** `/v0/…`; null where the path is not management's. */
  readonly management: (
    request: Request,
    path: string,
    search: string,
  ) => Response | Promise<Response> | null;
  readonly models: (request: Request, search: string) => Response | Promise<Response>;
  readonly metrics: (request: Request) => Response | Promise<Response> | null;
  readonly status: StatusRoutes;
}

export type LocalRoutes = (
  request: Request,
  path: string,
  search: string,
  info: ConnectionInfo | undefined,
) => Response | Promise<Response> | null;

/** @returns `null` when the path is not one of the local ones. */
export function createLocalRoutes(deps: LocalRoutesDeps): LocalRoutes {
  return (request, path, search, info) => {
    // Everything a coding client sends lies below these two; the rest is rare.
    if (path === "/v1/responses" || path === "/v1/messages" || path === "/v1/chat/completions") return null;
    const reading = request.method === "GET" || request.method === "HEAD";
    if (reading) {
      switch (path) {
        case "/":
          return json({ name: "holdfast", version: deps.version });
        case "/healthz":
          return json({ status: "ok" });
        case "/readyz": {
          const { ready, reason } = deps.readiness();
          return json(ready ? { status: "ready" } : { status: "not_ready", reason }, ready ? 200 : 503);
        }
        case "/metrics":
          return deps.metrics(request);
        case "/v1/models":
        case "/backend-api/codex/models":
          return deps.models(request, search);
      }
    }
    if (path.startsWith("/v0/")) return deps.management(request, path, search);
    if (path === "/status" || path.startsWith("/status/")) return deps.status(request, path, info);
    return null;
  };
}

export function json(value: unknown, status = 200, headers: HeadersInit = {}): Response {
  const all = new Headers(headers);
  all.set("content-type", "application/json");
  all.set("cache-control", "no-store");
  return new Response(JSON.stringify(value), { status, headers: all });
}
