/**
 * The network's pause, told to the log when it opens and when it ends.
 *
 * Read off what the pool writes down, as the metrics are: the pool itself knows no log, and a line is written only
 * for what is on disk. A probe in vain prolongs the pause and is no line of its own.
 */
import type { NetworkPause } from "../core/records.ts";
import type { Log, PoolStore } from "../ports.ts";
import { isoTime } from "./decision_view.ts";

/** The same store, listened to. */
export function logPauses(store: PoolStore, log: Log): PoolStore {
  let known: NetworkPause | null = null;
  const tell = (pause: NetworkPause | null, nowMs: number): void => {
    if (known === null && pause !== null) {
      log.write("warn", "network_pause_opened", {
        providers: [...new Set(pause.evidence.map((row) => row.provider))].sort(),
        until: isoTime(pause.untilMs),
      });
    } else if (known !== null && pause === null) {
      log.write("info", "network_pause_ended", {
        opened_at: isoTime(known.openedAtMs),
        lasted_ms: nowMs - known.openedAtMs,
      });
    }
    known = pause;
  };
  return {
    load: () => {
      const state = store.load();
      // Told by the process that opened it.
      known = state.network?.pause ?? null;
      return state;
    },
    prune: (nowMs) => store.prune(nowMs),
    apply: (changes, nowMs) => {
      store.apply(changes, nowMs);
      for (const change of changes) if (change.kind === "put_network") tell(change.network.pause, nowMs);
    },
  };
}
