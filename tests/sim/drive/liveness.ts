/** The second phase: once nothing breaks any more, every account comes back and every request is served (P36 to P38). */
import type { Target } from "../../../lib/core/domain.ts";
import { must } from "../violation.ts";
import { emptyPage } from "../world/usage_pages.ts";
import type { Clients } from "./clients.ts";
import type { RunResult } from "./request_run.ts";
import type { Stage } from "./stage.ts";

const MINUTE_MS = 60_000;
/** Longest ladder or pause, one probe's lease, and a little. */
const OUTAGE_OVER_MS = 60_000 + 123_000 + 5_000;
const STEP_MS = 15_000;
/** Looks at the long rest, until the last deadline is over. */
const LATER_STEPS = 8;
/** As many accounts as one provider may have, and some. */
const TURNS = 40;
/** No exclusion outlives this; credits are tested each hour. */
const LONGEST_MEMORY_MS = 12 * 3_600_000;

export function requireEverybodyServed(
  stage: Stage,
  clients: Clients,
  drain: (isDone: () => boolean) => void,
): void {
  const passTime = (ms: number) => {
    let isOver = false;
    stage.schedule(stage.nowMs + ms, () => isOver = true, "world");
    drain(() => isOver);
  };
  const ask = (targets: readonly Target[]): RunResult => {
    let result: RunResult | null = null;
    clients.askPlainly(targets, (given) => result = given);
    drain(() => result !== null);
    return result!;
  };
  helpAccounts(stage);
  // Traffic goes on, so that gates are tested and parks give way.
  // A clock that was set back sees older times end later.
  for (let passed = 0; passed < OUTAGE_OVER_MS + stage.setBackMs; passed += STEP_MS) {
    passTime(STEP_MS);
    for (const target of allTargets(stage)) ask([target]);
  }
  requireNoOutage(stage);
  const lastMs = Math.max(stage.nowMs + LONGEST_MEMORY_MS, latestDeadline(stage)) + MINUTE_MS;
  const stepMs = Math.ceil((lastMs - stage.nowMs) / LATER_STEPS);
  while (stage.nowMs < lastMs) {
    passTime(stepMs);
    for (const target of allTargets(stage)) ask([target]);
  }
  // An account without credits is tested when its turn comes.
  for (
    let turn = 0;
    turn < TURNS && explainAll(stage).some(({ block }) => block?.kind === "credits");
    turn++
  ) {
    for (const target of allTargets(stage)) ask([target]);
  }
  for (const target of allTargets(stage)) {
    const hasAccounts = stage.files.list.some(({ provider }) => provider === target.provider);
    if (!hasAccounts) continue;
    const result = ask([target]);
    must(
      result.status === 200 && result.launches === 1 && result.rounds === 1 && result.waits === 0,
      "P36",
      () =>
        `${target.provider}/${target.model} gives ${JSON.stringify(result)} long after everything was well`,
    );
  }
  requireNothingLeft(stage);
}

/** What no clock mends: logins, credits, switches. */
function helpAccounts(stage: Stage): void {
  const { pool } = stage.process;
  for (const id of stage.files.ids) {
    stage.files.refresh(id);
    pool.setEnabled(id, true, stage.nowMs);
    pool.observeQuota(id, emptyPage(stage.nowMs), stage.nowMs);
  }
  pool.reconcile(stage.files.list, stage.nowMs);
}

/** P37: the outage is over for everybody, whatever it had opened. */
function requireNoOutage(stage: Stage): void {
  for (const { account, block } of explainAll(stage)) {
    const isOutage = block?.kind === "network_pause" || block?.kind === "network_probe" ||
      block?.kind === "provider_probe";
    must(!isOutage, "P37", () => `${account} is still behind ${block!.kind}`);
  }
}

function requireNothingLeft(stage: Stage): void {
  for (const { account, block } of explainAll(stage)) {
    // Filling the first account leaves nothing for the others, and so nothing to test their credits with.
    if (block?.kind === "credits" && stage.process.settings.routing.strategy === "fill-first") continue;
    must(block === null, "P38", () => `${account} is still blocked by ${block!.kind}`);
  }
}

function explainAll(stage: Stage): ReturnType<Stage["process"]["pool"]["explain"]> {
  return stage.process.pool.explain(allTargets(stage), stage.nowMs);
}

function allTargets(stage: Stage): Target[] {
  const { providers, models } = stage.params;
  return providers.flatMap((provider) => models.map((model) => ({ provider, model })));
}

function latestDeadline(stage: Stage): number {
  let latest = 0;
  for (const { deadline } of stage.process.mirror!.deadlines.values()) {
    latest = Math.max(latest, deadline.untilMs);
  }
  return latest;
}
