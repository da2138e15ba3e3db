/** Pools over three providers on real sockets: weighted rings, one probe, circuits, fallbacks, and our own network. */
import { assert, assertEquals } from "@std/assert";
import { failure, ok, type Reply, reset, silence } from "../../lib/demo/simulated_replies.ts";
import type { SimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { LONG_INPUT } from "../support/long_input.ts";
import { type Rig, startRig } from "../support/rig.ts";

/** Codex on the rig's own host, claude and lab on hosts of their own, in one pool. */
class PoolRig implements AsyncDisposable {
  private constructor(
    readonly rig: Rig,
    readonly claude: SimulatedProvider,
    readonly lab: SimulatedProvider,
  ) {}

  static async start(config: Record<string, unknown> = {}): Promise<PoolRig> {
    const clock = { now: () => Date.now(), sleepUntil: () => Promise.resolve(true) };
    const rig = await startRig({ accounts: ["A"], checkScript: false });
    await rig.stop();
    const pools = new PoolRig(
      rig,
      await startSimulatedProvider({ clock }),
      await startSimulatedProvider({ clock }),
    );
    pools.configure(config);
    await rig.start();
    return pools;
  }

  configure(config: Record<string, unknown>): void {
    this.rig.reconfigure({
      providers: [
        {
          id: "claude",
          kind: "anthropic",
          "base-url": this.claude.url,
          accounts: [{ id: "c1", "api-key": "SENT-tok-C" }],
        },
        {
          id: "lab",
          kind: "openai",
          "base-url": `${this.lab.url}/v1`,
          accounts: [{ id: "l1", "api-key": "SENT-tok-L" }],
        },
      ],
      pools: [{
        name: "frontier",
        members: [
          { provider: "codex", model: "gpt-5.5", weight: 3 },
          { provider: "claude", model: "claude-opus-4-8", weight: 2 },
        ],
        fallback: [{ provider: "lab", model: "qwen3" }],
      }],
      ...config,
    });
  }

  script(provider: "codex" | "claude" | "lab", ...replies: Reply[]): void {
    this.#account(provider).script(...replies);
  }

  otherwise(provider: "codex" | "claude" | "lab", reply: Reply): void {
    this.#account(provider).otherwise(reply);
  }

  allServe(): void {
    for (const provider of ["codex", "claude", "lab"] as const) this.otherwise(provider, ok(provider));
  }

  hits(provider: "codex" | "claude" | "lab"): number {
    if (provider === "codex") return this.rig.hits("A");
    return (provider === "claude" ? this.claude : this.lab).hits.filter(({ lane }) => lane === "answers")
      .length;
  }

  async ask(headers: Record<string, string> = {}): Promise<string> {
    const answer = await this.rig.responses({ model: "frontier" }, { headers });
    const body = await answer.json();
    return answer.status === 200 ? body.output.at(-1).content[0].text : `${answer.status} ${body.error.code}`;
  }

  async providers(): Promise<{ providers: Any[]; network_pause: Any }> {
    return await (await this.rig.admin("providers")).json();
  }

  async provider(id: string): Promise<Any> {
    return (await this.providers()).providers.find((one: Any) => one.id === id);
  }

  #account(provider: "codex" | "claude" | "lab"): ReturnType<Rig["account"]> {
    if (provider === "codex") return this.rig.account("A");
    return provider === "claude" ? this.claude.account("SENT-tok-C") : this.lab.account("SENT-tok-L");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rig[Symbol.asyncDispose]();
    await this.claude.close();
    await this.lab.close();
  }
}

// deno-lint-ignore no-explicit-any
type Any = any;

Deno.test("a pool is served by its members as often as their weights say", async () => {
  await using pools = await PoolRig.start();
  pools.allServe();
  const served: string[] = [];
  for (let turn = 0; turn < 10; turn++) served.push(await pools.ask());
  assertEquals(served.filter((name) => name === "codex").length, 6, served.join(" "));
  assertEquals(served.filter((name) => name === "claude").length, 4, served.join(" "));
  assertEquals(pools.hits("lab"), 0);
});

