/** The calls of the pool that the simulation makes: the real one, a planted one, or the referee around either. */
import type { PoolRuntime } from "../../lib/proxy/pool_runtime.ts";

export type SocketTurn = Parameters<PoolRuntime["turnEnded"]>[2];

export type Pool = Pick<
  PoolRuntime,
  | "restore"
  | "reconcile"
  | "reconfigure"
  | "rotate"
  | "lookupBinding"
  | "observeQuota"
  | "noteLimitGroup"
  | "refreshed"
  | "backgroundRefreshFailed"
  | "setEnabled"
  | "resetAccount"
  | "toppedUp"
  | "explain"
  | "begin"
  | "next"
  | "progress"
  | "settle"
  | "repaired"
  | "endRecovery"
  | "turnEnded"
  | "socketClosed"
  | "commit"
  | "cancel"
  | "finish"
>;
