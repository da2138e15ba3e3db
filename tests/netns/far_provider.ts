/**
 * A provider behind a network that can be broken: in a namespace where these are permitted, else behind a port
 * that refuses. Counts the calls that reached it.
 */
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/process_rig.ts";
import { fromFileUrl } from "../support/paths.ts";
import { Namespace } from "./namespaces.ts";
import { Relay } from "./relay.ts";

const PROGRAM = fromFileUrl(new URL("provider_process.ts", import.meta.url));
/** Inside a namespace every port is free. */
const PORT = 8080;

/** Set by `main.ts` for a run that lives in a namespace of its own. */
export const HAS_NAMESPACES = Deno.env.get("HOLDFAST_TEST_NAMESPACES") === "1";

/** `unplug`: no way there, told at once. `swallow`: packets vanish, so that connecting takes for ever. */
type Break = "unplug" | "swallow";

interface Road extends AsyncDisposable {
  readonly url: string;
  break(how: Break): Promise<void>;
  mend(): Promise<void>;
}

export class FarProvider implements AsyncDisposable {
  readonly #road: Road;
  readonly #child: Deno.ChildProcess;
  readonly #pump: Promise<void>;
  #lines: string[] = [];

  private constructor(road: Road, entrance: readonly string[], where: readonly string[]) {
    this.#road = road;
    const [program, ...args] = [...entrance, Deno.execPath(), "run", "-A", PROGRAM, ...where];
    this.#child = new Deno.Command(program!, { args, stdin: "piped", stdout: "piped" }).spawn();
    this.#pump = this.#read(this.#child.stdout);
  }

  /** @param index  a number of its own within the run. */
  static async start(index: number, credentials: readonly string[]): Promise<FarProvider> {
    const provider = HAS_NAMESPACES
      ? await FarProvider.#inNamespace(index, credentials)
      : FarProvider.#onLoopback(credentials);
    try {
      await eventually(() => provider.#lines.length > 0, 30_000);
    } catch (error) {
      await provider[Symbol.asyncDispose]();
      throw error;
    }
    return provider;
  }

  static async #inNamespace(index: number, credentials: readonly string[]): Promise<FarProvider> {
    const namespace = await Namespace.create(index);
    const road: Road = {
      url: `http://${namespace.address}:${PORT}`,
      break: (how) => how === "unplug" ? namespace.unplug() : namespace.swallow(),
      mend: () => namespace.mend(),
      [Symbol.asyncDispose]: () => namespace[Symbol.asyncDispose](),
    };
    return new FarProvider(road, namespace.entrance, [namespace.address, `${PORT}`, ...credentials]);
  }

  static #onLoopback(credentials: readonly string[]): FarProvider {
    const port = freePort();
    return new FarProvider(new Relay(port), [], ["127.0.0.1", `${port}`, ...credentials]);
  }

  get url(): string {
    return this.#road.url;
  }

  /** Calls for an answer that reached it, with this mark in their text. */
  calls(mark: string): number {
    return this.#lines.filter((line) => line.startsWith("answers ") && line.endsWith(` mark-${mark}`)).length;
  }

  break(how: Break): Promise<void> {
    return this.#road.break(how);
  }

  mend(): Promise<void> {
    return this.#road.mend();
  }

  /** Its kernel still takes connections and requests, but no answer comes until it is woken. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  wake(): void {
    this.#child.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.stdin.abort().catch(() => {});
    await this.#child.status;
    await this.#pump;
    await this.#road[Symbol.asyncDispose]();
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      this.#lines = text.split("\n").slice(0, -1);
    }
  }
}
