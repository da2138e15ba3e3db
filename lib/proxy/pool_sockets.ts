/**
 * An upgraded connection in the pool's books: one launch that serves many turns, and is nobody's fault when it ends.
 */
import type { ModelId } from "../core/domain.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Launch } from "../core/retry_plan.ts";
import { leaveProvider, settleLeases } from "./pool_booking.ts";
import type { PoolContext } from "./pool_context.ts";
import { closeRecord } from "./pool_launch.ts";
import { judgeCommitted } from "./pool_verdicts.ts";
import type { LaunchState, RequestPlan } from "./request_plan.ts";

/** One turn as the frames told of it. */
export interface SocketTurn {
  /** What the turn ended with; `cancelled` only gives back what the launch was lent for a test. */
  readonly outcome: Outcome;
  /** When the client asked: what is known of the account since then is newer than this turn. */
  readonly startedAtMs: number;
  /** The model the frame named; the handshake names none. */
  readonly model: ModelId | null;
}

/** Books one turn (rows 48 and 49): health and strikes as for a request of its own, while the launch goes on. */
export function bookTurn(
  context: PoolContext,
  plan: RequestPlan,
  launch: Launch,
  turn: SocketTurn,
  nowMs: number,
): void {
  const state = openLaunch(plan, launch);
  if (state === null || plan.phase !== "committed") return;
  // A test is over with its first turn: what later turns of the same socket prove ends no block of theirs.
  const trial = state.slot.trial === launch.attempt ? launch.trial : "none";
  const heldLease = state.route.provider.slot.health.probe?.attempt === launch.attempt;
  settleLeases(context, state, turn.outcome, nowMs);
  if (turn.outcome.kind === "cancelled") return;
  const asked: LaunchState = {
    ...state,
    launch: { ...state.launch, launchedAtMs: turn.startedAtMs, model: turn.model, trial },
    route: { ...state.route, target: { ...state.route.target, model: turn.model } },
  };
  judgeCommitted(context, plan, asked, turn.outcome, heldLease, nowMs);
  for (const provider of plan.strikes.keys()) leaveProvider(context, plan, provider, nowMs);
  plan.strikes.clear();
}

/** The socket is closed. How it closed changes no account (row 48). */
export function closeSocket(
  context: PoolContext,
  plan: RequestPlan,
  launch: Launch,
  outcome: Outcome,
  nowMs: number,
): void {
  const state = openLaunch(plan, launch);
  if (state === null) return;
  plan.current = null;
  state.slot.inFlight--;
  closeRecord(plan, launch, outcome, nowMs);
  settleLeases(context, state, CLOSED, nowMs);
}

/** Leases it still holds go back unused: what was to be tested was never answered. */
const CLOSED: Outcome = {
  kind: "cancelled",
  row: 48,
  scope: "none",
  origin: "client",
  status: null,
  code: "socket_closed",
};

function openLaunch(plan: RequestPlan, launch: Launch): LaunchState | null {
  return plan.current?.launch.attempt === launch.attempt ? plan.current : null;
}
