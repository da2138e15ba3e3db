/**
 * The whole proxy over the simulated provider, on real sockets and a clock that moves when told.
 *
 * Every rig checks at its end that nothing it used as a secret shows in its log, and that the script was played.
 */
import { startApp } from "../../lib/app.ts";
import type { App, Outside } from "../../lib/app_types.ts";
import { unsignedToken } from "../../lib/demo/demo_accounts.ts";
import { parseConfig } from "../../lib/config.ts";
import type { Config } from "../../lib/config_types.ts";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import {
  type SimulatedAccount,
  type SimulatedProvider,
  startSimulatedProvider,
} from "../../lib/demo/simulated_provider.ts";
import { createIds, createRandom } from "../../lib/runtime/chance.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { createInflate } from "../../lib/runtime/inflate.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { createCredentialFiles } from "../../lib/store/credential_files.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createNetwork } from "../../lib/upstream/network.ts";
import { createUsageClient } from "../../lib/upstream/usage_client.ts";
import { createOauthClient } from "../../lib/upstream/oauth_client.ts";
import { FakeClock } from "./fake_clock.ts";
import { TempFolder } from "./temp_folder.ts";

export const CLIENT_KEY = "SENT-key-client-1";
export const ADMIN_KEY = "SENT-key-admin-1";

export interface RigOptions {
  /** Names of codex accounts; each has the token `SENT-tok-<name>`. */
  readonly accounts?: readonly string[];
  /** Configuration keys beside the rig's own. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Fields of every credential file, over the usual ones. */
  readonly credential?: Readonly<Record<string, unknown>>;
  /** False where a test breaks the script on purpose. */
  readonly checkScript?: boolean;
}

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const rig = new Rig(
    options,
    await startSimulatedProvider({ clock: { now: () => Date.now(), sleepUntil: realSleep } }),
  );
  for (const name of options.accounts ?? ["A", "B", "C"]) rig.writeAccount(name, options.credential ?? {});
  await rig.start();
  return rig;
}

