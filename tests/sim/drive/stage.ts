/** What every part of a run shares: time, chance, the world, the process and the story so far. */
import type { EventQueue } from "../event_queue.ts";
import type { Journal } from "../journal.ts";
import type { SimParams } from "../params.ts";
import type { World } from "../world/truth.ts";
import type { AccountFiles } from "./accounts_file.ts";
import type { Process } from "./process.ts";
import type { TokenDesk } from "./token_desk.ts";

export interface Stage {
  readonly params: SimParams;
  readonly queue: EventQueue;
  readonly journal: Journal;
  readonly world: World;
  readonly files: AccountFiles;
  readonly process: Process;
  readonly tokens: TokenDesk;
  /** The machine's clock. */
  readonly nowMs: number;
  /** How far the clock was set back, all in all. */
  readonly setBackMs: number;
  /** True while anything may break. */
  isFaulty: boolean;
  readonly counts: Counts;
  /** Runs later, at the machine's time; what belongs to a process that is gone by then is dropped. */
  schedule(atMs: number, run: () => void, scope: "process" | "world"): void;
  /** The machine sleeps: every timer is late at once. */
  sleepThrough(forMs: number): void;
  tell(text: string): void;
}

export interface Counts {
  /** While things broke. */
  requests: number;
  /** After they were mended. */
  calmRequests: number;
  served: number;
  waits: number;
  repairs: number;
  restarts: number;
  cancelled: number;
}
