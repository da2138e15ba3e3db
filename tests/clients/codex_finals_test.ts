/** The real Codex CLI through repair, waits and each final answer, and on a provider of another protocol. */
import { assert, assertEquals } from "@std/assert";
import { failure, json, ok, tokens } from "../../lib/demo/simulated_replies.ts";
import { runCodex } from "../support/real_clients.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

function codex(rig: Rig, model = "gpt-5.5"): ReturnType<typeof runCodex> {
  return rig.until(
    runCodex({ proxyUrl: rig.app.url, key: CLIENT_KEY, model, folder: rig.folder.path }, "say pong"),
    100_000,
  );
}

Deno.test("Codex CLI answers through a 401 and its refresh", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(failure(401, { code: "token_expired", message: "expired" }));
  rig.provider.account("SENT-ref-A").tokens.script(
    tokens({ access_token: "SENT-tok-A2", refresh_token: "SENT-ref2-A", expires_in: 3600 }),
  );
  rig.provider.account("SENT-tok-A2").otherwise(ok("pong after repair"));
  const run = await codex(rig);
  assertEquals([run.code, run.stdout.trim()], [0, "pong after repair"], run.stderr);
});

Deno.test("Codex CLI answers through a near deadline that is waited out, and through a 503", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(
    failure(503, { code: "server_is_overloaded" }),
    failure(429, { type: "usage_limit_reached", headers: { "retry-after": "5" } }),
  ).otherwise(ok("pong after waits"));
  const run = await codex(rig);
  assertEquals([run.code, run.stdout.trim()], [0, "pong after waits"], run.stderr);
  assertEquals(rig.hits("A"), 3);
});

Deno.test("Codex CLI reports each final answer", async (t) => {
  const cases = [
    {
      name: "404 model_not_found",
      reply: json(
        { detail: "The 'gpt-5.5' model is not supported when using Codex with a ChatGPT account." },
        400,
      ),
      says: /404|No account can serve/,
    },
    {
      name: "503 auth_unavailable",
      reply: json({ detail: { code: "account_deactivated" } }, 401),
      says: /503|No account is available/,
    },
    {
      name: "502 upstream_unavailable",
      reply: failure(500, { message: "boom" }),
      says: /502|upstream is unavailable/i,
    },
    {
      name: "the upstream's own 400",
      reply: failure(400, { code: "invalid_value", message: "Bad image in turn" }),
      says: /Bad image in turn/,
    },
  ];
  for (const { name, reply, says } of cases) {
    await t.step(name, async () => {
      await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
      rig.account("A").otherwise(reply);
      rig.provider.account("SENT-ref-A").tokens.otherwise(failure(400, { code: "invalid_grant" }));
      const run = await codex(rig);
      assert(run.code !== 0);
      assert(says.test(run.stderr), run.stderr.slice(-1_500));
    });
  }
});

Deno.test("Codex CLI completes a turn on an anthropic provider", async () => {
  await using rig = await startRig({ accounts: [] });
  await rig.stop();
  rig.reconfigure({
    providers: [{
      id: "claude",
      kind: "anthropic",
      "base-url": rig.provider.url,
      accounts: [{ id: "c1", "api-key": "SENT-tok-C1" }],
    }],
  });
  await rig.start();
  rig.provider.account("SENT-tok-C1").otherwise(ok("pong from claude"));
  const run = await codex(rig, "claude/claude-opus-4-8");
  assertEquals([run.code, run.stdout.trim()], [0, "pong from claude"], run.stderr);
});
