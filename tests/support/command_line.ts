/**
 * Runs commands as a person or a script would, with a machine of their own: home folder, environment, terminal.
 *
 * What it may not show is looked for at every run: no text of a command holds a token.
 */
import type { Host, Sink } from "../../lib/cli/host.ts";
import { runCommand } from "../../lib/cli/run.ts";
import type { Clock } from "../../lib/ports.ts";
import { createIds } from "../../lib/runtime/chance.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { TempFolder } from "./temp_folder.ts";

export interface CommandLineOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Columns of a terminal; left out: output is piped. */
  readonly terminal?: number;
  readonly coloured?: boolean;
  /** Lines a person types, in order. */
  readonly typed?: readonly string[];
  /** Called with every address that would be opened; its answer says whether there was a browser. */
  readonly browser?: (url: string) => boolean;
}

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  // deno-lint-ignore no-explicit-any -- each test knows the shape it asked for
  readonly json: any;
}

export class CommandLine implements Disposable {
  readonly folder = new TempFolder();
  readonly #options: CommandLineOptions;
  #out = "";
  #err = "";

  constructor(options: CommandLineOptions = {}) {
    this.#options = options;
    Deno.mkdirSync(this.home);
  }

  get home(): string {
    return this.folder.file("home");
  }

  /** What was written so far, for commands that are still under way. */
  get output(): string {
    return this.#out + this.#err;
  }

  /** Writes a configuration with the rest of the machine kept out; `holdfast.yaml` of the working folder. */
  configure(keys: Readonly<Record<string, unknown>>): void {
    this.write("holdfast.yaml", JSON.stringify(keys), 0o600);
  }

  write(name: string, text: string, mode = 0o600): string {
    const path = this.folder.file(name);
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    Deno.writeTextFileSync(path, text, { mode });
    Deno.chmodSync(path, mode);
    return path;
  }

  async run(...words: string[]): Promise<Run> {
    this.#out = "";
    this.#err = "";
    const typed = this.#options.typed ?? [];
    let answered = 0;
    const host: Host = {
      program: "holdfast",
      homeDir: this.home,
      workingDir: this.folder.path,
      os: "linux",
      clock: this.#options.clock ?? createClock(),
      ids: createIds(),
      digest: createDigest(),
      stdout: this.#sink((text) => void (this.#out += text)),
      stderr: this.#sink((text) => void (this.#err += text)),
      env: (name) => this.#options.env?.[name],
      ask: (question) => {
        this.#err += question;
        return Promise.resolve(typed[answered++] ?? null);
      },
      openBrowser: (url) => Promise.resolve(this.#options.browser?.(url) ?? false),
    };
    const code = await runCommand(words, host);
    const out = this.#out;
    return { code, out, err: this.#err, json: words.includes("--json") ? JSON.parse(out) : null };
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }

  #sink(write: (text: string) => void): Sink {
    const { terminal, coloured } = this.#options;
    return {
      isTerminal: terminal !== undefined,
      coloured: coloured ?? false,
      width: terminal ?? Number.MAX_SAFE_INTEGER,
      write,
    };
  }
}
