/** What is measured: the bare pass-through, and Holdfast as it is shipped, with everything it does switched on. */
import { demoCredential } from "../../lib/demo/demo_accounts.ts";
import { fromFileUrl } from "../support/paths.ts";
import { BENCH_KEY } from "./load_request.ts";
import { freePort, script, ServerProcess } from "./processes.ts";

export const BENCH_ADMIN_KEY = "SENT-key-admin-bench";

export type SubjectName = "pass-through" | "holdfast";

const ROOT = fromFileUrl(new URL("../../", import.meta.url));
/** As the README starts the one file. */
const FILE_FLAGS = ["--v8-flags=--max-semi-space-size=12", "-A", "--no-remote", "--no-npm", "--no-config"];

export class Subjects {
  readonly #folder = Deno.makeTempDirSync({ prefix: "holdfast-bench-" });
  readonly #upstream: ServerProcess;
  readonly #fromSource: boolean;
  #count = 0;

  private constructor(upstream: ServerProcess, fromSource: boolean) {
    this.#upstream = upstream;
    this.#fromSource = fromSource;
  }

  /** Starts the upstream and makes the one file, unless Holdfast is to run from its source. */
  static async open(fromSource: boolean): Promise<Subjects> {
    const port = freePort();
    const log = Deno.makeTempFileSync({ prefix: "holdfast-bench-upstream-" });
    const upstream = await ServerProcess.start(
      ["run", "-A", script("fake_upstream.ts"), String(port)],
      port,
      "other",
      null,
      log,
    );
    Deno.removeSync(log);
    const subjects = new Subjects(upstream, fromSource);
    if (!fromSource) subjects.#bundle();
    return subjects;
  }

  /**
   * @param flags  more flags of the runtime, for Holdfast.
   * @param keys  configuration of Holdfast beside what every run has.
   */
  start(
    name: SubjectName,
    fromSource = this.#fromSource,
    flags: readonly string[] = [],
    keys: Readonly<Record<string, unknown>> = {},
  ): Promise<ServerProcess> {
    const port = freePort();
    const log = `${this.#folder}/${name}-${++this.#count}.log`;
    const upstream = `http://127.0.0.1:${this.#upstream.port}`;
    if (name === "pass-through") {
      const args = ["run", "-A", "--no-config", script("pass_through.ts"), String(port), upstream];
      return ServerProcess.start(args, port, "proxy", "/healthz", log);
    }
    const program = fromSource
      ? ["run", ...flags, "-A", `${ROOT}main.ts`]
      : ["run", ...flags, ...FILE_FLAGS, this.#bundlePath];
    const args = [...program, "serve", "--config", this.#configure(port, upstream, keys)];
    return ServerProcess.start(args, port, "proxy", "/healthz", log);
  }

  /** Completes every stream that is under way. */
  async endStreams(): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${this.#upstream.port}/end`, { method: "POST" });
    await answer.body?.cancel();
  }

  async close(): Promise<void> {
    await this.#upstream.stop();
    Deno.removeSync(this.#folder, { recursive: true });
  }

  get #bundlePath(): string {
    return `${this.#folder}/holdfast.js`;
  }

  #bundle(): void {
    const { success, stderr } = new Deno.Command(Deno.execPath(), {
      args: ["bundle", "--platform", "deno", "-o", this.#bundlePath, "main.ts"],
      cwd: ROOT,
    }).outputSync();
    if (!success) throw new Error(`Cannot bundle: ${new TextDecoder().decode(stderr)}`);
  }

  /** Two accounts, a client key, an empty database; every other key as it comes. */
  #configure(port: number, upstream: string, keys: Readonly<Record<string, unknown>>): string {
    const folder = `${this.#folder}/${this.#count}`;
    Deno.mkdirSync(`${folder}/accounts`, { recursive: true });
    for (const name of ["anna", "bert"]) {
      Deno.writeTextFileSync(
        `${folder}/accounts/${name}.json`,
        demoCredential({ name, trait: "", token: `SENT-tok-${name}` }),
      );
    }
    const path = `${folder}/holdfast.yaml`;
    Deno.writeTextFileSync(
      path,
      JSON.stringify({
        port,
        "auth-dir": `${folder}/accounts`,
        database: { path: `${folder}/state/holdfast.db` },
        "api-keys": [BENCH_KEY],
        "admin-api-key": BENCH_ADMIN_KEY,
        "proxy-url": "direct",
        "codex-base-url": `${upstream}/backend-api/codex`,
        "chatgpt-base-url": `${upstream}/backend-api`,
        logging: { level: "info", format: "json" },
        ...keys,
      }),
    );
    return path;
  }
}
