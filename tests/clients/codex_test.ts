/** The real Codex CLI through the proxy: it answers through a failover, and says when quota comes back. */
import { assert, assertEquals } from "@std/assert";
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import { runCodex } from "../support/real_clients.ts";
import { CLIENT_KEY, startRig } from "../support/rig.ts";

Deno.test("Codex CLI gets its answer from the second account when the first is out of quota", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(
    failure(429, {
      type: "usage_limit_reached",
      message: "The usage limit has been reached",
      extra: { resets_in_seconds: 7200 },
    }),
  );
  rig.account("B").otherwise(ok("pong from B"));
  const run = await rig.until(
    runCodex(
      { proxyUrl: rig.app.url, key: CLIENT_KEY, model: "gpt-5.5", folder: rig.folder.path },
      "say pong",
    ),
    60_000,
  );
  assertEquals([run.code, run.stdout.trim()], [0, "pong from B"]);
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("Codex CLI shows the reset time when every account is out of quota, and stops at once", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) {
    rig.account(name).script(
      failure(429, {
        type: "usage_limit_reached",
        message: "The usage limit has been reached",
        extra: { resets_in_seconds: 90_000 },
      }),
    );
  }
  const run = await rig.until(
    runCodex(
      { proxyUrl: rig.app.url, key: CLIENT_KEY, model: "gpt-5.5", folder: rig.folder.path },
      "say pong",
    ),
    60_000,
  );
  assert(run.code !== 0);
  assert(/usage limit.*(try again|again at|resets)/is.test(run.stderr), run.stderr.slice(-800));
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});
