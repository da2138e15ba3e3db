/** Everything that goes on around the requests: faults, outages, pages, operators, files, reloads, crashes, clocks. */
import { Dice } from "../dice.ts";
import { drawPolicy, drawPools, organisationOf } from "../params.ts";
import { drawAccountTruth, drawProviderTruth } from "../world/truth.ts";
import { drawPage } from "../world/usage_pages.ts";
import type { Stage } from "./stage.ts";

const SWEEP_GAP_MS = 300_000;

/** One kind of trouble: how often, and what. */
interface Trouble {
  readonly name: string;
  readonly gapMs: number;
  readonly happen: (stage: Stage, dice: Dice) => void;
}

export function startTroubles(stage: Stage, restart: (how: "crash" | "stop") => void): void {
  const { faults } = stage.params;
  const troubles: readonly Trouble[] = [
    { name: "account", gapMs: faults.accountGapMs, happen: troubleAccount },
    { name: "provider", gapMs: faults.providerGapMs, happen: troubleProvider },
    { name: "outage", gapMs: faults.outageGapMs, happen: cutOff },
    { name: "tokens", gapMs: faults.tokenGapMs, happen: troubleTokens },
    { name: "page", gapMs: faults.pageGapMs, happen: readPage },
    { name: "operator", gapMs: faults.operatorGapMs, happen: operate },
    { name: "files", gapMs: faults.accountFileGapMs, happen: changeFiles },
    { name: "reload", gapMs: faults.reloadGapMs, happen: reload },
    { name: "clock", gapMs: faults.clockJumpGapMs, happen: jump },
    { name: "sweep", gapMs: SWEEP_GAP_MS, happen: sweep },
    { name: "crash", gapMs: faults.crashGapMs, happen: (_, dice) => crash(stage, dice, restart) },
  ];
  for (const { name, gapMs, happen } of troubles) {
    if (gapMs === 0) continue;
    const dice = new Dice(stage.params.seed, "trouble", name);
    const again = () => {
      if (!stage.isFaulty) return;
      // First, because what happens may end the process.
      stage.schedule(stage.nowMs + dice.gap(gapMs), again, "world");
      happen(stage, dice);
    };
    stage.schedule(stage.nowMs + dice.gap(gapMs), again, "world");
  }
}

function troubleAccount(stage: Stage, dice: Dice): void {
  const { ids } = stage.files;
  if (ids.length === 0) return;
  const id = dice.pick(ids);
  const { models, faults } = stage.params;
  const truth = drawAccountTruth(
    dice,
    models,
    stage.files.get(id)!.fingerprint,
    faults.longestMs,
    stage.nowMs,
  );
  const isShared = truth.kind === "broke" || (truth.kind === "spent" && truth.model === null);
  const organisation = isShared ? organisationOf(stage.params, id) : null;
  const sharing = organisation === null
    ? [id]
    : ids.filter((other) => organisationOf(stage.params, other) === organisation);
  for (const one of sharing) stage.world.setAccount(one, truth);
  stage.tell(`truth: ${sharing} is ${JSON.stringify(truth)}`);
  const endsAtMs = truth.kind === "spent" ? truth.untilMs : stage.nowMs + dice.span(1_000, faults.longestMs);
  stage.schedule(endsAtMs, () => {
    for (const one of sharing) {
      if (stage.world.account(one) === truth) stage.world.setAccount(one, { kind: "healthy" });
    }
  }, "world");
}

function troubleProvider(stage: Stage, dice: Dice): void {
  const { providers, faults } = stage.params;
  const id = dice.pick(providers);
  const truth = drawProviderTruth(dice);
  stage.world.setProvider(id, truth);
  const forMs = dice.span(1_000, faults.longestMs);
  stage.tell(`truth: ${id} is ${truth} for ${forMs / 1000}s`);
  stage.schedule(stage.nowMs + forMs, () => {
    if (stage.world.provider(id) === truth) stage.world.setProvider(id, "ok");
  }, "world");
}

