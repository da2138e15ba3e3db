/** The real Claude Code through the proxy: on an anthropic provider through a 529, on z.ai, and on Codex by translation. */
import { assert, assertEquals } from "@std/assert";
import { completed, event, failure, ok, type Step, stream } from "../../lib/demo/simulated_replies.ts";
import { runClaude } from "../support/real_clients.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";
import { codexToolCall } from "../support/tool_call_steps.ts";

async function startKeyRig(): Promise<Rig> {
  const rig = await startRig({ accounts: ["A"], checkScript: false });
  const url = rig.provider.url;
  await rig.stop();
  rig.reconfigure({
    providers: [
      {
        id: "claude",
        kind: "anthropic",
        "base-url": url,
        accounts: [{ id: "c1", "api-key": "SENT-tok-C1" }, { id: "c2", "api-key": "SENT-tok-C2" }],
      },
      {
        id: "zai",
        kind: "zai",
        "base-url": url,
        plan: "coding",
        accounts: [{ id: "z1", "api-key": "SENT-tok-Z1" }],
      },
    ],
  });
  await rig.start();
  return rig;
}

/** A turn that asks for a shell command, as Anthropic streams it. */
function toolTurn(command: string): Step[] {
  const input = JSON.stringify({ command, description: "say it" });
  return [
    event("message_start", {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "sim",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 1 },
      },
    }),
    event("content_block_start", {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "toolu_1", name: "Bash", input: {} },
    }),
    event("content_block_delta", {
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: input },
    }),
    event("content_block_stop", { type: "content_block_stop", index: 0 }),
    event("message_delta", {
      type: "message_delta",
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: 9 },
    }),
    event("message_stop", { type: "message_stop" }),
  ];
}

function claude(rig: Rig, model: string): ReturnType<typeof runClaude> {
  return rig.until(
    runClaude({
      proxyUrl: rig.app.url,
      key: CLIENT_KEY,
      model,
      folder: rig.folder.path,
      args: ["--allowedTools", "Bash"],
    }, "say pong"),
    100_000,
  );
}

function sentToolResult(rig: Rig): boolean {
  return rig.provider.hits.some((hit) =>
    hit.lane === "answers" && hit.text().includes("marker-4711") &&
    /tool_result|function_call_output/.test(hit.text())
  );
}

Deno.test("Claude Code completes a turn with a tool call on an anthropic provider, through a 529", async () => {
  await using rig = await startKeyRig();
  for (const token of ["SENT-tok-C1", "SENT-tok-C2"]) {
    rig.provider.account(token).script(
      failure(529, { type: "overloaded_error", message: "Overloaded" }),
      stream(toolTurn("echo marker-4711")),
    ).otherwise(ok("pong from claude"));
  }
  const run = await claude(rig, "claude/claude-opus-4-8");
  assertEquals([run.code, run.stdout.trim()], [0, "pong from claude"], run.stderr + run.stdout);
  assert(sentToolResult(rig), "no tool result came back");
});

Deno.test("Claude Code completes a turn with a tool call on a z.ai account", async () => {
  await using rig = await startKeyRig();
  rig.provider.account("SENT-tok-Z1").script(stream(toolTurn("echo marker-4711"))).otherwise(
    ok("pong from zai"),
  );
  const run = await claude(rig, "zai/glm-5.2");
  assertEquals([run.code, run.stdout.trim()], [0, "pong from zai"], run.stderr + run.stdout);
  assert(sentToolResult(rig), "no tool result came back");
});

Deno.test("Claude Code completes a turn with a tool call on a Codex account, by translation", async () => {
  await using rig = await startKeyRig();
  rig.account("A").script(stream([...codexToolCall("echo marker-4711"), completed("resp_tool")])).otherwise(
    ok("pong from codex"),
  );
  const run = await claude(rig, "codex/gpt-5.5");
  assertEquals([run.code, run.stdout.trim()], [0, "pong from codex"], run.stderr + run.stdout);
  assert(sentToolResult(rig), "no tool result came back");
});

Deno.test("Claude Code is told when every account is limited for long, and gives up at once", async () => {
  await using rig = await startKeyRig();
  for (const token of ["SENT-tok-C1", "SENT-tok-C2"]) {
    rig.provider.account(token).otherwise(
      failure(429, {
        type: "rate_limit_error",
        message: "limited",
        headers: {
          "retry-after": "7200",
          "anthropic-ratelimit-unified-status": "rejected",
          "anthropic-ratelimit-unified-5h-status": "rejected",
        },
      }),
    );
  }
  const run = await claude(rig, "claude/claude-opus-4-8");
  assert(run.code !== 0);
  const asked = rig.provider.hits.filter((hit) => hit.lane === "answers").length;
  assert(asked <= 4, `${asked} calls`);
});
