/**
 * What the proxy answers by itself, without any account: liveness, readiness, and who it is.
 */
import type { StatusRoutes } from "./status.ts";
import { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

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
    request: ClientRequest,
    path: string,
    search: string,
  ) => Answer | Promise<Answer> | null;
  readonly models: (request: ClientRequest, search: string) => Answer | Promise<Answer>;
  readonly metrics: (request: ClientRequest) => Answer | Promise<Answer> | null;
  readonly status: StatusRoutes;
}

export type LocalRoutes = (
  request: ClientRequest,
  path: string,
  search: string,
) => Answer | Promise<Answer> | null;

/** @returns `null` when the path is not one of the local ones. */
export function createLocalRoutes(deps: LocalRoutesDeps): LocalRoutes {
  return (request, path, search) => {
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
    if (path === "/status" || path.startsWith("/status/")) return deps.status(request, path);
    return null;
  };
}

export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return new Answer(JSON.stringify(value), {
    status,
    headers: { ...headers, "content-type": "application/json", "cache-control": "no-store" },
  });
}
