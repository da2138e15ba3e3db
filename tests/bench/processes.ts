/** The processes of a benchmark run: started pinned to a core, read through `/proc`, stopped by their id. */
import { fromFileUrl } from "../support/paths.ts";
import { BEGIN_MARK, END_MARK, type LoadResult, type LoadSpec } from "./load.ts";
import { LoadConnection } from "./load_connection.ts";

/** The proxies run alone on one core; load and upstream share the other. */
const PROXY_CORE = "0";
const OTHER_CORE = "1";
const START_LIMIT_MS = 20_000;
const CLOCK_TICKS_A_SECOND = 100;
const DECODER = new TextDecoder();

export function script(name: string): string {
  return fromFileUrl(new URL(name, import.meta.url));
}

/** A port nobody listens on now. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

/** A process that listens on a port. */
export class ServerProcess {
  readonly port: number;
  /** From the start of the process to its first whole answer. */
  readonly startMs: number;
  readonly #child: Deno.ChildProcess;

  private constructor(child: Deno.ChildProcess, port: number, startMs: number) {
    this.#child = child;
    this.port = port;
    this.startMs = startMs;
  }

  /**
   * @param probePath  path whose answer, whatever its status, shows that the process serves; null: a connection does.
   * @param logFile  takes standard error.
   */
  static async start(
    args: readonly string[],
    port: number,
    role: "proxy" | "other",
    probePath: string | null,
    logFile: string,
    env: Record<string, string> = {},
  ): Promise<ServerProcess> {
    const beganAt = performance.now();
    const child = new Deno.Command("sh", {
      // The shell turns into the process itself, so that the id is the right one.
      args: ["-c", `exec "$@" 2>>"$BENCH_LOG"`, "sh", ...pinned(role), Deno.execPath(), ...args],
      env: { ...env, BENCH_LOG: logFile, NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1" },
      stdout: "null",
      stdin: "null",
      stderr: "null",
    }).spawn();
    for (;;) {
      if (await answers(port, probePath)) {
        return new ServerProcess(child, port, performance.now() - beganAt);
      }
      if (performance.now() - beganAt > START_LIMIT_MS) {
        child.kill("SIGKILL");
        throw new Error(`Cannot start ${args.at(-1)}:\n${Deno.readTextFileSync(logFile).slice(-2_000)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** CPU time used so far, ms; NaN where it cannot be read. */
  cpuMs(): number {
    const text = readProc(`/proc/${this.#child.pid}/stat`);
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 1_000 / CLOCK_TICKS_A_SECOND;
  }

  /** Resident memory now, bytes; NaN where it cannot be read. */
  residentBytes(): number {
    return this.#status("VmRSS");
  }

  /** Highest resident memory since the start, or since `forgetPeak`. */
  peakBytes(): number {
    return this.#status("VmHWM");
  }

  forgetPeak(): void {
    try {
      Deno.writeTextFileSync(`/proc/${this.#child.pid}/clear_refs`, "5");
    } catch {
      // The peak is then that of the whole run.
    }
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }

  #status(name: string): number {
    const match = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readProc(`/proc/${this.#child.pid}/status`));
    return match === null ? NaN : Number(match[1]) * 1_024;
  }
}

export interface LoadReport extends LoadResult {
  /** CPU time the proxy used in the measured time, ms. */
  readonly cpuMs: number;
  /** Resident memory of the proxy at the end of the measured time. */
  readonly residentBytes: number;
}

/** Runs one load against a proxy. @throws Error when the load generator failed or nothing was answered. */
export async function runLoad(proxy: ServerProcess, spec: LoadSpec): Promise<LoadReport> {
  const [program, ...args] = [...pinned("other"), Deno.execPath(), "run", "-A", script("load.ts")];
  const child = new Deno.Command(program!, {
    args: [...args, JSON.stringify(spec)],
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const errors = new Response(child.stderr).text();
  let beganMs = NaN;
  let endedMs = NaN;
  let resident = NaN;
  let result: LoadResult | null = null;
  let rest = "";
  for await (const bytes of child.stdout) {
    const lines = (rest + DECODER.decode(bytes)).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === BEGIN_MARK) beganMs = proxy.cpuMs();
      else if (line === END_MARK) [endedMs, resident] = [proxy.cpuMs(), proxy.residentBytes()];
      else result = JSON.parse(line) as LoadResult;
    }
  }
  if (!(await child.status).success || result === null || result.failures > 0) {
    throw new Error(`Cannot measure ${JSON.stringify(spec)}: ${JSON.stringify(result)}\n${await errors}`);
  }
  return { ...result, cpuMs: endedMs - beganMs, residentBytes: resident };
}

let taskset: boolean | null = null;

/** Nothing where processes cannot be pinned, or where there is only one core. */
function pinned(role: "proxy" | "other"): string[] {
  taskset ??= navigator.hardwareConcurrency > 1 && hasTaskset();
  return taskset ? ["taskset", "-c", role === "proxy" ? PROXY_CORE : OTHER_CORE] : [];
}

function hasTaskset(): boolean {
  try {
    return new Deno.Command("taskset", { args: ["-c", OTHER_CORE, "true"], stderr: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
}

async function answers(port: number, path: string | null): Promise<boolean> {
  let connection: LoadConnection;
  try {
    connection = await LoadConnection.open(port);
  } catch {
    return false;
  }
  try {
    if (path === null) return true;
    await connection.exchange(new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`));
    return true;
  } catch {
    return false;
  } finally {
    connection.close();
  }
}

function readProc(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
