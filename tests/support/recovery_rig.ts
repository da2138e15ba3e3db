/** A rig with recovery on, and what its tests look at again and again. */
import type { AttemptRecord, DecisionRecord } from "../../lib/core/decision.ts";
import type { Reply, Step } from "../../lib/demo/simulated_replies.ts";
import { type Rig, type RigOptions, startRig } from "./rig.ts";

export type RecoveryKeys = Readonly<
  Partial<
    Record<
      | "attempts"
      | "max-buffer-bytes"
      | "max-retry-window-seconds"
      | "max-concurrent"
      | "initial-backoff-milliseconds"
      | "max-backoff-milliseconds",
      number
    >
  >
>;

/**
 * Configuration keys with recovery on. The window is long, because a rig's clock runs ahead of its sockets; tests of
 * the window state their own.
 */
export function recoveryOn(
  keys: RecoveryKeys = {},
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const recovery = { attempts: 2, "max-retry-window-seconds": 3_600, ...keys };
  const { streaming, ...rest } = more;
  return { ...rest, streaming: { ...streaming as object | undefined, recovery } };
}

export function startRecoveryRig(
  accounts: readonly string[],
  keys: RecoveryKeys = {},
  more: Readonly<Record<string, unknown>> = {},
  options: Partial<RigOptions> = {},
): Promise<Rig> {
  return startRig({ accounts, config: recoveryOn(keys, more), ...options });
}

/** The record of the request that ended last, once there are `count` of them. */
export async function decisionOf(rig: Rig, count = 1): Promise<DecisionRecord> {
  await rig.eventually(() => rig.app.decisions.latest(count).length >= count);
  return await rig.lastDecision();
}

/** Account name and cause of every launch, in order. */
export function launchesOf(record: DecisionRecord): string[] {
  return record.attempts.map((attempt) => `${nameOf(attempt)} ${attempt.cause}`);
}

function nameOf({ account }: AttemptRecord): string {
  return /acct-([A-Z])/.exec(account)?.[1] ?? account;
}

export function recoveryNotes(record: DecisionRecord): string[] {
  return record.notes.filter((note) => /^(recover|failed_open)/.test(note));
}

/** Nothing is held, by nobody, and no byte of it is left in memory. */
export function isIdle(rig: Rig): boolean {
  const { held, heldBytes } = rig.app.recoverySlots.figures;
  return held === 0 && heldBytes === 0;
}

/** The events of these steps as they go over the wire. */
export function wireText(steps: readonly Step[]): string {
  return steps.map((step) => {
    if (step.kind === "bytes") return new TextDecoder().decode(step.bytes);
    if (step.kind !== "event") return "";
    return `${step.name === null ? "" : `event: ${step.name}\n`}data: ${step.data}\n\n`;
  }).join("");
}

export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function newGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Reads a body until it has shown this text. */
export class BodyReader {
  text = "";
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #rig: Rig;

  constructor(rig: Rig, response: Response) {
    this.#rig = rig;
    this.#reader = response.body!.getReader();
  }

  async until(wanted: string): Promise<string> {
    while (!this.text.includes(wanted)) {
      if (!await this.#next()) throw new Error(`The body ended without ${wanted}: ${this.text.slice(-300)}`);
    }
    return this.text;
  }

  async end(): Promise<string> {
    while (await this.#next());
    return this.text;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }

  async #next(): Promise<boolean> {
    const { done, value } = await this.#rig.until(this.#reader.read());
    if (!done) this.text += this.#decoder.decode(value, { stream: true });
    return !done;
  }
}

export function scriptAll(rig: Rig, name: string, replies: readonly Reply[]): void {
  rig.account(name).script(...replies);
}
