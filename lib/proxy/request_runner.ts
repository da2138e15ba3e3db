/**
 * Drives one request through the pool's steps: the only loop there is. It does what it is told and reports what came.
 */
import type { AccountId } from "../core/domain.ts";
import type { FinalAnswer } from "../core/final_error.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Launch } from "../core/retry_plan.ts";
import type { DecisionRecord } from "../core/decision.ts";
import { StoreFailure } from "../ports.ts";
import { renderFinal } from "../protocol/answer.ts";
import type { RouteBase } from "../protocol/route.ts";
import { isOwnDialect, wordUpstreamError } from "../protocol/relay_error.ts";
import type { TokenUsage } from "../protocol/stream_dialect.ts";
import {
  type AttemptHooks,
  type AttemptInput,
  type AttemptResult,
  judge,
  type RelayAnswer,
} from "./attempt_runner.ts";
import type { ProxyDeps } from "./deps.ts";
import type { RequestPlan } from "./pool_runtime.ts";
import { joinBytes } from "./answer_stream.ts";
import type { RecoverySlot } from "./recovery_slots.ts";
import { refuse } from "./refusal.ts";
import { isEndedByShutdown, isTooSlow, type RequestContext } from "./request_context.ts";
import { deliverPieces } from "./stream_relay.ts";
import { letGoOfBody } from "./upstream_body.ts";
import { Answer } from "./answer.ts";

/** Nobody reads it: the client has left. */
export const CLIENT_GONE_STATUS = 499;

export interface RunInput {
  readonly context: RequestContext;
  readonly slot: RecoverySlot | null;
  readonly turnStateAccount: AccountId | null;
  /** Runs one launch: over HTTP, or as the handshake of a WebSocket. */
  readonly attempt: (deps: ProxyDeps, input: AttemptInput) => Promise<AttemptResult>;
  /** Called once, when everything of the request is over. */
  readonly onDone: (record: DecisionRecord, usage: TokenUsage | null, launch: Launch | null) => void;
}

