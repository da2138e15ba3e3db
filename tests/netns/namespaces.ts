/**
 * Network namespaces of one test run, joined to the test's own by virtual cables: `ip netns` and nothing else.
 *
 * The run itself lives in a namespace without a name (`main.ts`), so that no cable ever ends in the machine's own
 * network. Names carry the process that made them: whoever starts next takes away what a killed run left.
 */

const PREFIX = "holdfast-test-";
/**
 * Loopback addresses, as a configuration takes plain HTTP for these alone. Both ends of each cable are ours, so that
 * they can be told to route them.
 */
const NETWORK = "127.97";
/** Leaves 127.0.0.1 alone to the loopback interface, and lets cables carry the rest. */
export const FREE_LOOPBACK = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo && " +
  "ip addr add 127.0.0.1/32 dev lo && echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet";

export class Namespace implements AsyncDisposable {
  readonly name: string;
  /** Address of the other side of the cable. */
  readonly address: string;
  readonly #cable: string;
  readonly #ownAddress: string;

  private constructor(index: number) {
    this.name = `${PREFIX}${Deno.pid}-${index}`;
    this.#cable = `hf${index}`;
    this.#ownAddress = `${NETWORK}.${index}.1`;
    this.address = `${NETWORK}.${index}.2`;
  }

  /** @param index  1..250, once a run. */
  static async create(index: number): Promise<Namespace> {
    const made = new Namespace(index);
    await ip("netns", "add", made.name);
    try {
      await ip("netns", "exec", made.name, "sh", "-c", FREE_LOOPBACK);
      await ip("link", "add", made.#cable, "type", "veth", "peer", "name", "far", "netns", made.name);
      await ip("addr", "add", `${made.#ownAddress}/24`, "dev", made.#cable);
      await ip("link", "set", made.#cable, "up");
      await made.#inside("addr", "add", `${made.address}/24`, "dev", "far");
      await made.#inside("link", "set", "far", "up");
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What runs a program inside. */
  get entrance(): readonly string[] {
    return ["ip", "netns", "exec", this.name];
  }

  /** No way there: connecting fails at once. */
  async unplug(): Promise<void> {
    await ip("link", "set", this.#cable, "down");
  }

  /** Everything arrives and no word comes back: connecting takes for ever. */
  async swallow(): Promise<void> {
    await this.#inside("route", "add", "blackhole", `${this.#ownAddress}/32`);
  }

  async mend(): Promise<void> {
    await ip("link", "set", this.#cable, "up");
    const routes = await this.#inside("route", "show", "type", "blackhole");
    if (routes !== "") await this.#inside("route", "del", "blackhole", `${this.#ownAddress}/32`);
  }

  /** The cable goes with the namespace. */
  async [Symbol.asyncDispose](): Promise<void> {
    await ip("netns", "del", this.name);
  }

  #inside(...args: string[]): Promise<string> {
    return ip("-n", this.name, ...args);
  }
}

/** Takes away the namespaces of these processes; without a list those whose process is gone. */
export async function sweepNamespaces(pids: readonly number[] | null): Promise<void> {
  const names = (await ip("netns", "list")).split("\n").map((line) => line.split(" ")[0]!);
  for (const name of names.filter((each) => each.startsWith(PREFIX))) {
    const pid = Number(name.slice(PREFIX.length).split("-")[0]);
    if (pids === null ? !isRunning(pid) : pids.includes(pid)) await ip("netns", "del", name);
  }
}

/** @returns what it printed. @throws Error with what it complained about. */
async function ip(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("ip", { args, stdout: "piped", stderr: "piped" })
    .output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`Cannot run "ip ${args.join(" ")}": ${decoder.decode(stderr).trim()}`);
  return decoder.decode(stdout).trim();
}

function isRunning(pid: number): boolean {
  try {
    return Deno.statSync(`/proc/${pid}`).isDirectory;
  } catch {
    return false;
  }
}