function cutOff(stage: Stage, dice: Dice): void {
  const forMs = dice.span(1_000, 300_000);
  stage.tell(`truth: cut off for ${forMs / 1000}s`);
  stage.world.isCutOff = true;
  stage.schedule(stage.nowMs + forMs, () => stage.world.isCutOff = false, "world");
}

function troubleTokens(stage: Stage, dice: Dice): void {
  stage.world.tokens = dice.pick(["down", "denies"]);
  stage.tell(`truth: token endpoint ${stage.world.tokens}`);
  stage.schedule(stage.nowMs + dice.span(1_000, 120_000), () => stage.world.tokens = "ok", "world");
}

function readPage(stage: Stage, dice: Dice): void {
  const { ids } = stage.files;
  if (ids.length === 0 || !stage.process.isUp) return;
  // Readers may still know an account that the pool does not.
  const id = dice.chance(0.03) ? "gone-99" : dice.pick(ids);
  const page = drawPage(dice, stage.params.models, stage.nowMs);
  stage.tell(
    `page of ${id}: ${page.windows.map(({ usedPercent }) => usedPercent)} reached=${page.limitReached}`,
  );
  stage.process.pool.observeQuota(id, page, stage.nowMs);
  if (dice.chance(0.3)) stage.process.pool.observeQuota(id, page, stage.nowMs);
}

function operate(stage: Stage, dice: Dice): void {
  const { ids } = stage.files;
  if (ids.length === 0 || !stage.process.isUp) return;
  const id = dice.chance(0.03) ? "gone-99" : dice.pick(ids);
  const { pool } = stage.process;
  const what = dice.weighted([[3, "reset"], [2, "topped up"], [2, "disable"], [3, "enable"]]);
  stage.tell(`operator: ${what} ${id}`);
  if (what === "reset") pool.resetAccount(id, stage.nowMs);
  else if (what === "topped up") {
    if (stage.world.account(id).kind === "broke") stage.world.setAccount(id, { kind: "healthy" });
    pool.toppedUp(id, stage.nowMs);
  } else pool.setEnabled(id, what === "enable", stage.nowMs);
}

function changeFiles(stage: Stage, dice: Dice): void {
  stage.tell(`files: ${stage.files.change(dice, stage.params.providers)}`);
  if (stage.process.isUp) stage.process.pool.reconcile(stage.files.list, stage.nowMs);
}

function reload(stage: Stage, dice: Dice): void {
  const { process, params } = stage;
  const policy = dice.chance(0.7) ? drawPolicy(dice) : process.settings.policy;
  const pools = dice.chance(0.5) ? drawPools(dice, params.providers, params.models) : process.pools;
  const quota = dice.chance(0.3)
    ? { maxParkMs: dice.pick([60_000, 1_800_000]), recheck: dice.chance(0.5) }
    : process.settings.quota;
  process.settings = { ...process.settings, policy, quota };
  process.pools = pools;
  stage.tell(`reload: ${JSON.stringify(policy)}`);
  if (process.isUp) process.pool.reconfigure({ policy, quota, pools });
}

/** A laptop that slept: every timer is late at once. */
function jump(stage: Stage, dice: Dice): void {
  const forMs = dice.span(1_000, 7_200_000);
  stage.tell(`the clock jumps ahead by ${forMs / 1000}s`);
  stage.sleepThrough(forMs);
}

/** What the shell does every few minutes. */
function sweep(stage: Stage): void {
  if (stage.process.isUp) stage.process.sweep(stage.nowMs);
}

function crash(stage: Stage, dice: Dice, restart: (how: "crash" | "stop") => void): void {
  if (!stage.process.isUp) return;
  if (dice.chance(stage.params.faults.storeFaultShare)) {
    const fault = dice.pick(["before", "after", "binding"] as const);
    stage.tell(`the disk fails: ${fault}`);
    stage.process.breakDisk(fault);
    return;
  }
  restart(dice.chance(0.8) ? "crash" : "stop");
}
