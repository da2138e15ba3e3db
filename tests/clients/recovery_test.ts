/** Real clients with recovery on: two attempts are lost behind their backs, and they show one clean answer. */
import { assert, assertEquals } from "@std/assert";
import {
  completed,
  created,
  delta,
  event,
  failed,
  failure,
  itemAdded,
  messageStart,
  ok,
  type Reply,
  rst,
  type Step,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { runClaude, runCodex } from "../support/real_clients.ts";
import { decisionOf, isIdle, launchesOf, recoveryNotes, recoveryOn } from "../support/recovery_rig.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";
import { codexToolCall } from "../support/tool_call_steps.ts";

const CLIENT_LIMIT_MS = 100_000;

/** Most of an answer as Codex streams it, then whatever ends it. */
function lostResponse(end: Step): Reply {
  return stream([created("resp_lost"), itemAdded(), delta("half an answer "), delta("lost"), end]);
}

/** The same as Anthropic streams it. */
function lostMessage(end: Step): Reply {
  const named = (type: string, fields: Record<string, unknown>) => event(type, { type, ...fields });
  const text = (content: string) =>
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text: content } });
  return stream([
    messageStart(),
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    text("half an answer "),
    text("lost"),
    end,
  ]);
}

async function startKindsRig(): Promise<Rig> {
  const rig = await startRig({ accounts: ["A", "B"], checkScript: false });
  const url = rig.provider.url;
  await rig.stop();
  rig.reconfigure(recoveryOn({}, {
    providers: [{
      id: "claude",
      kind: "anthropic",
      "base-url": url,
      accounts: [{ id: "c1", "api-key": "SENT-tok-C1" }],
    }],
  }));
  await rig.start();
  return rig;
}

/** Bodies of the turns asked of this account; a client's own small calls beside them have no marker. */
function sends(rig: Rig, token: string, marker: string): string[] {
  return rig.provider.hitsOf(token, "answers").map((hit) => hit.text()).filter((body) =>
    body.includes(marker)
  );
}

const PROMPT = "say pong-4711";

Deno.test("Codex CLI finishes a turn through two losing attempts and shows one clean answer", async () => {
  await using rig = await startRig({ accounts: ["A", "B"], config: recoveryOn() });
  rig.account("A").script(
    lostResponse(failed("server_error")),
    lostResponse(rst()),
    ok("one clean answer"),
  );
  const run = await rig.until(
    runCodex({
      proxyUrl: rig.app.url,
      key: CLIENT_KEY,
      model: "gpt-5.5",
      // It would mend a broken stream by itself, and hide that we did not.
      streamRetries: 0,
      folder: rig.folder.path,
    }, PROMPT),
    CLIENT_LIMIT_MS,
  );
  assertEquals([run.code, run.stdout.trim()], [0, "one clean answer"], run.stderr.slice(-1_000));
  assert(!/reconnect|stream (?:error|disconnected)|lost/i.test(run.stderr), run.stderr.slice(-1_000));
  assertEquals([sends(rig, "SENT-tok-A", PROMPT).length, rig.hits("A"), rig.hits("B")], [3, 3, 0]);
  const decision = await decisionOf(rig);
  assertEquals(launchesOf(decision), ["A first", "A recovery", "A recovery"]);
  assertEquals(recoveryNotes(decision), ["recovered"]);
  assert(isIdle(rig));
});

const claudeCases = [
  {
    name: "an anthropic provider",
    model: "claude/claude-opus-4-8",
    token: "SENT-tok-C1",
    lost: [
      lostMessage(
        event("error", { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
      ),
      lostMessage(rst()),
    ],
  },
  {
    name: "a Codex account, by translation",
    model: "codex/gpt-5.5",
    token: "SENT-tok-A",
    lost: [lostResponse(failed("server_error")), lostResponse(rst())],
  },
] as const;
for (const { name, model, token, lost } of claudeCases) {
  Deno.test(`Claude Code finishes a turn through two losing attempts and shows one clean answer: ${name}`, async () => {
    await using rig = await startKindsRig();
    // The attempts of one turn come one after the other; what else the client asks for is answered at once.
    const turns: Reply[] = [...lost];
    rig.provider.account(token).otherwise({
      kind: "dynamic",
      make: (question) =>
        isTurn(question.json) ? turns.shift() ?? ok("one clean answer") : ok("beside the turn"),
    });
    // Recovery stays on the account: this one must not be asked at all.
    rig.account("B").otherwise(failure(500));
    const run = await rig.until(
      runClaude({ proxyUrl: rig.app.url, key: CLIENT_KEY, model, folder: rig.folder.path }, PROMPT),
      CLIENT_LIMIT_MS,
    );
    assertEquals([run.code, run.stdout.trim()], [0, "one clean answer"], run.stderr + run.stdout);
    assertEquals(sends(rig, token, PROMPT).length, 3);
    assertEquals(rig.hits("B"), 0);
    const turn = rig.app.decisions.latest(20).find((record) => record.attempts.length > 1)!;
    assertEquals(launchesOf(turn).map((launch) => launch.split(" ").at(-1)), [
      "first",
      "recovery",
      "recovery",
    ]);
    assertEquals(recoveryNotes(turn), ["recovered"]);
    await rig.eventually(() => isIdle(rig));
  });
}

function isTurn(json: Record<string, unknown> | null): boolean {
  return JSON.stringify(json).includes(PROMPT);
}

Deno.test("Claude Code finishes a turn with a tool call when every answer of it is lost twice", async () => {
  await using rig = await startKindsRig();
  const ask = codexToolCall("echo marker-4711");
  const turns: Reply[] = [
    stream([...ask, failed("server_error")]),
    stream([...ask.slice(0, 2), rst()]),
    stream([...ask, completed("resp_tool")]),
    lostResponse(rst()),
    lostResponse(failed("server_error")),
  ];
  rig.account("A").otherwise({
    kind: "dynamic",
    make: (question) => isTurn(question.json) ? turns.shift() ?? ok("one clean answer") : ok("beside"),
  });
  rig.account("B").otherwise(failure(500));
  const run = await rig.until(
    runClaude({
      proxyUrl: rig.app.url,
      key: CLIENT_KEY,
      model: "codex/gpt-5.5",
      folder: rig.folder.path,
      args: ["--allowedTools", "Bash"],
    }, PROMPT),
    CLIENT_LIMIT_MS,
  );
  assertEquals([run.code, run.stdout.trim()], [0, "one clean answer"], run.stderr + run.stdout);
  // Had a lost call reached the client, the command would have run, and been told of, more than once.
  const told = sends(rig, "SENT-tok-A", "function_call_output");
  assertEquals(told.length, 3);
  assertEquals(told.at(-1)!.split('"function_call_output"').length - 1, 1);
});