Deno.test("a known session stays on the member that served it", async () => {
  await using pools = await PoolRig.start();
  pools.allServe();
  const home = await pools.ask({ "session-id": "s1" });
  for (let turn = 0; turn < 5; turn++) assertEquals(await pools.ask({ "session-id": "s1" }), home);
});

Deno.test("a first transient moves to the other member inside the request, and excludes nobody", async () => {
  await using pools = await PoolRig.start();
  pools.allServe();
  pools.script("codex", failure(503));
  pools.script("claude", failure(529, { type: "overloaded_error" }));
  const served = await pools.ask();
  assert(["codex", "claude", "lab"].includes(served), served);
});

Deno.test("the fallback serves only when the ring cannot", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.otherwise("codex", failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }));
  pools.otherwise("claude", failure(429, { type: "rate_limit_error", headers: { "retry-after": "3600" } }));
  assertEquals(await pools.ask(), "lab");
  assertEquals(await pools.ask(), "lab");
  assertEquals([pools.hits("codex"), pools.hits("claude")], [1, 1]);
  pools.otherwise("lab", failure(401, { code: "invalid_api_key" }));
  assertEquals(await pools.ask(), "429 rate_limited");
});

Deno.test("a multi-hour reset keeps a provider out until its real time; one probe goes first", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.script("codex", failure(429, { type: "usage_limit_reached", headers: { "retry-after": "7200" } }));
  for (let turn = 0; turn < 5; turn++) assertEquals(await pools.ask(), "claude");
  assertEquals(pools.hits("codex"), 1);
  const state = await pools.provider("codex");
  assertEquals(state.cooldown.reason, "usage_window_exhausted");
  await pools.rig.pass(7_200_000);
  const served = new Set<string>();
  for (let turn = 0; turn < 5; turn++) served.add(await pools.ask());
  assert(served.has("codex"), [...served].join());
  const { circuit, cooldown } = await pools.provider("codex");
  assertEquals([circuit, cooldown], [null, null]);
});

Deno.test("auth death and missing credit open circuits that no fallback bypasses, and the others go on", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.otherwise(
    "claude",
    failure(400, {
      type: "invalid_request_error",
      message: "Your credit balance is too low to access the Anthropic API.",
    }),
  );
  pools.otherwise(
    "codex",
    failure(403, { code: "account_deactivated", message: "account has been deactivated" }),
  );
  pools.rig.provider.account("SENT-ref-A").tokens.otherwise(failure(400, { code: "invalid_grant" }));
  for (let turn = 0; turn < 4; turn++) assertEquals(await pools.ask(), "lab");
  assertEquals((await pools.provider("claude")).circuit?.reason, "credits");
  assertEquals((await pools.provider("codex")).circuit?.reason, "auth");
  const before = [pools.hits("codex"), pools.hits("claude")];
  assertEquals(await pools.ask(), "lab");
  assertEquals([pools.hits("codex"), pools.hits("claude")], before);
});

Deno.test("a model one provider lacks is excluded there alone", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.script("codex", failure(404, { code: "model_not_found" }));
  for (let turn = 0; turn < 5; turn++) assertEquals(await pools.ask(), "claude");
  assertEquals(pools.hits("codex"), 1);
  const other = await pools.rig.responses({ model: "codex/gpt-5.4" });
  assertEquals((await other.json()).output[0].content[0].text, "codex");
});

Deno.test("two providers without an answer inside 60 s are our own network: a pause, one probe, and nobody is blamed", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.otherwise("codex", reset());
  pools.otherwise("claude", reset());
  pools.otherwise("lab", reset());
  const first = await pools.ask();
  assertEquals(first, "502 upstream_unavailable");
  const { network_pause: pause } = await pools.providers();
  assert(pause !== null, "no pause was opened");
  assert(pause.providers.length >= 2);
  const hits = (): number => pools.hits("codex") + pools.hits("claude") + pools.hits("lab");
  const during = hits();
  for (let turn = 0; turn < 3; turn++) assertEquals(await pools.ask(), "502 upstream_unavailable");
  assertEquals(hits(), during, "launched during the pause");
  // The network is back: one request probes, and service resumes for everybody.
  pools.allServe();
  await pools.rig.pass(61_000);
  assert(["codex", "claude", "lab"].includes(await pools.ask()));
  assertEquals((await pools.providers()).network_pause, null);
  const told = (await pools.rig.readLog()).match(/"network_pause_\w+"/g);
  assertEquals(told, ['"network_pause_opened"', '"network_pause_ended"']);
  for (let turn = 0; turn < 5; turn++) assert(["codex", "claude"].includes(await pools.ask()));
});

