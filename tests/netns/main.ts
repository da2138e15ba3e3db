/**
 * `deno task test:netns`: the outage tests in a network namespace of their own, where they may break what they like.
 *
 * Where namespaces are not permitted (no root, a container without the right), the same tests run over ports that
 * refuse or take nobody in, and the run says so: what it cannot show then is a connection that outlives its network.
 */
import { fromFileUrl } from "../support/paths.ts";
import { FREE_LOOPBACK, sweepNamespaces } from "./namespaces.ts";

const TESTS = fromFileUrl(new URL("outage_tests.ts", import.meta.url));
const PROBE = `holdfast-test-${Deno.pid}-probe`;

async function main(): Promise<number> {
  const refusal = await whyNoNamespaces();
  const test = [Deno.execPath(), "test", "-A", TESTS, ...Deno.args];
  if (refusal !== null) {
    console.log(`NO NETWORK NAMESPACES: ${refusal}`);
    console.log("The outages are stood in for by ports on loopback that refuse, or take nobody in.");
    return await runHere(test, {});
  }
  await sweepNamespaces(null);
  const inside = ["unshare", "--net", "sh", "-c", `${FREE_LOOPBACK} && exec "$@"`, "sh", ...test];
  return await runHere(inside, { HOLDFAST_TEST_NAMESPACES: "1" });
}

/** @returns what stands in the way, or null. */
async function whyNoNamespaces(): Promise<string | null> {
  if (Deno.build.os !== "linux") return `${Deno.build.os} has none`;
  const trials = [
    ["ip", "-Version"],
    ["unshare", "--net", "sh", "-c", FREE_LOOPBACK],
    ["ip", "netns", "add", PROBE],
    ["ip", "netns", "del", PROBE],
  ];
  for (const [program, ...args] of trials) {
    try {
      const { code, stderr } = await new Deno.Command(program!, { args, stdout: "null", stderr: "piped" })
        .output();
      if (code === 0) continue;
      return `"${program} ${args.join(" ")}" says ${new TextDecoder().decode(stderr).trim()}`;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return `${program} is not installed`;
      throw error;
    }
  }
  return null;
}

/** Signals go to the tests. What these could not end or take away, since they were killed, is ended here. */
async function runHere(command: readonly string[], env: Record<string, string>): Promise<number> {
  const [program, ...args] = command;
  // A process group of its own: whatever the tests started is in it.
  const child = new Deno.Command(program!, { args, env, stdin: "null", detached: true }).spawn();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => child.kill(signal));
  }
  const { code } = await child.status;
  await new Deno.Command("sh", { args: ["-c", `kill -s KILL -- -${child.pid}`], stderr: "null" }).output();
  // `unshare` and `sh` became the tests' process, so that its names carry this id.
  if (env["HOLDFAST_TEST_NAMESPACES"] === "1") await sweepNamespaces([child.pid]);
  return code;
}

Deno.exit(await main());
