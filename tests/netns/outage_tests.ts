/**
 * Outages for real: the program as a process, providers behind networks that break, and the machine's own clock.
 *
 * Started by `deno task test:netns`. A minute is a minute here, so each story waits as long as its rule says, and
 * the stories run at the same time.
 */
import { assert, assertEquals } from "@std/assert";
import { ProcessRig } from "../support/process_rig.ts";
import { FarProvider } from "./far_provider.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const ADMIN = { headers: { authorization: "Bearer SENT-key-admin-1" } };

interface Attempt {
  readonly provider: string;
  readonly probe: string;
  readonly started_at: string;
}

interface ProviderPage {
  readonly providers: readonly {
    readonly id: string;
    readonly cooldown: { readonly until: string; readonly reason: string } | null;
    readonly next_retry_at: string | null;
  }[];
  readonly network_pause: { readonly until: string; readonly providers: readonly string[] } | null;
}

/** Codex and claude in one pool, each behind a network of its own. */
class OutageRig implements AsyncDisposable {
  private constructor(
    readonly rig: ProcessRig,
    readonly codex: FarProvider,
    readonly claude: FarProvider,
    readonly parts: AsyncDisposableStack,
  ) {}

  /** @param index  of the first of its two networks. */
  static async start(index: number): Promise<OutageRig> {
    await using parts = new AsyncDisposableStack();
    const codex = parts.use(await FarProvider.start(index, ["SENT-tok-A", "SENT-tok-B"]));
    const claude = parts.use(await FarProvider.start(index + 1, ["SENT-tok-C1", "SENT-tok-C2"]));
    const rig = parts.use(await ProcessRig.create(["A", "B"]));
    rig.writeConfig({
      "codex-base-url": `${codex.url}/backend-api/codex`,
      "chatgpt-base-url": `${codex.url}/backend-api`,
      "codex-refresh-token-url": `${codex.url}/oauth/token`,
      "request-retry": 0,
      timeouts: { "connect-seconds": 1 },
      providers: [{
        id: "claude",
        kind: "anthropic",
        "base-url": claude.url,
        // Nobody is asked for a list, so that no connection is older than the trouble.
        models: ["claude-opus-4-8"],
        accounts: [{ id: "c1", "api-key": "SENT-tok-C1" }, { id: "c2", "api-key": "SENT-tok-C2" }],
      }],
      pools: [{
        name: "frontier",
        members: [
          { provider: "codex", model: "gpt-5.5" },
          { provider: "claude", model: "claude-opus-4-8" },
        ],
      }],
    });
    await rig.start();
    return new OutageRig(rig, codex, claude, parts.move());
  }

  /** Calls with this mark that reached any provider. */
  calls(mark: string): number {
    return this.codex.calls(mark) + this.claude.calls(mark);
  }

  /**
   * The text of the answer, which names the account; or status and code. Marked, because what a broken network holds
   * of a request that was given up long ago still arrives when it is mended.
   */
  async ask(session: string | null, mark: string): Promise<string> {
    const answer = await this.rig.call({ model: "frontier", input: `mark-${mark}` }, {
      headers: {
        authorization: "Bearer SENT-key-client-1",
        "content-type": "application/json",
        ...(session === null ? {} : { "session-id": session }),
      },
    });
    const body = await answer.json();
    return answer.status === 200 ? body.output.at(-1).content[0].text : `${answer.status} ${body.error.code}`;
  }

  providers(): Promise<ProviderPage> {
    return this.#admin("providers");
  }

  /** Launches since then, oldest first. */
  async attempts(sinceMs: number): Promise<Attempt[]> {
    const { requests } = await this.#admin("requests?limit=1000") as unknown as {
      requests: readonly { readonly attempts: readonly Attempt[] }[];
    };
    return requests.flatMap(({ attempts }) => attempts)
      .filter(({ started_at }) => Date.parse(started_at) >= sinceMs)
      .sort((a, b) => Date.parse(a.started_at) - Date.parse(b.started_at));
  }

  async #admin(path: string): Promise<ProviderPage> {
    return await (await fetch(`${this.rig.url}/v0/management/${path}`, ADMIN)).json();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.parts.disposeAsync();
  }
}

