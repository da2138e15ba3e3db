/** The real Codex CLI over WebSockets: through a failover, when a socket dies, and when nobody has quota. */
import { assert, assertEquals } from "@std/assert";
import {
  accept,
  close,
  created,
  delta,
  errorFrame,
  failure,
  itemAdded,
  ok,
  raw,
  receive,
  responsesTurn,
  rst,
} from "../../lib/demo/simulated_replies.ts";
import { type ClientRun, runCodex } from "../support/real_clients.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

const LIMIT_MS = 90_000;

/** One `codex exec` turn. The CLI opens its socket with a request that asks for no output, then asks the question. */
const turn = (rig: Rig): Promise<ClientRun> =>
  rig.until(
    runCodex({
      proxyUrl: rig.app.url,
      key: CLIENT_KEY,
      model: "gpt-5.5",
      folder: rig.folder.path,
      websockets: true,
      streamRetries: 0,
    }, "say pong"),
    LIMIT_MS,
  );

const WARM_UP = [receive(), ...responsesTurn("")];
const limit = (seconds: number) =>
  failure(429, {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    extra: { resets_in_seconds: seconds },
  });
const webSocketHits = (rig: Rig) => rig.provider.hits.filter(({ lane }) => lane === "websocket");

Deno.test("Codex CLI completes a turn over a WebSocket of the second account when the first has no quota", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").websocket.script(limit(7_200));
  rig.account("B").websocket.otherwise(ok("pong from B"));
  const run = await turn(rig);
  assertEquals([run.code, run.stdout.trim()], [0, "pong from B"]);
  assertEquals(webSocketHits(rig).map(({ credential }) => credential), ["SENT-tok-A", "SENT-tok-B"]);
  assertEquals(rig.provider.hits.length, 2, "nothing went over HTTP");
});

Deno.test("Codex CLI completes a turn over a WebSocket after a 401 and its refresh, and after a wait", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.script(failure(401, { code: "token_expired" }));
  rig.provider.account("SENT-ref-A").tokens.script(
    raw(200, JSON.stringify({ access_token: "SENT-tok-A2", expires_in: 3_600 })),
  );
  rig.provider.account("SENT-tok-A2").websocket.script(
    failure(503, { code: "server_is_overloaded" }),
    ok("pong"),
  );
  const run = await turn(rig);
  assertEquals([run.code, run.stdout.trim()], [0, "pong"]);
});

for (
  const { name, end } of [{ name: "is reset", end: rst() }, {
    name: "is closed",
    end: close(1011, "restart"),
  }]
) {
  Deno.test(`Codex CLI says so when its socket ${name} in a turn, which was sent upstream once`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"] });
    rig.account("A").websocket.script(
      accept([...WARM_UP, receive(), created(), itemAdded(), delta("Hel"), end]),
    );
    // What it then sends over HTTP is a request of its own.
    rig.provider.anyone.otherwise(ok("pong over HTTP"));
    const run = await turn(rig);
    assert(/websocket closed by server before response\.completed/.test(run.stderr), run.stderr.slice(-600));
    assertEquals(run.stdout.trim(), "pong over HTTP");
    const [socket, ...more] = webSocketHits(rig);
    assertEquals([socket!.frames.length, more.length], [2, 0], "the warm-up and one turn");
  });
}

Deno.test("Codex CLI shows the reset time when every handshake is refused for quota, and asks nobody again", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  for (const name of ["A", "B"]) rig.account(name).websocket.script(limit(90_000));
  const run = await turn(rig);
  assert(run.code !== 0);
  assert(/usage limit.*try again/is.test(run.stderr), run.stderr.slice(-600));
  assertEquals(rig.provider.hits.length, 2);
});

Deno.test("Codex CLI shows the reset time of an error frame, and the account rests", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const error = {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    plan_type: "plus",
    resets_at: 1_800_090_000,
  };
  rig.account("A").websocket.script(accept([...WARM_UP, receive(), errorFrame(429, { error }), receive()]));
  const run = await turn(rig);
  assert(run.code !== 0);
  assert(/usage limit.*try again/is.test(run.stderr), run.stderr.slice(-600));
  assertEquals((await rig.accountState("A")).state, "cooling");
});

Deno.test("Codex CLI goes over to HTTP where the upstream takes no WebSockets", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").websocket.otherwise(raw(426, ""));
  rig.account("A").otherwise(ok("pong over HTTP"));
  const run = await turn(rig);
  assertEquals([run.code, run.stdout.trim()], [0, "pong over HTTP"]);
  assertEquals((await rig.accountState("A")).state, "healthy");
});
