/**
 * The program as a process of its own: started like people start it, ended by signals, over the simulated provider.
 */
import { type SimulatedProvider, startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { unsignedToken } from "../../lib/demo/demo_accounts.ts";
import { eventually } from "./eventually.ts";
import { fromFileUrl } from "./paths.ts";
import { TempFolder } from "./temp_folder.ts";

const DENO_CACHE = Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`;
const MAIN = fromFileUrl(new URL("../../main.ts", import.meta.url));

const KNOCK_LIMIT_MS = 1_000;

export interface ProcessLimits {
  /** Most descriptors the process may have open; not on Windows. */
  readonly descriptors?: number;
  /** More flags of the runtime. */
  readonly flags?: readonly string[];
}

export class ProcessRig implements AsyncDisposable {
  readonly folder = new TempFolder();
  readonly provider: SimulatedProvider;
  readonly port: number;
  stdout = "";
  stderr = "";
  #child: Deno.ChildProcess | null = null;
  #pumps: Promise<void>[] = [];

  constructor(provider: SimulatedProvider) {
    this.provider = provider;
    this.port = freePort();
    Deno.mkdirSync(this.folder.file("accounts"));
  }

  static async create(
    accounts: readonly string[],
    config: Record<string, unknown> = {},
  ): Promise<ProcessRig> {
    const provider = await startSimulatedProvider({
      clock: { now: () => Date.now(), sleepUntil: realSleep },
    });
    const rig = new ProcessRig(provider);
    for (const name of accounts) rig.writeAccount(name);
    rig.writeConfig(config);
    return rig;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  writeAccount(name: string): void {
    Deno.writeTextFileSync(
      this.folder.file(`accounts/${name}.json`),
      JSON.stringify({
        type: "codex",
        access_token: `SENT-tok-${name}`,
        refresh_token: `SENT-ref-${name}`,
        account_id: `acct-${name}`,
        id_token: unsignedToken({
          "https://api.openai.com/auth": {
            chatgpt_account_id: `acct-${name}`,
            chatgpt_user_id: `user-${name}`,
          },
        }),
        expired: "2099-01-01T00:00:00Z",
        last_refresh: "2026-01-01T00:00:00Z",
      }),
    );
  }

  writeConfig(config: Record<string, unknown> = {}): void {
    Deno.writeTextFileSync(
      this.folder.file("holdfast.yaml"),
      JSON.stringify({
        port: this.port,
        "auth-dir": this.folder.file("accounts"),
        database: { path: this.folder.file("state/holdfast.db") },
        "api-keys": ["SENT-key-client-1"],
        "admin-api-key": "SENT-key-admin-1",
        "proxy-url": "direct",
        "codex-base-url": `${this.provider.url}/backend-api/codex`,
        "chatgpt-base-url": `${this.provider.url}/backend-api`,
        "codex-refresh-token-url": `${this.provider.url}/oauth/token`,
        quota: { "poll-interval-seconds": 0 },
        logging: { level: "info", format: "json" },
        ...config,
      }),
    );
  }

  /** Starts the program; resolves when it listens, or has ended by itself. */
  async start(
    args: readonly string[] = ["--config", this.folder.file("holdfast.yaml")],
    limits: ProcessLimits = {},
  ): Promise<void> {
    this.stdout = "";
    this.stderr = "";
    const command = [Deno.execPath(), "run", ...limits.flags ?? [], "-A", MAIN, ...args];
    const [program, ...rest] = limits.descriptors === undefined
      ? command
      : ["sh", "-c", `ulimit -n ${limits.descriptors} && exec "$@"`, "sh", ...command];
    const child = new Deno.Command(program!, {
      args: rest,
      // A home of its own, but not a package cache of its own.
      env: {
        DENO_DIR: DENO_CACHE,
        HOME: this.folder.path,
        XDG_STATE_HOME: this.folder.file("xdg"),
        NO_COLOR: "1",
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#child = child;
    this.#pumps = [
      pump(child.stdout, (text) => this.stdout += text),
      pump(child.stderr, (text) => this.stderr += text),
    ];
    let ended = false;
    child.status.then(() => ended = true);
    let listens = false;
    const knock = async (): Promise<void> => {
      while (!ended && !listens) {
        try {
          // Bounded: where the port is somebody else's, nobody answers.
          const signal = AbortSignal.timeout(KNOCK_LIMIT_MS);
          await (await fetch(`${this.url}/healthz`, { signal })).body?.cancel();
          listens = true;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    await Promise.all([knock(), eventually(() => ended || listens, 30_000)]);
  }

  get pid(): number {
    return this.#child!.pid;
  }

  signal(name: Deno.Signal): void {
    this.#child!.kill(name);
  }

  /** The exit code (128 + n for a signal), once it has ended. */
  async ended(): Promise<number> {
    const status = await this.#child!.status;
    await Promise.all(this.#pumps);
    this.#child = null;
    return status.code;
  }

  call(fields: Record<string, unknown> = {}, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: "Bearer SENT-key-client-1", "content-type": "application/json" },
      body: JSON.stringify({ model: "m1", input: "hi", ...fields }),
      ...init,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child !== null) {
      this.signal("SIGKILL");
      await this.ended();
    }
    await this.provider.close();
    this.folder[Symbol.dispose]();
  }
}

async function pump(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

/** A port that was free a moment ago. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
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