Deno.test("/readyz stays 200 in the network's pause: only a real request ends it, and none comes to a machine taken out", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  for (const provider of ["codex", "claude", "lab"] as const) pools.otherwise(provider, reset());
  const isReady = async () => (await (await fetch(`${pools.rig.app.url}/readyz`)).json()).status;
  await pools.ask();
  assert((await pools.providers()).network_pause !== null);
  assertEquals(await isReady(), "ready");
  await pools.rig.pass(61_000);
  assert((await pools.providers()).network_pause !== null);
  assertEquals(await isReady(), "ready");
});

Deno.test("while the network probe is out, others are refused; its client leaving gives the probe to the next", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  for (const provider of ["codex", "claude", "lab"] as const) pools.otherwise(provider, reset());
  await pools.ask();
  assert((await pools.providers()).network_pause !== null);
  for (const provider of ["codex", "claude", "lab"] as const) pools.otherwise(provider, silence());
  await pools.rig.pass(61_000);
  const before = pools.hits("codex") + pools.hits("claude") + pools.hits("lab");
  const abort = new AbortController();
  const probe = pools.rig.responses({ model: "frontier", input: LONG_INPUT }, { signal: abort.signal }).then(
    () => "answered",
    () => "left",
  );
  await pools.rig.eventually(() =>
    pools.hits("codex") + pools.hits("claude") + pools.hits("lab") === before + 1
  );
  assertEquals(await pools.ask(), "502 upstream_unavailable");
  assertEquals(pools.hits("codex") + pools.hits("claude") + pools.hits("lab"), before + 1);
  const { network_pause: { until, probe: told } } = await pools.providers();
  assert(
    Date.parse(until) <= Date.parse(told.since) && Date.parse(told.since) < Date.parse(told.lease_until),
  );
  assertEquals([told.state, told.attempt.startsWith(told.request_id)], ["leased", true]);
  await pools.rig.clock.advance(200);
  abort.abort();
  assertEquals(await pools.rig.until(probe), "left");
  await pools.rig.eventually(() => pools.rig.app.decisions.latest(1)[0]?.status === 0);
  pools.allServe();
  assert(["codex", "claude"].includes(await pools.ask()));
  assertEquals((await pools.providers()).network_pause, null);
});

Deno.test("a provider that reports a network failure of its own never pauses us", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.otherwise("codex", failure(500, { code: "1234", message: "Network error, error id 42" }));
  pools.otherwise("claude", failure(500, { type: "api_error", message: "network error" }));
  await pools.ask();
  await pools.ask();
  assertEquals((await pools.providers()).network_pause, null);
});

Deno.test("a success within 60 s vetoes the pause", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  await pools.ask();
  pools.otherwise("codex", reset());
  pools.otherwise("claude", reset());
  assertEquals(await pools.ask(), "lab");
  assertEquals((await pools.providers()).network_pause, null);
});

Deno.test("a provider dead for good costs at most two launches a minute once its ladder is at the top", async () => {
  await using pools = await PoolRig.start({ "request-retry": 0 });
  pools.allServe();
  pools.otherwise("codex", failure(503));
  for (let minute = 0; minute < 10; minute++) {
    for (let turn = 0; turn < 6; turn++) {
      await pools.ask();
      await pools.rig.pass(10_000);
    }
  }
  const before = pools.hits("codex");
  for (let turn = 0; turn < 30; turn++) {
    await pools.ask();
    await pools.rig.pass(10_000);
  }
  assert(pools.hits("codex") - before <= 10, `${pools.hits("codex") - before} launches in 5 minutes`);
});
