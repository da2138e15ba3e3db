/**
 * What a command may reach of the machine it runs on, apart from files and the network: tests bring their own.
 */
import { fileURLToPath } from "node:url";
import type { ConfigEnvironment } from "../config.ts";
import type { Clock, Digest, Ids } from "../ports.ts";
import { createIds } from "../runtime/chance.ts";
import { createClock } from "../runtime/clock.ts";
import { createDigest } from "../runtime/digest.ts";
import { shellWord } from "./client_settings.ts";
import { isColoured, terminalWidth } from "./terminal.ts";

export interface Sink {
  readonly isTerminal: boolean;
  readonly coloured: boolean;
  /** Columns; a wide one where nothing limits a line. */
  readonly width: number;
  write(text: string): void;
}

export interface Host {
  /** The words that call this program again, as a shell takes them: a command follows. */
  readonly program: string;
  readonly homeDir: string;
  /** Where relative paths begin. */
  readonly workingDir: string;
  readonly os: typeof Deno.build.os;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly digest: Digest;
  readonly stdout: Sink;
  readonly stderr: Sink;
  env(name: string): string | undefined;
  /** One line typed by a person; null when there is nobody to ask. */
  ask(question: string): Promise<string | null>;
  /** @returns false where there is no browser to open. */
  openBrowser(url: string): Promise<boolean>;
}

export function createHost(): Host {
  return {
    program: programOf(import.meta.url, Deno.build.standalone),
    homeDir: Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE") ?? Deno.cwd(),
    workingDir: workingDir(),
    os: Deno.build.os,
    clock: createClock(),
    ids: createIds(),
    digest: createDigest(),
    stdout: sink(Deno.stdout),
    stderr: sink(Deno.stderr),
    env: (name) => Deno.env.get(name),
    ask: (question) => Promise.resolve(Deno.stdin.isTerminal() ? prompt(question) : readPipedLine()),
    openBrowser,
  };
}

/**
 * How the program is called, told by where this very code lies: a binary, a checkout, or the one file.
 *
 * @param moduleUrl  of this module, which in the one file is the file itself.
 */
export function programOf(moduleUrl: string, standalone: boolean): string {
  if (standalone) return "holdfast";
  if (moduleUrl.endsWith("/lib/cli/host.ts")) return "deno task holdfast";
  return `deno run -A --no-config ${shellWord(fileURLToPath(moduleUrl))}`;
}

/** `deno task` runs in the project's folder; where it was called from is what people mean. */
function workingDir(): string {
  const calledFrom = Deno.env.get("INIT_CWD") ?? "";
  const isProject = new URL(`file://${Deno.cwd()}/lib/cli/host.ts`).href === import.meta.url;
  return isProject && calledFrom !== "" ? calledFrom : Deno.cwd();
}

/** What the configuration may ask of the host. */
export function environmentOf(host: Pick<Host, "homeDir" | "env">): ConfigEnvironment {
  return { homeDir: host.homeDir, get: (name) => host.env(name) };
}

function sink(stream: typeof Deno.stdout | typeof Deno.stderr): Sink {
  const isTerminal = stream.isTerminal();
  const encoder = new TextEncoder();
  return {
    isTerminal,
    coloured: isTerminal && isColoured(),
    width: isTerminal ? terminalWidth() : Number.MAX_SAFE_INTEGER,
    write(text) {
      let rest = encoder.encode(text);
      try {
        while (rest.length > 0) rest = rest.subarray(stream.writeSync(rest));
      } catch (error) {
        // `holdfast … | head`: whoever reads has seen enough.
        if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
      }
    },
  };
}

/** The first line of a pipe, so that a pasted code can come from a script. */
function readPipedLine(): string | null {
  const decoder = new TextDecoder();
  const byte = new Uint8Array(1);
  const bytes: number[] = [];
  while (bytes.length < 8_192 && Deno.stdin.readSync(byte) !== null && byte[0] !== 0x0a) bytes.push(byte[0]!);
  const line = decoder.decode(new Uint8Array(bytes)).trim();
  return line === "" ? null : line;
}

async function openBrowser(url: string): Promise<boolean> {
  const [program, ...args] = Deno.build.os === "darwin"
    ? ["open", url]
    : Deno.build.os === "windows"
    ? ["rundll32", "url.dll,FileProtocolHandler", url]
    : ["xdg-open", url];
  // Asked beforehand, because without the permission the runtime would ask whoever sits at the terminal.
  const permission = await Deno.permissions.query({ name: "run", command: program! });
  if (permission.state !== "granted") return false;
  try {
    const child = new Deno.Command(program!, { args, stdin: "null", stdout: "null", stderr: "null" }).spawn();
    return (await child.status).success;
  } catch {
    // Not installed: the address is printed anyway.
    return false;
  }
}
