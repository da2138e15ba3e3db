/** Recovery off is recovery not there (P40): with `attempts: 0` every byte, call and record is as without the keys. */
import { assertEquals } from "@std/assert";
import type { DecisionRecord } from "../../lib/core/decision.ts";
import {
  chatDelta,
  chatRole,
  completed,
  created,
  delta,
  error,
  event,
  failed,
  failure,
  fin,
  hangUp,
  incomplete,
  inProgress,
  itemDone,
  ok,
  raw,
  type Reply,
  reset,
  rst,
  stream,
  text,
  usage,
} from "../../lib/demo/simulated_replies.ts";
import { type Rig, startRig } from "../support/rig.ts";

const TURN = [created("resp_1"), inProgress("resp_1"), delta("é北🚀"), itemDone("x"), completed("resp_1")];
const HALF = [created("resp_h"), delta("half")];

/** One exchange each: what accounts A and B say in turn. */
const CORPUS: readonly { name: string; path?: string; json?: boolean; a: Reply[]; b?: Reply[] }[] = [
  { name: "a whole stream", a: [stream(TURN, { "openai-model": "m", "x-codex-turn-state": "ts" })] },
  { name: "a long stream", a: [stream([created(), ...many(300), completed()])] },
  {
    name: "a stream with comments and odd line ends",
    a: [stream([text(": hi\r\n\r\n"), ...TURN, text("\n")])],
  },
  {
    name: "padding and an event nobody knows",
    a: [
      stream([created(), text("data: null\n\n"), event("zz", { type: "zz_new" }), delta("a"), completed()]),
    ],
  },
  { name: "an incomplete answer", a: [stream([...HALF, incomplete()])] },
  { name: "a failure before output", a: [stream([created(), failed("server_error")])], b: [ok("B")] },
  { name: "a failure after output", a: [stream([...HALF, failed("server_error")])] },
  { name: "a bare error after output", a: [stream([...HALF, error("server_error")])] },
  { name: "a request fault", a: [stream([created(), failed("context_length_exceeded")])] },
  { name: "a reset before output", a: [stream([created(), rst()])], b: [ok("B")] },
  { name: "a reset after output", a: [stream([...HALF, rst()])] },
  { name: "a close after output", a: [stream([...HALF, fin()])] },
  { name: "an end without terminal, before output", a: [stream([created()])] },
  { name: "an end without terminal, after output", a: [stream(HALF)] },
  { name: "an empty stream", a: [stream([])], b: [ok("B")] },
  { name: "broken data", a: [stream([created(), text("data: {oops\n\n")])], b: [ok("B")] },
  { name: "503", a: [failure(503)], b: [ok("B")] },
  { name: "500 twice", a: [failure(500)], b: [failure(500)] },
  { name: "400", a: [failure(400, { code: "invalid_value" })] },
  { name: "429 with a time", a: [failure(429, { headers: { "retry-after": "3600" } })], b: [ok("B")] },
  { name: "a dead connection", a: [hangUp()], b: [ok("B")] },
  { name: "a broken head", a: [reset("HTTP/1.1 2")], b: [ok("B")] },
  { name: "a page", a: [raw(200, "<html></html>", { "content-type": "text/html" })], b: [ok("B")] },
  { name: "JSON", json: true, a: [stream(TURN)] },
  { name: "JSON of half a stream", json: true, a: [stream(HALF)] },
  { name: "JSON, a failure", json: true, a: [stream([...HALF, failed("server_error")])], b: [ok("B")] },
  { name: "chat", path: "/v1/chat/completions", a: [stream(TURN)] },
  {
    name: "chat, a failure after output",
    path: "/v1/chat/completions",
    a: [stream([...HALF, failed("x_y")])],
  },
  { name: "chat JSON", path: "/v1/chat/completions", json: true, a: [stream(TURN)] },
  { name: "messages", path: "/v1/messages", a: [stream(TURN)] },
  { name: "messages, a reset", path: "/v1/messages", a: [stream([...HALF, rst()])] },
  { name: "compact", path: "/v1/responses/compact", json: true, a: [failure(502)], b: [ok("B")] },
  { name: "a wrong dialect", a: [stream([chatRole(), chatDelta("x")])] },
];

function many(count: number) {
  return Array.from({ length: count }, (_, index) => delta(`#${index} `));
}

/** What must not differ: everything but ids and the moments of a clock that runs with real sockets. */
interface Seen {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  readonly calls: readonly string[];
  readonly record: unknown;
  readonly health: unknown;
}

async function play(rig: Rig, entry: (typeof CORPUS)[number]): Promise<Seen> {
  rig.account("A").script(...entry.a);
  rig.account("B").script(...entry.b ?? []);
  const before = rig.provider.hits.length;
  const path = entry.path ?? "/v1/responses";
  const fields = path === "/v1/messages" ? { max_tokens: 9 } : {};
  const said = path.startsWith("/v1/responses")
    ? { input: "hi" }
    : { messages: [{ role: "user", content: "hi" }] };
  const answer = await rig.call(path, {
    model: "m1",
    ...fields,
    ...said,
    ...(entry.json === true ? {} : { stream: true }),
  });
  const body = await rig.until(answer.text());
  await rig.eventually(() => rig.app.decisions.latest(1).length === 1);
  return {
    status: answer.status,
    headers: [...answer.headers].filter(([name]) => name !== "date").map((pair) => plain(pair.join(": ")))
      .sort(),
    body: plain(body),
    calls: rig.provider.hits.slice(before).map((hit) =>
      `${hit.method} ${hit.path} ${hit.credential} ${plain(hit.text())}`
    ),
    record: recordOf(await rig.lastDecision()),
    health: (await (await rig.admin("accounts")).json()).accounts.map((account: Record<string, unknown>) => [
      account["state"],
      account["reason"],
      account["persisted"],
    ]),
  };
}

/** Without ids, which are chance, and moments. */
function plain(content: string): string {
  return content.replaceAll(/(req|resp|msg|chatcmpl|fc|rs|call)_[A-Za-z0-9_-]{8,}/g, "$1_x")
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/"next_retry_at":"[^"]+"/g, '"next_retry_at":"x"');
}

function recordOf(record: DecisionRecord): unknown {
  const attempts = record.attempts.map(({ account, cause, probe, outcome, status, row, round }) => ({
    account,
    cause,
    probe,
    outcome,
    status,
    row,
    round,
  }));
  const { route, status, code, rule, rounds, notes } = record;
  return { route, status, code, rule, rounds, notes, attempts, waits: record.waits.length };
}

async function playAll(recovery: Record<string, number> | null): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (const entry of CORPUS) {
    await using rig = await startRig({
      accounts: ["A", "B"],
      config: { "request-retry": 0, ...(recovery === null ? {} : { streaming: { recovery } }) },
    });
    rig.account("A").usage.otherwise(usage());
    seen.push(await play(rig, entry));
  }
  return seen;
}

Deno.test("attempts 0 is byte-identical to a configuration without the keys: answers, calls, records, health", async (t) => {
  const without = await playAll(null);
  const off = await playAll({
    attempts: 0,
    "max-buffer-bytes": 1,
    "max-retry-window-seconds": 1,
    "max-concurrent": 1,
    "initial-backoff-milliseconds": 0,
    "max-backoff-milliseconds": 0,
  });
  for (const [index, { name }] of CORPUS.entries()) {
    await t.step(name, () => assertEquals(off[index], without[index]));
  }
});
