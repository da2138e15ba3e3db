/**
 * A pool of codex, claude and z.ai serves the real Codex CLI, Claude Code and the `openai` package through everything
 * that can happen upstream. Each row of the table printed at the end is a test; its three clients run side by side.
 */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  failure,
  gate,
  itemAdded,
  itemDone,
  json,
  ok,
  reset,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { ClientTable } from "../support/client_table.ts";
import { POOL_CLIENTS, type Seen } from "../support/pool_clients.ts";
import { type AccountName, ACCOUNTS, PoolRig } from "../support/pool_rig.ts";

const CLIENT_LIMIT_MS = 100_000;
const CODEX: readonly AccountName[] = ["A", "B"];
const HOURS_2_S = 7_200;

/** One client's way through a story: `ask` runs it once and notes what it saw. */
interface Story {
  readonly pools: PoolRig;
  ask(model?: string): Promise<Seen>;
  /** The same, on a proxy whose time runs as fast as the client's. */
  askSlowly(model?: string): Promise<Seen>;
}

interface Scenario {
  readonly name: string;
  play(story: Story): Promise<void>;
}

const usageLimit = failure(429, {
  type: "usage_limit_reached",
  message: "The usage limit has been reached",
  extra: { resets_in_seconds: HOURS_2_S },
});

const scenarios: readonly Scenario[] = [
  {
    name: "first transient: one account of codex answers 503 once",
    async play({ pools, ask }) {
      pools.account("A").script(failure(503, { code: "server_is_overloaded" }));
      pools.account("B").script(ok("pong from codex"));
      pools.account("A").otherwise(ok("pong from codex"));
      requireAnswer(await ask(), "pong from codex");
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 0, zai: 0 });
      await requireClosed(pools);
    },
  },
  {
    name: "second transient: both accounts of codex answer 503; a minute later they are well",
    async play({ pools, ask }) {
      for (const name of CODEX) {
        pools.account(name).script(failure(503, { code: "server_is_overloaded" }))
          .otherwise(ok("pong from codex"));
      }
      requireAnswer(await ask(), "pong from claude");
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 1, zai: 0 });
      assertEquals((await pools.provider("codex")).cooldown?.reason, "overloaded");
      await pools.rig.pass(60_000);
      requireAnswer(await ask(), "pong from codex");
      await requireClosed(pools);
    },
  },
  {
    name: "multi-hour reset: codex for two hours; then every provider",
    async play({ pools, ask }) {
      pools.otherwise(CODEX, usageLimit);
      requireAnswer(await ask(), "pong from claude");
      requireAnswer(await ask(), "pong from claude");
      assertEquals([pools.asked("A"), pools.asked("B")], [1, 1], "asked before its reset");
      pools.otherwise(
        ["claude"],
        failure(429, { type: "rate_limit_error", message: "limited", headers: { "retry-after": "10800" } }),
      );
      pools.otherwise(
        ["zai"],
        failure(429, { code: "1308", message: "Usage limit reached", headers: { "retry-after": "14400" } }),
      );
      const before = pools.askedAll;
      const seen = await ask();
      assert(seen.code !== 0 && /limit|quota/i.test(seen.text), seen.text);
      assertEquals(pools.askedAll, { ...before, claude: before.claude + 1, zai: before.zai + 1 });
    },
  },
  {
    name: "expiry of that reset: the client is the one probe, others are served meanwhile",
    async play({ pools, ask }) {
      pools.otherwise(CODEX, usageLimit);
      requireAnswer(await ask(), "pong from claude");
      await pools.rig.pass(HOURS_2_S * 1_000);
      const opened = Promise.withResolvers<void>();
      const answer = [itemAdded(), delta("pong from codex"), itemDone("pong from codex"), completed()];
      for (const name of CODEX) {
        pools.account(name).script(stream([created(), gate(opened.promise), ...answer]))
          .otherwise(ok("pong from codex"));
      }
      const probing = ask();
      await pools.rig.eventually(() => pools.asked("A") + pools.asked("B") === 3);
      for (let turn = 0; turn < 3; turn++) assertEquals(await pools.ask(), "pong from claude");
      assertEquals(pools.asked("A") + pools.asked("B"), 3, "a second probe went out");
      opened.resolve();
      requireAnswer(await probing, "pong from codex");
      await requireClosed(pools);
    },
  },
  {
    name: "auth death: codex refuses both logins and their refresh tokens",
    async play({ pools, ask }) {
      pools.otherwise(CODEX, failure(401, { code: "token_invalidated", message: "logged out" }));
      for (const name of CODEX) {
        pools.rig.provider.account(`SENT-ref-${name}`).tokens.otherwise(
          json({ error: "invalid_grant" }, 400),
        );
      }
      requireAnswer(await ask(), "pong from claude");
      assertEquals((await pools.provider("codex")).circuit?.reason, "auth");
      requireAnswer(await ask(), "pong from claude");
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 2, zai: 0 });
    },
  },
  {
    name: "no credits: neither at codex nor at claude",
    async play({ pools, ask }) {
      pools.otherwise(CODEX, failure(429, { type: "usage_not_included", message: "not in this plan" }));
      pools.otherwise(
        ["claude"],
        failure(400, {
          type: "invalid_request_error",
          message: "Your credit balance is too low to access the Anthropic API.",
        }),
      );
      requireAnswer(await ask(), "pong from zai");
      assertEquals((await pools.provider("codex")).circuit?.reason, "credits");
      assertEquals((await pools.provider("claude")).circuit?.reason, "credits");
      requireAnswer(await ask(), "pong from zai");
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 1, zai: 2 });
    },
  },
  {
    name: "model gone: codex no longer serves it",
    async play({ pools, ask }) {
      pools.otherwise(
        CODEX,
        json(
          { detail: "The 'gpt-5.5' model is not supported when using Codex with a ChatGPT account." },
          400,
        ),
      );
      requireAnswer(await ask(), "pong from claude");
      requireAnswer(await ask(), "pong from claude");
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 2, zai: 0 });
      pools.otherwise(CODEX, ok("pong from codex"));
      assertEquals(await pools.ask("codex/gpt-5.4"), "pong from codex", "another model is out as well");
    },
  },
  {
    name: "true outage: nobody can be reached; a minute later all can",
    async play({ pools, ask, askSlowly }) {
      pools.otherwise(ACCOUNTS, reset());
      const seen = await askSlowly();
      assert(seen.code !== 0 && /502|upstream is unavailable/i.test(seen.text), seen.text);
      assertEquals([...(await pools.networkPause())!.providers].sort(), ["claude", "codex"]);
      assertEquals(pools.asked("zai"), 0, "launched although two providers were out of reach");
      const before = total(pools);
      assert(before <= 3, `${before} calls in an outage`);
      for (const name of ACCOUNTS) pools.otherwise([name], ok(`pong from ${name}`));
      await pools.rig.pass(61_000);
      const back = await ask();
      assert(back.code === 0 && back.text.startsWith("pong from"), back.text);
      const launched = pools.rig.app.decisions.latest(100).flatMap(({ attempts }) => attempts);
      assertEquals(launched.filter(({ probe }) => probe === "network").length, 1);
      assertEquals(await pools.networkPause(), null);
    },
  },
  {
    name: "outage that providers report: z.ai and codex tell of a network error of theirs",
    async play({ pools, ask }) {
      pools.account("zai").script(failure(500, { code: "1234", message: "Network error, error id 42" }));
      for (const name of CODEX) {
        pools.account(name).script(failure(500, { code: "server_error", message: "network error" }));
      }
      requireAnswer(await ask("glm-first"), "pong from claude");
      assertEquals(await pools.networkPause(), null);
      assertEquals(pools.askedAll, { A: 1, B: 1, claude: 1, zai: 1 });
    },
  },
];

