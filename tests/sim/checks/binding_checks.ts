/** Conversations stay: who may be moved, by whom, and when (P39, C22, rulings 7 and 8). */
import type { Launch } from "../../../lib/core/retry_plan.ts";
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { RequestOracle } from "../oracle/request_oracle.ts";
import type { BindingWrite } from "../stores/watched_affinity.ts";
import { must, violate } from "../violation.ts";
import { findObjection } from "./admission.ts";

const SAME_SLOT: ReadonlySet<Launch["cause"]> = new Set([
  "repair",
  "recovery",
  "unpooled_repeat",
  "strip_state",
]);

/** Why an account rests although it is not to blame. */
const OUTAGE_REASONS: ReadonlySet<string> = new Set(["no_response", "egress_proxy"]);
/** Why a provider rests of which nothing is heard, until it answers again. */
const OUTAGE_GATES: ReadonlySet<string> = new Set(["network", "edge_block"]);

/** A healthy bound account is where the first launch goes. */
export function requireBoundFirst(
  oracle: Oracle,
  request: RequestOracle,
  launch: Launch,
  nowMs: number,
): void {
  const { bound } = request.spec;
  if (request.launches.length > 0 || bound === null || launch.account === bound) return;
  const account = request.find(bound);
  if (account === null) return;
  for (const route of request.routes) {
    if (route.fallback || !(request.snapshot.get(route.provider) ?? []).includes(account)) continue;
    must(
      findObjection(oracle, account, route, nowMs) !== null,
      "P39",
      () => `${launch.attempt} leaves ${bound}, to which the session is bound and which may serve`,
    );
  }
}

/**
 * @param before  of the launch in the same call: what the request knew when the binding was written.
 * @param hasHead  the replacement has answered, so an outage may move the session after all.
 */
export function requireBindingWritesAllowed(
  oracle: Oracle,
  request: RequestOracle,
  writes: readonly BindingWrite[],
  launch: Launch | null,
  hasHead: boolean,
  nowMs: number,
): void {
  for (const write of writes) {
    const moved = write.from !== null && write.holder === write.to && write.from !== write.to;
    if (!moved) continue;
    must(
      oracle.accounts.has(write.to),
      "P39",
      () => `${request.spec.id} moves its session to ${write.to}, which was removed`,
    );
    must(
      launch === null || !SAME_SLOT.has(launch.cause),
      "P39",
      () => `${launch!.attempt} (${launch!.cause}) moves its session`,
    );
    must(hasHead || launch !== null, "P39", () => `${request.spec.id} moves its session without a launch`);
    const objection = findMoveObjection(oracle, request, write.from!, hasHead, nowMs);
    if (objection !== null) {
      violate("P39", `${request.spec.id} moves its session away from ${write.from}, ${objection}`);
    }
  }
  if (launch !== null) requireWinnerAdopted(oracle, request, writes, launch, nowMs);
}

/** @returns why the session may not leave this account, or null when it may. */
function findMoveObjection(
  oracle: Oracle,
  request: RequestOracle,
  from: string,
  hasHead: boolean,
  nowMs: number,
): string | null {
  const account = request.find(from);
  if (account === null) {
    if (!oracle.accounts.has(from)) return null;
    return "which the request does not know";
  }
  if (account.isRemoved) return null;
  const own = request.outcomes.get(account);
  const isOwnOutage = own?.kind === "no_response" || own?.kind === "edge_block";
  if (own !== undefined && !isOwnOutage) return null;
  const routes = request.routes.filter((route) =>
    !route.fallback && (request.snapshot.get(route.provider) ?? []).includes(account)
  );
  if (routes.length === 0) return "which this request knows as a fallback only";
  const reasons = routes.map((route) =>
    reasonAgainst(oracle, request, account, route, nowMs) ?? (isOwnOutage ? "outage" : null)
  );
  // The head of the replacement settles what the outage left open at the launch; meanwhile the account may be back.
  if (hasHead && request.unheard.has(account)) return null;
  if (reasons.some((reason) => reason === null)) return "which may serve";
  if (hasHead) return null;
  if (reasons.every((reason) => reason === "model_excluded")) return "which only lacks the model";
  const isOutage = reasons.every((reason) => reason === "outage" || reason === "model_excluded");
  return isOutage ? "which is only out of reach, before anybody else answered" : null;
}

/** Remembers whom the request goes round only because nothing is heard of them: their session may follow a head. */
export function noteUnheard(oracle: Oracle, request: RequestOracle, nowMs: number): void {
  if (request.spec.session === null) return;
  for (const { provider, target, fallback } of request.routes) {
    for (const account of fallback ? [] : request.snapshot.get(provider) ?? []) {
      const own = request.outcomes.get(account)?.kind;
      const isUnheard = own === "no_response" || own === "edge_block" ||
        reasonAgainst(oracle, request, account, { provider, target, fallback }, nowMs) === "outage";
      if (isUnheard) request.unheard.add(account);
    }
  }
}

function reasonAgainst(
  oracle: Oracle,
  request: RequestOracle,
  account: AccountOracle,
  route: RequestOracle["routes"][number],
  nowMs: number,
): string | null {
  const block = account.block(route.target.model, nowMs);
  // A provider that tells of an outage leaves a ladder as well.
  const isCutOff = OUTAGE_GATES.has(route.provider.cooldown?.reason ?? "");
  if (block?.kind === "ladder") {
    return isCutOff || OUTAGE_REASONS.has(account.ladder!.reason) ? "outage" : "ladder";
  }
  if (block !== null) return block.kind;
  if (request.left.has(route.provider)) return "outage";
  const gate = route.provider.gate(nowMs);
  if (gate === "closed" || gate === "leased") return isCutOff ? "outage" : "cooldown";
  return findObjection(oracle, account, route, nowMs) === null ? null : "outage";
}

/** The loser of a race goes where the winner went, when it may. */
function requireWinnerAdopted(
  oracle: Oracle,
  request: RequestOracle,
  writes: readonly BindingWrite[],
  launch: Launch,
  nowMs: number,
): void {
  const last = writes.findLast((write) => write.session === request.spec.session);
  if (last === undefined || last.holder === last.to || last.holder === launch.account) return;
  const winner = request.find(last.holder);
  if (winner === null || request.slots.has(winner)) return;
  for (const route of request.routes) {
    if (route.fallback || request.left.has(route.provider)) continue;
    if (!(request.snapshot.get(route.provider) ?? []).includes(winner)) continue;
    must(
      findObjection(oracle, winner, route, nowMs) !== null,
      "P39",
      () => `${launch.attempt} on ${launch.account} lost the session to ${winner.id} and does not follow`,
    );
  }
}