export async function runRequest(deps: ProxyDeps, input: RunInput): Promise<Answer> {
  const { context, slot } = input;
  const { pool, clock } = deps;
  const plan = pool.begin(context.spec, clock.now());
  deps.running.add(context.abort);
  let relay: { launch: Launch; answer: RelayAnswer | null } | null = null;
  let fingerprint = "";
  const done = (
    status: number,
    code: string | null,
    usage: TokenUsage | null,
    launch: Launch | null,
  ): void => {
    slot?.release();
    deps.running.delete(context.abort);
    letGoOfBody(context, deps.upstream);
    const record = pool.finish(plan, status, code, clock.now());
    deps.recoverySlots.count(record);
    input.onDone(record, usage, launch);
  };
  let broken = false;
  /** Expected failures are values: what throws here is a broken invariant or a store that is gone. */
  const breakDown = (error: unknown): void => {
    if (broken) return;
    broken = true;
    slot?.release();
    deps.running.delete(context.abort);
    deps.fatal(error);
  };
  const finished = (launch: Launch, outcome: Outcome, status: number, usage: TokenUsage | null): void => {
    try {
      pool.settle(plan, launch, outcome, clock.now());
      done(
        outcome.kind === "cancelled" && outcome.origin === "client" ? 0 : status,
        outcome.kind === "success" ? null : outcome.code,
        usage,
        launch,
      );
    } catch (error) {
      // Nobody waits for a stream's end but the client, who could tell nobody.
      breakDown(error);
      throw error;
    }
  };
  /** Nobody is blamed, and nothing is sent any more. */
  const abandon = (): Answer => {
    pool.cancel(plan, clock.now());
    if (isEndedByShutdown(context)) {
      const refusal = refuse(deps, "shutting_down", context.protocol, context.id);
      done(refusal.status, "shutting_down", null, null);
      return refusal;
    }
    if (isTooSlow(context)) {
      const refusal = refuse(deps, "request_timeout", context.protocol, context.id);
      done(refusal.status, "request_timeout", null, null);
      return refusal;
    }
    done(0, "client_gone", null, null);
    return new Answer(null, { status: CLIENT_GONE_STATUS });
  };
  const breakRequest = (): Answer => {
    pool.cancel(plan, clock.now());
    done(500, "internal_error", null, null);
    return refuse(deps, "internal_error", context.protocol, context.id);
  };
  const hooks: AttemptHooks = {
    commit: (launch) => {
      pool.commit(plan, launch, clock.now());
      letGoOfBody(context, deps.upstream);
    },
    finished,
    bodyBroke: (launch, evidence, status) => {
      finished(
        launch,
        judge(deps, deps.provider(launch.provider)!, launch, evidence, context.match.route.base),
        status,
        null,
      );
    },
    closed: (launch, outcome, status) => {
      pool.socketClosed(plan, launch, outcome, clock.now());
      done(status, outcome.kind === "success" ? null : outcome.code, null, launch);
    },
  };
  try {
    for (;;) {
      const step = pool.next(plan, clock.now());
      switch (step.kind) {
        case "launch": {
          relay = null;
          slot?.hold(0);
          const result = await attemptSafely(deps, input.attempt, {
            context,
            spec: context.spec,
            plan,
            launch: step.launch,
            slot,
            turnStateAccount: input.turnStateAccount,
            hooks,
          });
          // What one body or answer broke must not end everybody's service.
          if (result === null) return breakRequest();
          if (result.kind === "committed") return result.response;
          // What was held of any other failure is never shown: a relaunch must not keep it beside its own.
          const { kind } = result.outcome;
          const mayRelay = kind === "request_fault" || kind === "local_limit" ||
            context.spec.replay === "once";
          if (mayRelay) relay = { launch: step.launch, answer: result.relay };
          else slot?.hold(0);
          fingerprint = result.fingerprint ?? fingerprint;
          pool.settle(plan, step.launch, result.outcome, clock.now());
          if (result.outcome.kind === "unauthorized" && context.spec.replay === "once") {
            refreshInBackground(deps, step.launch, fingerprint, context.match.route.base);
          }
          break;
        }
        case "repair": {
          const usable = await deps.credentials.repair(step.account, fingerprint, context.abort.signal);
          pool.repaired(
            plan,
            step.launch,
            usable.ok ? { kind: "fresh_token", fingerprint: usable.fingerprint } : {
              kind: "failed",
              outcome: judge(
                deps,
                deps.provider(step.launch.provider)!,
                step.launch,
                usable.evidence,
                context.match.route.base,
              ),
            },
            clock.now(),
          );
          break;
        }
        case "wait":
          await clock.sleepUntil(step.untilMs, context.abort.signal);
          break;
        case "answer":
          return answerFinal(deps, input, plan, step.answer, done);
        case "relay":
          return relayAnswer(deps, input, step.launch, relay, done);
        case "stop":
          return abandon();
      }
      if (context.abort.signal.aborted) return abandon();
    }
  } catch (error) {
    breakDown(error);
    throw error;
  }
}

/**
 * Runs one attempt. A store that is gone ends the process; whatever else is thrown is a fault of ours on this one
 * request, told by its name alone.
 *
 * @returns `null` for such a fault.
 */
async function attemptSafely<Result>(
  deps: ProxyDeps,
  attempt: (deps: ProxyDeps, input: AttemptInput) => Promise<Result>,
  input: AttemptInput,
): Promise<Result | null> {
  try {
    return await attempt(deps, input);
  } catch (error) {
    if (error instanceof StoreFailure) throw error;
    deps.log.write("error", "attempt_broke", {
      request_id: input.context.id,
      attempt: input.launch.attempt,
      problem: error instanceof Error ? error.name : "unknown",
    });
    return null;
  }
}