export class Rig implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly provider: SimulatedProvider;
  readonly folder = new TempFolder();
  #options: RigOptions;
  #port = 0;
  #logText = "";
  #log: ReturnType<typeof createLog> | null = null;
  #app: App | null = null;

  constructor(options: RigOptions, provider: SimulatedProvider) {
    this.#options = options;
    this.provider = provider;
    Deno.mkdirSync(this.authDir);
  }

  get app(): App {
    if (this.#app === null) throw new Error("The proxy of this rig is stopped");
    return this.#app;
  }

  get authDir(): string {
    return this.folder.file("accounts");
  }

  /** All that was written to the log so far: lines are written in batches. */
  async readLog(): Promise<string> {
    await this.#log?.flush();
    return this.#logText;
  }

  /** The script of the account of that name. */
  account(name: string): SimulatedAccount {
    return this.provider.account(tokenOf(name));
  }

  /** How often the account was asked for an answer (usage and model lists do not count). */
  hits(name: string): number {
    return this.provider.hitsOf(tokenOf(name), "answers").length +
      this.provider.hitsOf(tokenOf(name), "websocket").length;
  }

  writeAccount(name: string, fields: Readonly<Record<string, unknown>> = {}): void {
    Deno.writeTextFileSync(
      `${this.authDir}/${name}.json`,
      JSON.stringify({
        type: "codex",
        access_token: tokenOf(name),
        id_token: unsignedToken({
          "https://api.openai.com/auth": {
            chatgpt_account_id: `acct-${name}`,
            chatgpt_user_id: `user-${name}`,
          },
        }),
        refresh_token: `SENT-ref-${name}`,
        account_id: `acct-${name}`,
        expired: "2099-01-01T00:00:00Z",
        last_refresh: "2026-01-01T00:00:00Z",
        ...fields,
      }),
    );
  }

  config(): Config {
    const text = JSON.stringify({
      port: this.#port,
      "auth-dir": this.authDir,
      database: { path: this.folder.file("state/holdfast.db") },
      "api-keys": [CLIENT_KEY],
      "admin-api-key": ADMIN_KEY,
      "proxy-url": "direct",
      "codex-base-url": `${this.provider.url}/backend-api/codex`,
      "chatgpt-base-url": `${this.provider.url}/backend-api`,
      "codex-refresh-token-url": `${this.provider.url}/oauth/token`,
      quota: { "poll-interval-seconds": 0 },
      logging: { level: "debug", format: "json" },
      ...this.#options.config,
    });
    const parsed = parseConfig(text, { homeDir: this.folder.path, get: () => undefined });
    if (!parsed.ok) throw new Error(`The rig's configuration is wrong: ${JSON.stringify(parsed.mistakes)}`);
    return parsed.config;
  }

  /** Other configuration keys for the next start. */
  reconfigure(config: Readonly<Record<string, unknown>>): void {
    this.#options = { ...this.#options, config };
  }

  /** From the next start on; a rig begins with whatever port is free. */
  listenOn(port: number): void {
    this.#port = port;
  }

  async start(): Promise<void> {
    const config = this.config();
    const { clock } = this;
    const sink = {
      isTerminal: false,
      colour: false,
      write: (text: string) => {
        this.#logText += text;
        return Promise.resolve();
      },
    };
    this.#log = createLog(config.logging, clock, sink);
    const network = createNetwork({ clock, proxyUrl: config.proxyUrl, environment: NO_PROXY_ENVIRONMENT });
    const { upstream, dialer } = network;
    const outside: Outside = {
      clock,
      random: createRandom(1),
      ids: createIds(),
      digest: createDigest(),
      inflate: createInflate(),
      log: this.#log,
      upstream,
      dialer,
      useProxy: network.useProxy,
      issuer: createOauthClient(upstream, clock),
      usagePages: createUsageClient(upstream, clock),
      files: createCredentialFiles(),
      database: openDatabase(config.databasePath),
    };
    this.#app = await startApp(config, outside);
  }

  /** Stops the proxy in order; the provider and the files stay. */
  async stop(): Promise<void> {
    const app = this.#app;
    this.#app = null;
    if (app !== null) await this.until(app.stop(500));
  }

  /** For a test that stopped the proxy itself. */
  forget(): void {
    this.#app = null;
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** A client call with the right key; `json` is sent as the body. */
  call(path: string, json: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${CLIENT_KEY}`);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return this.until(
      fetch(`${this.app.url}${path}`, { method: "POST", body: JSON.stringify(json), ...init, headers }),
    );
  }

  responses(fields: Record<string, unknown> = {}, init: RequestInit = {}): Promise<Response> {
    return this.call("/v1/responses", { model: "m1", input: "hi", ...fields }, init);
  }

  admin(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${ADMIN_KEY}`);
    return fetch(`${this.app.url}/v0/management/${path}`, { ...init, headers });
  }

  /** The record of the last finished request. */
  async lastDecision(): Promise<DecisionRecord> {
    const latest = this.app.decisions.latest(1)[0];
    if (latest === undefined) throw new Error("No request was finished yet");
    return await Promise.resolve(latest);
  }

  /**
   * Waits for something that real sockets and the fake clock bring about together: fake time runs a dozen times
   * faster than real time meanwhile.
   */
  async until<T>(promise: Promise<T>, limitMs = 30_000): Promise<T> {
    let settled = false;
    const mark = (): void => void (settled = true);
    promise.then(mark, mark);
    const endMs = performance.now() + limitMs;
    while (!settled) {
      if (performance.now() > endMs) throw new Error(`Nothing came of it within ${limitMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (!settled) await this.clock.advance(50);
    }
    return await promise;
  }

  /** Waits until the condition holds. */
  async eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
    await this.until((async () => {
      while (!await holds()) await new Promise((resolve) => setTimeout(resolve, 2));
    })());
  }

  /** One account as management lists it. */
  async accountState(name: string): Promise<Record<string, unknown>> {
    const { accounts } = await (await this.admin("accounts")).json();
    return accounts.find(({ id }: { id: string }) => id.includes(`acct-${name}:`));
  }

  /** Jumps ahead: whatever became due runs once, as after a suspended machine. */
  async pass(ms: number): Promise<void> {
    this.clock.jump(ms);
    await this.clock.advance(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.provider.close();
    this.folder[Symbol.dispose]();
    const leak = /SENT-[A-Za-z0-9_-]+/.exec(this.#logText);
    if (leak !== null) throw new Error(`A secret is in the log: ${leak[0]}`);
    if (this.#options.checkScript !== false) this.provider.assertDone();
  }
}

export function tokenOf(name: string): string {
  return `SENT-tok-${name}`;
}

function realSleep(untilMs: number, signal: AbortSignal | null): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(true), Math.max(0, untilMs - Date.now()));
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    resolve(false);
  }, { once: true });
  return promise;
}
