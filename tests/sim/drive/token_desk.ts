/** Refreshes as the shell makes them: one at a time for an account, shared by all who wait for it. */
import { classify } from "../../../lib/core/classify.ts";
import type { AccountId } from "../../../lib/core/domain.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { RepairResult } from "../../../lib/core/retry_plan.ts";
import { Dice } from "../dice.ts";
import type { Stage } from "./stage.ts";

export class TokenDesk {
  readonly #waiting = new Map<AccountId, ((result: RepairResult) => void)[]>();
  #count = 0;

  /** @param used  material that was refused; whoever has other material by now needs no call. */
  repair(stage: Stage, account: AccountId, used: string, done: (result: RepairResult) => void): void {
    const known = stage.files.get(account);
    if (known !== undefined && known.fingerprint !== used) {
      done({ kind: "fresh_token", fingerprint: known.fingerprint });
      return;
    }
    this.#join(stage, account, done);
  }

  /** A refresh that no request waits for; the pool hears of it by itself. */
  refreshInBackground(stage: Stage, account: AccountId): void {
    this.#join(stage, account, (result) => {
      if (result.kind === "fresh_token") {
        stage.process.pool.refreshed(account, result.fingerprint, stage.nowMs);
      } else stage.process.pool.backgroundRefreshFailed(account, result.outcome, stage.nowMs);
    });
  }

  #join(stage: Stage, account: AccountId, done: (result: RepairResult) => void): void {
    const waiting = this.#waiting.get(account);
    if (waiting !== undefined) {
      waiting.push(done);
      return;
    }
    const all = [done];
    this.#waiting.set(account, all);
    const dice = new Dice(stage.params.seed, "refresh", ++this.#count);
    stage.schedule(stage.nowMs + dice.span(20, dice.chance(0.1) ? 30_000 : 2_000), () => {
      this.#waiting.delete(account);
      const result = this.#call(stage, account, dice);
      stage.tell(
        `token of ${account}: ${result.kind === "failed" ? result.outcome.code : result.fingerprint}`,
      );
      for (const each of all) if (stage.process.isUp) each(result);
    }, "process");
  }

  /** Nobody waits any more: the process died. */
  forget(): void {
    this.#waiting.clear();
  }

  #call(stage: Stage, account: AccountId, dice: Dice): RepairResult {
    const { world, nowMs } = stage;
    const truth = world.account(account).kind;
    if (world.isCutOff || world.tokens === "down") {
      const retryAtMs = dice.chance(0.3) ? nowMs + dice.span(1_000, 60_000) : null;
      return failure(
        classify({ kind: "refresh_failed", terminal: false, code: "server_error", retryAtMs }, null, {
          nowMs,
        }),
      );
    }
    if (world.tokens === "denies" || (truth === "revoked" && dice.chance(0.5))) {
      const code = dice.pick(["invalid_grant", "no_access_token"]);
      return failure(
        classify({ kind: "refresh_failed", terminal: true, code, retryAtMs: null }, null, { nowMs }),
      );
    }
    return { kind: "fresh_token", fingerprint: stage.files.refresh(account) };
  }
}

function failure(outcome: Outcome): RepairResult {
  return { kind: "failed", outcome };
}
