/** Somebody presses Ctrl-C: the real clients go, and nothing goes on for them. */
import { assertEquals } from "@std/assert";
import {
  created,
  delta,
  failure,
  hold,
  itemAdded,
  ok,
  type Reply,
  silence,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { type ClientRun, runClaude, runCodex } from "../support/real_clients.ts";
import { recoveryOn } from "../support/recovery_rig.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const CLIENT_LIMIT_MS = 100_000;
/** At once, on a busy machine. */
const NOTICED_LIMIT_MS = 5_000;
const MARKER = "say pong-4711";

type Run = (rig: Rig, interruptWhen: Promise<unknown>) => Promise<ClientRun>;
const CLIENTS: Readonly<Record<string, Run>> = {
  "Codex CLI": (rig, interruptWhen) =>
    runCodex({ ...clientOf(rig, "gpt-5.5"), interruptWhen, streamRetries: 0 }, MARKER),
  "Claude Code": (rig, interruptWhen) =>
    runClaude({ ...clientOf(rig, "codex/gpt-5.5"), interruptWhen, retries: 0 }, MARKER),
};

function clientOf(rig: Rig, model: string) {
  return { proxyUrl: rig.app.url, key: CLIENT_KEY, folder: rig.folder.path, model };
}

interface Moment {
  readonly name: string;
  readonly reply: Reply;
  readonly config?: Record<string, unknown>;
  /** An upstream call is under way, which has to end with the client. */
  readonly held: boolean;
  /** True once the turn is there. */
  readonly isThere: (rig: Rig) => boolean;
}

const asked = (rig: Rig) =>
  rig.provider.hits.filter((hit) => hit.lane === "answers" && hit.text().includes(MARKER));
const HALF: Reply = stream([created(), itemAdded(), delta("half an answer"), hold()]);

const MOMENTS: readonly Moment[] = [
  {
    name: "while the upstream says nothing",
    reply: silence(),
    held: true,
    isThere: (rig) => asked(rig).length > 0,
  },
  {
    name: "while its answer is withheld",
    reply: HALF,
    config: recoveryOn(),
    held: true,
    isThere: (rig) => rig.app.recoverySlots.held > 0 && asked(rig).length > 0,
  },
  {
    name: "while a cooldown is waited out",
    reply: failure(429, { headers: { "retry-after": "20" } }),
    config: { "request-retry": 3, "max-retry-interval": 30 },
    held: false,
    isThere: (rig) =>
      asked(rig).length === 2 &&
      rig.app.pool.describeAccounts(rig.clock.now()).every(({ state }) => state === "cooling"),
  },
  { name: "while it is answered", reply: HALF, held: true, isThere: (rig) => asked(rig).length > 0 },
];

for (const [client, run] of Object.entries(CLIENTS)) {
  for (const { name, reply, config, held, isThere } of MOMENTS) {
    Deno.test(`Ctrl-C of ${client} ${name} ends its turn at once, and nothing more is sent`, async () => {
      await using rig = await startRig({
        accounts: ["A", "B"],
        checkScript: false,
        ...(config === undefined ? {} : { config }),
      });
      for (const account of ["A", "B"]) rig.account(account).otherwise(turnOnly(reply));
      const there = Promise.withResolvers<void>();
      const running = run(rig, there.promise);
      // Time passes until the turn is there, and stands still while its client goes.
      await rig.until(
        (async () => {
          while (!isThere(rig)) await new Promise((resolve) => setTimeout(resolve, 5));
        })(),
        CLIENT_LIMIT_MS,
      );
      const before = statesOf(rig);
      const sends = asked(rig).length;
      there.resolve();
      // Claude Code ends with 0 then, Codex does not.
      await running;
      await eventually(() => rig.app.server.openCount === 0, NOTICED_LIMIT_MS);
      if (held) await eventually(() => asked(rig).at(-1)!.leftAtMs !== null, NOTICED_LIMIT_MS);
      assertEquals(statesOf(rig), before, "nobody is cooled for it");
      await rig.clock.advance(120_000);
      assertEquals(asked(rig).length, sends);
      const states = rig.app.pool.describeAccounts(rig.clock.now());
      assertEquals(states.map(({ state, inFlight }) => [state, inFlight]), [["healthy", 0], ["healthy", 0]]);
    });
  }
}

/** Small calls beside the turn are answered. */
function turnOnly(reply: Reply): Reply {
  return {
    kind: "dynamic",
    make: ({ json }) => JSON.stringify(json).includes(MARKER) ? reply : ok("beside"),
  };
}

function statesOf(rig: Rig): string[] {
  return rig.app.pool.describeAccounts(rig.clock.now()).map(({ account, state }) => `${account.id} ${state}`);
}
