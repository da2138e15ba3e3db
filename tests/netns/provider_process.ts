/**
 * The simulated provider as a process of its own, so that it can live in a namespace, and be stopped by a signal.
 *
 * Arguments: host, port, then the credentials it answers, each with its own name. Prints one line for each call.
 * Ends with its standard input, and so with whoever started it.
 */
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { ok } from "../../lib/demo/simulated_replies.ts";

const [hostname, port, ...credentials] = Deno.args;
const provider = await startSimulatedProvider({
  hostname: hostname!,
  port: Number(port),
  clock: { now: () => Date.now(), sleepUntil: () => Promise.resolve(true) },
});
for (const credential of credentials) provider.account(credential).otherwise(ok(credential));
const encoder = new TextEncoder();
const say = (line: string) => Deno.stdout.writeSync(encoder.encode(`${line}\n`));
say(`listens on ${provider.port}`);
Deno.stdin.readable.pipeTo(new WritableStream()).finally(() => Deno.exit());
for (let count = 1;; count++) {
  await provider.hitCount(count);
  const hit = provider.hits[count - 1]!;
  say(`${hit.lane} ${hit.credential} ${/mark-[a-z]+/.exec(hit.text())?.[0] ?? "unmarked"}`);
}
