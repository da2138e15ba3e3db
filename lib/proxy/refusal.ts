/**
 * Refusals of the proxy itself, before any account was looked at.
 */
import { type LocalKind, renderLocal } from "../protocol/answer.ts";
import type { Route } from "../protocol/route.ts";
import type { ProxyDeps } from "./deps.ts";

/** @param detail  our own sentence, more exact than the fixed one. */
export function refuse(
  deps: ProxyDeps,
  problem: LocalKind,
  protocol: Route["protocol"],
  id: string,
  detail?: string,
): Response {
  const rendered = renderLocal(protocol, problem, { requestId: id, nowMs: deps.clock.now() }, detail);
  deps.log.write("info", "request_refused", { request_id: id, code: problem, status: rendered.status });
  return new Response(rendered.body, { status: rendered.status, headers: rendered.headers });
}