async function ourOwnNetwork(): Promise<void> {
  await using far = await OutageRig.start(1);
  const homes = new Map<string, string>();
  for (const session of ["s1", "s2", "s3", "s4"]) homes.set(session, await far.ask(session, "before"));
  assertEquals(new Set(homes.values()).size, 4, "the sessions should live on four accounts");
  const sessions = [...homes.keys()];

  await far.codex.break("unplug");
  await far.claude.break("swallow");
  const pause = await untilPaused(far, sessions);
  assertEquals([...pause.providers].sort(), ["claude", "codex"]);

  // The road is open again at once; the pause is kept all the same, and nobody launches.
  await far.codex.mend();
  await far.claude.mend();
  const untilMs = Date.parse(pause.until);
  const pausedAtMs = Date.now();
  while (Date.now() < untilMs - SECOND_MS) {
    for (const session of sessions) {
      assertEquals(await far.ask(session, "paused"), "502 upstream_unavailable");
    }
    await sleep(2 * SECOND_MS);
  }
  assertEquals(
    [far.calls("paused"), (await far.attempts(pausedAtMs)).length],
    [0, 0],
    "launched while paused",
  );

  // One request finds out. Providers that take it and do not answer yet keep it waiting, and the others out.
  await sleep(untilMs - Date.now() + 100);
  far.codex.freeze();
  far.claude.freeze();
  let refused = 0;
  const crowd = Array.from({ length: 12 }, async (_, at) => {
    const told = await far.ask(sessions[at % 4]!, "crowd");
    if (told === "502 upstream_unavailable") refused++;
    return told;
  });
  await until(() => refused === 11, 10 * SECOND_MS, "eleven of twelve refused");
  await sleep(2 * SECOND_MS);
  far.codex.wake();
  far.claude.wake();
  const served = (await Promise.all(crowd)).filter((told) => told !== "502 upstream_unavailable");
  assertEquals(served.length, 1);
  const probes = await far.attempts(untilMs);
  assertEquals(probes.map(({ probe }) => probe), ["network"]);
  assertEquals(far.calls("crowd"), 1, "more than one request reached a provider");

  // Service resumes, and every session is where it was.
  assertEquals((await far.providers()).network_pause, null);
  for (const [session, home] of homes) assertEquals(await far.ask(session, "after"), home);
}

/** Asks once a second until the pause opens; every answer on the way is a failure. */
async function untilPaused(
  far: OutageRig,
  sessions: readonly string[],
): Promise<NonNullable<ProviderPage["network_pause"]>> {
  const endMs = Date.now() + 2 * MINUTE_MS;
  for (let turn = 0; Date.now() < endMs; turn++) {
    assertEquals(await far.ask(sessions[turn % sessions.length]!, "outage"), "502 upstream_unavailable");
    const { network_pause: pause } = await far.providers();
    if (pause !== null) return pause;
    await sleep(SECOND_MS);
  }
  throw new Error("No pause opened within two minutes");
}

async function deadForGood(): Promise<void> {
  await using far = await OutageRig.start(11);
  await far.codex.break("swallow");
  const startMs = Date.now();
  const ask = async () => {
    const told = await far.ask(null, "steady");
    assert(told.startsWith("SENT-tok-C"), `a client was told ${told}`);
    await sleep(200);
  };
  let topMs: number | null = null;
  while (topMs === null) {
    assert(Date.now() - startMs < 2 * MINUTE_MS, "the ladder does not reach its top");
    await ask();
    const { cooldown } = (await far.providers()).providers.find(({ id }) => id === "codex")!;
    if (cooldown !== null && Date.parse(cooldown.until) - Date.now() > 40 * SECOND_MS) topMs = Date.now();
  }
  while (Date.now() < topMs + 70 * SECOND_MS) await ask();
  const dead = (await far.attempts(topMs)).filter(({ provider }) => provider === "codex");
  assert(dead.length >= 1, "the dead provider was never tested again");
  assert(dead.length <= 2, `${dead.length} launches on the dead provider in 70 s`);
  assert(dead.every(({ probe }) => probe === "provider"), "a launch on the dead provider was no probe");
  assertEquals(far.codex.calls("steady"), 0);
}

Deno.test("outages for real", async (t) => {
  const options = { sanitizeOps: false, sanitizeResources: false, sanitizeExit: false };
  await Promise.all([
    t.step({
      name:
        "two providers out of reach at once pause everything; one request finds out, and no session moved",
      fn: ourOwnNetwork,
      ...options,
    }),
    t.step({
      name: "a provider dead for good costs at most two launches a minute, and no client notices",
      fn: deadForGood,
      ...options,
    }),
  ]);
});

async function until(holds: () => boolean, limitMs: number, what: string): Promise<void> {
  const endMs = Date.now() + limitMs;
  while (!holds()) {
    assert(Date.now() < endMs, `Waited ${limitMs} ms in vain for: ${what}`);
    await sleep(10);
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
