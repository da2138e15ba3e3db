/**
 * A proxy with something to see: accounts in every state, a failover, a wait, an outage, an hour of traffic.
 */
import { failure, ok } from "../../lib/demo/simulated_replies.ts";
import type { StatusRig } from "./status_rig.ts";
import { startStatusRig } from "./status_rig.ts";

const HOUR_MS = 3_600_000;
const NAMES = ["anna", "bert", "cleo", "dora", "emil"];

export async function startScene(): Promise<StatusRig> {
  const scene = await startStatusRig({
    accounts: NAMES,
    credential: { email: "shared@example.test" },
    checkScript: false,
    config: {
      providers: [
        {
          id: "claude",
          kind: "anthropic",
          "base-url": "http://127.0.0.1:9",
          accounts: [{ id: "work", "api-key": "SENT-key-claude" }, {
            id: "team",
            "api-key": "SENT-key-team",
          }],
        },
        {
          id: "zai",
          kind: "zai",
          plan: "coding",
          "base-url": "http://127.0.0.1:9",
          accounts: [{ id: "main", "api-key": "SENT-key-zai" }],
        },
      ],
    },
  });
  const { rig } = scene;
  for (const name of NAMES) {
    rig.writeAccount(name, { email: `${name}@example.test` });
    rig.account(name).otherwise(ok(`Hello from ${name}.`));
  }
  await rig.eventually(async () => (await rig.accountState("emil"))["email"] === "e***@example.test");
  fillHour(scene);
  fillQuota(scene);
  rig.account("anna").script(failure(429, {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    extra: { resets_in_seconds: 7_260 },
  }));
  rig.account("bert").script(failure(503, { code: "server_is_overloaded", message: "overloaded" }));
  rig.account("cleo").script(ok("hi"));
  for (const model of ["gpt-5.5", "gpt-5.5", "gpt-5.4-mini"]) await (await rig.responses({ model })).text();
  rig.app.pool.setEnabled(scene.id("emil"), false, rig.clock.now());
  return scene;
}

function fillQuota(scene: StatusRig): void {
  const nowMs = scene.rig.clock.now();
  const window = (name: string, usedPercent: number, inMs: number) => ({
    name,
    usedPercent,
    resetAtMs: nowMs + inMs,
    modelFamily: null,
  });
  scene.observe(scene.id("anna"), {
    plan: "plus",
    windows: [window("5h", 96, 2.1 * HOUR_MS), window("7d", 61, 70 * HOUR_MS)],
  });
  scene.observe(scene.id("bert"), {
    plan: "pro",
    windows: [window("5h", 34, 3.4 * HOUR_MS), window("7d", 82, 31 * HOUR_MS)],
  });
  scene.observe(scene.id("cleo"), {
    plan: "plus",
    source: "response_headers",
    windows: [window("5h", 12, 4.8 * HOUR_MS), window("7d", 28, 122 * HOUR_MS)],
  });
  scene.observe(scene.id("dora"), {
    plan: "plus",
    windows: [window("5h", 100, 1.2 * HOUR_MS), window("7d", 74, 55 * HOUR_MS)],
    limitReached: true,
  });
  scene.observe("claude:work", {
    windows: [window("5h", 47, 2.6 * HOUR_MS), window("7d", 19, 100 * HOUR_MS)],
  });
}

/** An hour with a rise, a dip and one bad stretch; the same every time. */
function fillHour(scene: StatusRig): void {
  const nowMs = scene.rig.clock.now();
  let number = 0;
  for (let minute = 59; minute >= 1; minute--) {
    const count = Math.round(14 + 9 * Math.sin(minute / 7) + 5 * Math.sin(minute / 2.3));
    const bad = minute > 21 && minute < 27;
    for (let nth = 0; nth < count; nth++) {
      const endedAtMs = nowMs - minute * 60_000 + nth * 900;
      const failed = bad && nth % 3 === 0;
      const waited = !failed && (nth + minute) % 17 === 0;
      const moved = !failed && !waited && (nth + minute) % 11 === 0;
      const account = scene.id(["bert", "cleo", "cleo", "anna"][nth % 4]!);
      const startMs = endedAtMs - 1_400 - (nth % 5) * 310 - (waited ? 6_200 : 0);
      const sent = (id: number, who: string, fromMs: number, toMs: number, outcome: string) => ({
        id: `r${number}:${id}`,
        account: who,
        provider: "codex",
        model: "gpt-5.5",
        round: waited && id > 1 ? 1 : 0,
        cause: id === 1 ? "first" : waited ? "round" : "failover",
        probe: "none",
        startedAtMs: fromMs,
        endedAtMs: toMs,
        outcome,
        status: outcome === "success" ? 200 : 503,
        row: 1,
      });
      // It failed once, and went on elsewhere or, after a wait, in the next round.
      const breakMs = waited ? 6_200 : 0;
      const failure = sent(1, scene.id("anna"), startMs, startMs + 240, "transient:overloaded");
      scene.record({
        requestId: `req_scene${String(number++).padStart(15, "0")}`,
        atMs: startMs,
        endedAtMs,
        model: nth % 3 === 0 ? "gpt-5.4-mini" : "gpt-5.5",
        rounds: waited ? 2 : 1,
        status: failed ? 502 : 200,
        code: failed ? "upstream_unavailable" : null,
        rule: failed ? "transient" : null,
        waits: waited
          ? [{ fromMs: startMs + 240, untilMs: startMs + 240 + breakMs, reason: "cooldown" }]
          : [],
        attempts: moved || waited
          ? [failure, sent(2, account, startMs + 240 + breakMs, endedAtMs, "success")]
          : [sent(1, account, startMs, endedAtMs, failed ? "transient:overloaded" : "success")],
      });
    }
  }
}