/** A 401 that may not be repaired by a second send still starts a refresh, whose result decides (ruling 19). */
function refreshInBackground(deps: ProxyDeps, launch: Launch, fingerprint: string, base: RouteBase): void {
  const { pool, clock } = deps;
  deps.credentials.repair(launch.account, fingerprint, null).then((usable) => {
    if (usable.ok) pool.refreshed(launch.account, usable.fingerprint, clock.now());
    else {
      const outcome = judge(deps, deps.provider(launch.provider)!, launch, usable.evidence, base);
      pool.backgroundRefreshFailed(launch.account, outcome, clock.now());
    }
  }).catch(deps.fatal);
}

type Done = (status: number, code: string | null, usage: TokenUsage | null, launch: Launch | null) => void;

function answerFinal(
  deps: ProxyDeps,
  input: RunInput,
  _plan: RequestPlan,
  answer: FinalAnswer,
  done: Done,
): Answer {
  const { context } = input;
  const rendered = renderFinal(context.protocol, answer, {
    requestId: context.id,
    nowMs: deps.clock.now(),
  });
  done(rendered.status, answer.code, null, null);
  return new Answer(context.method === "HEAD" ? null : rendered.body, {
    status: rendered.status,
    headers: rendered.headers,
  });
}

/** The upstream's own refusal of this request (row E2), or a once-only route's answer (E3). */
function relayAnswer(
  deps: ProxyDeps,
  input: RunInput,
  launch: Launch,
  relay: { launch: Launch; answer: RelayAnswer | null } | null,
  done: Done,
): Answer {
  const { context } = input;
  if (relay === null || relay.answer === null || relay.launch.attempt !== launch.attempt) {
    throw new Error(`Cannot relay attempt ${launch.attempt}: its answer was not kept`);
  }
  const { answer } = relay;
  if (answer.kind === "passed") {
    done(answer.response.status, answer.code, null, launch);
    return answer.response;
  }
  const entry = deps.provider(launch.provider)!;
  const upstream = entry.descriptor.upstreamProtocol(context.protocol, entry.settings);
  if (answer.kind === "http") {
    done(answer.status, answer.facts.code ?? "relayed", null, launch);
    const { headers } = answer;
    headers.set("x-request-id", context.id);
    if (context.method === "HEAD") return new Answer(null, { status: answer.status, headers });
    const once = context.spec.replay === "once" && context.protocol === "raw";
    if (once || isOwnDialect(context.protocol, upstream, answer.bytes, answer.facts)) {
      return new Answer(answer.bytes, { status: answer.status, headers });
    }
    headers.set("content-type", "application/json");
    const worded = wordUpstreamError(context.protocol, answer.status, answer.facts, context.id);
    return new Answer(worded, { status: answer.status, headers });
  }
  const status = relayedStatus(answer.facts.status);
  if (context.wantsStream && answer.failureFrame !== null) {
    // Codex understands these only inside a stream (ruling 5): status 200, what was held, the failure, the end.
    const pieces = [...answer.held, answer.failureFrame];
    const code = answer.facts.code ?? "relayed";
    if (input.slot?.live === true) {
      // The slot answers for these bytes until the client has them.
      const body = deliverPieces(
        pieces,
        (all) => all ? done(200, code, null, launch) : done(0, "client_gone", null, launch),
      );
      return new Answer(body, { status: 200, headers: answer.headers });
    }
    done(200, code, null, launch);
    return new Answer(joinBytes(pieces), { status: 200, headers: answer.headers });
  }
  done(status, answer.facts.code ?? "relayed", null, launch);
  return new Answer(wordUpstreamError(context.protocol, status, answer.facts, context.id), {
    status,
    headers: { "content-type": "application/json", "x-request-id": context.id },
  });
}

function relayedStatus(stated: number | null): number {
  return stated !== null && stated >= 400 && stated < 500 ? stated : 400;
}
