/** Recovery broken on purpose, outside of the library: the simulation is worth what it finds of these. */
import type { Config } from "../../lib/config_types.ts";
import type { Outcome } from "../../lib/core/outcome.ts";
import type { Launch } from "../../lib/core/retry_plan.ts";
import type { AnswerBody } from "../../lib/ports.ts";
import type { RequestPlan } from "../../lib/proxy/pool_runtime.ts";
import type { RecoverySlot } from "../../lib/proxy/recovery_slots.ts";
import type { ScriptedBody, Send, Tampering } from "./scripted_upstream.ts";
import { WatchedPool, WatchedSlots } from "./watched_parts.ts";

export interface Plant {
  /** As given to `--plant`. */
  readonly name: string;
  /** What it does wrong, in a sentence. */
  readonly breaks: string;
  /** Invariants whose violation counts as having found it. */
  readonly caughtBy: readonly string[];
  readonly pool?: typeof WatchedPool;
  readonly slots?: typeof WatchedSlots;
  readonly config?: (config: Config) => Config;
  /** Made anew for each scene. */
  readonly body?: () => Tampering;
}

/** As a hold that was not emptied would: the next attempt's first bytes come with a losing one's last event. */
function leakLoser(): Tampering {
  const lost = new Map<string, Uint8Array<ArrayBuffer>>();
  return (body, send) => {
    const { script, requestId } = send;
    if (script.kind !== "stream") return body;
    let leak = lost.get(requestId) ?? null;
    const first = script.frames[0]?.bytes;
    if (first !== undefined) lost.set(requestId, first);
    return {
      read: async (into) => {
        if (leak === null) return await body.read(into);
        const piece = leak;
        leak = null;
        return piece.slice();
      },
      cancel: () => body.cancel(),
      [Symbol.asyncIterator]: () => body[Symbol.asyncIterator](),
    };
  };
}

/** Forgets to give the slot back once something was held in it and dropped again. */
class KeepsSlots extends WatchedSlots {
  override tryAcquire(max: number): RecoverySlot | null {
    const slot = super.tryAcquire(max);
    if (slot === null) return null;
    let dropped = false;
    let held = 0;
    return {
      get live() {
        return slot.live;
      },
      hold: (bytes) => {
        if (bytes === 0 && held > 0) dropped = true;
        held = bytes;
        slot.hold(bytes);
      },
      release: () => {
        if (!dropped) slot.release();
      },
    };
  }
}

/** Says that the slot is gone while it is held: the answer streams like any other, and is recovered all the same. */
class LooksAway extends WatchedSlots {
  override tryAcquire(max: number): RecoverySlot | null {
    const slot = super.tryAcquire(max);
    return slot === null ? null : { live: false, hold: slot.hold, release: slot.release };
  }
}

/** Blames the account for every failure, also for those that nobody sees. */
class BooksLosers extends WatchedPool {
  protected override settleNow(plan: RequestPlan, launch: Launch, outcome: Outcome, nowMs: number): void {
    super.settleNow(plan, launch, outcome, nowMs);
    if (plan.pending?.kind === "recovery") this.backgroundRefreshFailed(launch.account, GONE, nowMs);
  }
}

class CoolsOnCancel extends WatchedPool {
  protected override cancelNow(plan: RequestPlan, nowMs: number): void {
    const account = plan.current?.launch.account ?? plan.record.attempts.at(-1)?.account;
    super.cancelNow(plan, nowMs);
    if (account !== undefined) this.backgroundRefreshFailed(account, GONE, nowMs);
  }
}

const GONE: Outcome = {
  kind: "transient",
  row: 25,
  scope: "account",
  origin: "local",
  status: null,
  code: "client_gone",
  cause: "refresh",
  notBeforeMs: null,
  recoverable: false,
  strike: false,
};

/** As an HTTP client that mends broken answers by itself: what it was reading is asked for again, unseen. */
function relaunchAfterByte(
  body: ScriptedBody,
  _send: Send,
  again: () => Promise<AnswerBody | null>,
): AnswerBody {
  let source: AnswerBody | null = null;
  return {
    read: async (into) => {
      if (source !== null) return await source.read(into);
      try {
        return await body.read(into);
      } catch (error) {
        if (body.givenBytes === 0) throw error;
        source = await again();
        return await source?.read(into) ?? null;
      }
    },
    cancel: () => (source ?? body).cancel(),
    [Symbol.asyncIterator]: () => body[Symbol.asyncIterator](),
  };
}

function withRecovery(change: Partial<Config["streaming"]["recovery"]>): (config: Config) => Config {
  return (config) => ({
    ...config,
    streaming: { ...config.streaming, recovery: { ...config.streaming.recovery, ...change } },
  });
}

export const PLANTS: readonly Plant[] = [
  {
    name: "leak-loser",
    breaks: "begins the winner's answer with an event of an attempt that lost",
    caughtBy: ["P8", "SCRIPT"],
    body: leakLoser,
  },
  {
    name: "keep-slot",
    breaks: "does not free the slot of a request that was made again",
    caughtBy: ["P10"],
    slots: KeepsSlots,
  },
  {
    name: "early-release",
    breaks: "lets the first output go although the answer is held back",
    caughtBy: ["C23"],
    slots: LooksAway,
  },
  {
    name: "relaunch-after-byte",
    breaks: "asks again for an answer that broke, also when the client has seen some of it",
    caughtBy: ["P8", "SCRIPT"],
    body: () => relaunchAfterByte,
  },
  {
    name: "book-losers",
    breaks: "blames an account for a failure that nobody saw",
    caughtBy: ["P21"],
    pool: BooksLosers,
  },
  {
    name: "cancel-cools",
    breaks: "blames an account for a client that left",
    caughtBy: ["P11"],
    pool: CoolsOnCancel,
  },
  {
    name: "one-attempt-more",
    breaks: "makes an answer again once more than allowed",
    caughtBy: ["BUDGET"],
    config: (config) => {
      const { attempts } = config.streaming.recovery;
      return attempts === 0 ? config : withRecovery({ attempts: attempts + 1 })(config);
    },
  },
  {
    name: "twice-the-buffer",
    breaks: "holds twice as many bytes as it may",
    caughtBy: ["P10"],
    config: (config) =>
      withRecovery({ maxBufferBytes: config.streaming.recovery.maxBufferBytes * 2 })(config),
  },
];

export function findPlant(name: string): Plant | null {
  return PLANTS.find((plant) => plant.name === name) ?? null;
}
