/**
 * `GET /metrics`, for the operator alone.
 *
 * Who has the admin key may scrape; nobody else, not even on loopback: a reverse proxy on the same machine would make
 * everybody local, and account ids are in it.
 */
import type { Digest } from "../ports.ts";
import { isAdmin, problem } from "./management.ts";
import { Answer } from "./answer.ts";
import type { ClientRequest } from "./client_request.ts";

export interface MetricsRouteDeps {
  readonly adminKeyHash: () => string | null;
  readonly digest: Digest;
  readonly render: () => string;
}

const HEADERS = {
  "content-type": "text/plain; version=0.0.4; charset=utf-8",
  "cache-control": "no-store",
};

export function createMetricsRoute(deps: MetricsRouteDeps): (request: ClientRequest) => Answer {
  return (request) => {
    if (deps.adminKeyHash() === null) return problem(404, "not_found", "Metrics are off: set admin-api-key");
    if (!isAdmin(deps, request.headers)) {
      return problem(401, "invalid_api_key", "The admin key is missing or wrong");
    }
    return new Answer(request.method === "HEAD" ? null : deps.render(), { headers: HEADERS });
  };
}
