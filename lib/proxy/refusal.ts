/**
 * Refusals of the proxy itself, before any account was looked at.
 */
import { type LocalKind, renderLocal } from "../protocol/answer.ts";
import type { Route } from "../protocol/route.ts";
import type { ProxyDeps } from "./deps.ts";
import { Answer } from "./answer.ts";

/** @param detail  our own sentence, more exact than the fixed one. */
export function refuse(
  deps: ProxyDeps,
  problem: LocalKind,
  protocol: Route["protocol"],
  id: string,
  detail?: string,
): Answer {
  const rendered = renderLocal(protocol, problem, { requestId: id, nowMs: deps.clock.now() }, detail);
  deps.log.write("info", "request_refused", { request_id: id, code: problem, status: rendered.status });
  const answer = new Answer(rendered.body, { status: rendered.status, headers: rendered.headers });
  // The rest of what its client sends so slowly is not waited for.
  if (problem === "request_timeout") answer.headers.set("connection", "close");
  return answer;
}