function requireAnswer(seen: Seen, text: string): void {
  assertEquals([seen.code, seen.text], [0, text]);
}

/** Codex neither rests nor waits to be tested. */
async function requireClosed(pools: PoolRig): Promise<void> {
  const { circuit, cooldown } = await pools.provider("codex");
  assertEquals([circuit, cooldown], [null, null]);
}

function total(pools: PoolRig): number {
  return ACCOUNTS.reduce((sum, name) => sum + pools.asked(name), 0);
}

const table = new ClientTable(POOL_CLIENTS);

for (const scenario of scenarios) {
  Deno.test(`a pool through ${scenario.name}`, async (t) => {
    await Promise.all(POOL_CLIENTS.map((client) =>
      t.step({
        name: client.name,
        // Side by side, one step sees what another has open.
        sanitizeOps: false,
        sanitizeResources: false,
        sanitizeExit: false,
        fn: async () => {
          await using pools = await PoolRig.start();
          const seen: Seen[] = [];
          const note = async (asked: Promise<Seen>) => {
            seen.push(await asked);
            table.note(scenario.name, client, seen);
            return seen.at(-1)!;
          };
          await scenario.play({
            pools,
            ask: (model = "frontier") => note(pools.rig.until(client.ask(pools, model), CLIENT_LIMIT_MS)),
            askSlowly: (model = "frontier") => note(pools.atRealPace(client.ask(pools, model))),
          });
        },
      })
    ));
  });
}

Deno.test.afterAll(() => table.publish());
