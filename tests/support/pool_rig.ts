/**
 * A pool over three providers on hosts of their own: codex (accounts A and B, on the rig's provider), claude and z.ai.
 *
 * `frontier` begins with codex, `glm-first` with z.ai; the other members follow in the order codex, claude, z.ai.
 */
import {
  type SimulatedAccount,
  type SimulatedProvider,
  startSimulatedProvider,
} from "../../lib/demo/simulated_provider.ts";
import { ok, type Reply } from "../../lib/demo/simulated_replies.ts";
import { CLIENT_KEY, type Rig, startRig } from "./rig.ts";

export type AccountName = "A" | "B" | "claude" | "zai";
export type ProviderName = "codex" | "claude" | "zai";

export const ACCOUNTS: readonly AccountName[] = ["A", "B", "claude", "zai"];
/** What each provider is asked for when the pool's name is. */
const MODELS = { codex: "gpt-5.5", claude: "claude-opus-4-8", zai: "glm-5.2" } as const;
const PROVIDERS: readonly ProviderName[] = ["codex", "claude", "zai"];
/** Of so many turns of a ring the first twenty begin with its heaviest member. */
const HEAVY = 60;

export interface ProviderState {
  readonly id: string;
  readonly circuit: { readonly state: string; readonly reason: string } | null;
  readonly cooldown: { readonly until: string; readonly reason: string } | null;
}

export class PoolRig implements AsyncDisposable {
  private constructor(
    readonly rig: Rig,
    readonly claude: SimulatedProvider,
    readonly zai: SimulatedProvider,
  ) {}

  /** Every account answers `pong from <name>` unless told otherwise. */
  static async start(): Promise<PoolRig> {
    const clock = { now: () => Date.now(), sleepUntil: () => Promise.resolve(true) };
    const rig = await startRig({ accounts: ["A", "B"], checkScript: false });
    await rig.stop();
    const pools = new PoolRig(
      rig,
      await startSimulatedProvider({ clock }),
      await startSimulatedProvider({ clock }),
    );
    rig.reconfigure({
      providers: [
        {
          id: "claude",
          kind: "anthropic",
          "base-url": pools.claude.url,
          // Nobody is asked for a list, so that no connection is older than the trouble.
          models: [MODELS.claude],
          accounts: [{ id: "c", "api-key": "SENT-tok-claude" }],
        },
        {
          id: "zai",
          kind: "zai",
          "base-url": pools.zai.url,
          plan: "coding",
          accounts: [{ id: "z", "api-key": "SENT-tok-zai" }],
        },
      ],
      pools: [ringOf("frontier", "codex"), ringOf("glm-first", "zai")],
    });
    await rig.start();
    for (const name of ACCOUNTS) pools.account(name).otherwise(ok(`pong from ${name}`));
    return pools;
  }

  account(name: AccountName): SimulatedAccount {
    const host = name === "claude" || name === "zai" ? this[name] : this.rig.provider;
    return host.account(`SENT-tok-${name}`);
  }

  /** These accounts answer so from now on. */
  otherwise(names: readonly AccountName[], reply: Reply): void {
    for (const name of names) this.account(name).otherwise(reply);
  }

  /** How often the account was asked for the pool's answer; what a client asks on the side does not count. */
  asked(name: AccountName): number {
    const provider = name === "claude" || name === "zai" ? name : "codex";
    const host = provider === "codex" ? this.rig.provider : this[provider];
    return host.hitsOf(`SENT-tok-${name}`, "answers")
      .filter((hit) => hit.json()["model"] === MODELS[provider]).length;
  }

  get askedAll(): Readonly<Record<AccountName, number>> {
    return { A: this.asked("A"), B: this.asked("B"), claude: this.asked("claude"), zai: this.asked("zai") };
  }

  /** One request of ours. @returns the text of the answer, or status and code. */
  async ask(model = "frontier"): Promise<string> {
    const answer = await this.rig.responses({ model }, {
      headers: { authorization: `Bearer ${CLIENT_KEY}`, "content-type": "application/json" },
    });
    const body = await answer.json();
    return answer.status === 200 ? body.output.at(-1).content[0].text : `${answer.status} ${body.error.code}`;
  }

  async provider(id: ProviderName): Promise<ProviderState> {
    const { providers } = await (await this.rig.admin("providers")).json();
    return providers.find((one: ProviderState) => one.id === id);
  }

  async networkPause(): Promise<{ readonly providers: readonly string[] } | null> {
    return (await (await this.rig.admin("providers")).json()).network_pause;
  }

  /** Real clients wait in real time; here the proxy does too, so that nothing runs out behind their backs. */
  async atRealPace<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const mark = (): void => void (settled = true);
    promise.then(mark, mark);
    for (let seenMs = performance.now(); !settled;) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      const nowMs = performance.now();
      await this.rig.clock.advance(Math.floor(nowMs - seenMs));
      seenMs = nowMs;
    }
    return await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
    await this.claude.close();
    await this.zai.close();
  }
}

function ringOf(name: string, first: ProviderName): Record<string, unknown> {
  const order = [first, ...PROVIDERS.filter((provider) => provider !== first)];
  return {
    name,
    members: order.map((provider) => ({
      provider,
      model: MODELS[provider],
      weight: provider === first ? HEAVY : 1,
    })),
  };
}
