/**
 * The runtime's server speaks HTTP/2 to whoever begins with its preface, without being asked: no way around anything.
 *
 * What HTTP/2 carries as fields becomes lines of HTTP/1.1 upstream, which is where requests are smuggled.
 */
import { assert, assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { assertNothingLeft } from "../support/hardening.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Ending,
  fields,
  FRAME,
  frame,
  RawHttp2,
  textFrame,
} from "../support/raw_http2.ts";
import { CLIENT_KEY, startRig } from "../support/rig.ts";

type Pairs = readonly (readonly [string, string])[];

const BODY = '{"model":"m1","input":"hi"}';
const KEY: readonly [string, string] = ["authorization", `Bearer ${CLIENT_KEY}`];
const PSEUDO: Pairs = [[":method", "POST"], [":scheme", "http"], [":path", "/v1/responses"], [
  ":authority",
  "x",
]];

function pseudo(name: string, value: string): Pairs {
  return PSEUDO.map((pair) => pair[0] === name ? [name, value] : pair);
}

const cases: readonly { name: string; pairs: Pairs; want: Ending | readonly Ending[]; hits?: number }[] = [
  { name: "a plain request", pairs: [...PSEUDO, KEY], want: "answered", hits: 1 },
  { name: "an exact length", pairs: [...PSEUDO, KEY, ["content-length", "27"]], want: "answered", hits: 1 },
  {
    name: "a length too small",
    pairs: [...PSEUDO, KEY, ["content-length", "3"]],
    want: ["reset", "answered"],
  },
  {
    name: "a length too large",
    pairs: [...PSEUDO, KEY, ["content-length", "99"]],
    want: ["reset", "answered"],
  },
  { name: "chunks", pairs: [...PSEUDO, KEY, ["transfer-encoding", "chunked"]], want: "reset" },
  { name: "a connection header", pairs: [...PSEUDO, KEY, ["connection", "authorization"]], want: "reset" },
  { name: "a line end in a value", pairs: [...PSEUDO, KEY, ["x-a", "b\r\nx-codex-x: 1"]], want: "reset" },
  { name: "a line end in a name", pairs: [...PSEUDO, KEY, ["x-a: b\r\nx-c", "d"]], want: "reset" },
  { name: "a NUL in a value", pairs: [...PSEUDO, KEY, ["x-a", "b\0c"]], want: "reset" },
  { name: "a name in capitals", pairs: [...PSEUDO, KEY, ["X-A", "b"]], want: "reset" },
  { name: "a colon in a name", pairs: [...PSEUDO, KEY, ["x:a", "b"]], want: "reset" },
  { name: "a pseudo header behind others", pairs: [KEY, ...PSEUDO], want: "reset" },
  { name: "two paths", pairs: [...PSEUDO, [":path", "/healthz"], KEY], want: "reset" },
  { name: "no path", pairs: [...PSEUDO.filter(([name]) => name !== ":path"), KEY], want: "reset" },
  {
    name: "a line end in the path",
    pairs: [...pseudo(":path", "/v1/responses HTTP/1.1\r\nx-a: b"), KEY],
    want: "reset",
  },
  {
    name: "a path without a slash, which the runtime sets",
    pairs: [...pseudo(":path", "v1/responses"), KEY],
    want: "answered",
    hits: 1,
  },
  { name: "another path", pairs: [...pseudo(":path", "//v1/responses"), KEY], want: "answered" },
  {
    name: "a method with a line end",
    pairs: [...pseudo(":method", "POST /x HTTP/1.1\r\nx-a:"), KEY],
    want: "reset",
  },
  {
    name: "an authority that reaches into the path",
    pairs: [...pseudo(":authority", "x/v1/responses?"), KEY],
    want: "reset",
  },
  {
    name: "a Host that is not the authority",
    pairs: [...PSEUDO, KEY, ["host", "evil.test"]],
    want: "answered",
  },
  { name: "no key", pairs: PSEUDO, want: "answered" },
];

Deno.test("over HTTP/2 nothing is smuggled either: what breaks a line or contradicts itself goes nowhere", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  for (const { name, pairs, want, hits = 0 } of cases) {
    const before = rig.provider.hits.length;
    using client = await RawHttp2.open(rig.app.server.port);
    // What is refused may be refused before it is sent whole.
    await client.send(frame(FRAME.headers, END_HEADERS, 1, fields(pairs)), textFrame(1, BODY)).catch(
      () => {},
    );
    const ending = await client.ending(1);
    assert([want].flat().includes(ending === "gone" ? "reset" : ending), `${name}: ${ending}`);
    assertEquals([name, rig.provider.hits.length - before], [name, hits]);
  }
  assertNothingLeft(rig);
});

Deno.test("floods of HTTP/2 frames end their connection, or nothing but their own requests", async () => {
  await using rig = await startRig({ accounts: ["A"], checkScript: false });
  rig.account("A").otherwise(ok("A"));
  const { port } = rig.app.server;
  {
    // Headers without end: the runtime bounds them.
    using client = await RawHttp2.open(port);
    const filler = fields(
      Array.from({ length: 100 }, (_, index) => [`x-${index}`, "y".repeat(100)] as const),
    );
    await client.send(frame(FRAME.headers, 0, 1, fields(PSEUDO))).catch(() => {});
    for (let count = 0; count < 200; count++) {
      await client.send(frame(FRAME.continuation, 0, 1, filler)).catch(() => {});
    }
    assertEquals(await client.ending(1), "gone");
  }
  {
    // Requests taken back at once (CVE-2023-44487).
    using client = await RawHttp2.open(port);
    const cancel = new Uint8Array([0, 0, 0, 8]);
    for (let stream = 1; stream < 1_000; stream += 2) {
      await client.send(
        frame(FRAME.headers, END_HEADERS | END_STREAM, stream, fields([...pseudo(":method", "GET"), KEY])),
        frame(FRAME.reset, 0, stream, cancel),
      ).catch(() => {});
    }
  }
  const answer = await rig.responses();
  assertEquals(answer.status, 200);
  await answer.body?.cancel();
  await rig.eventually(async () => (await rig.accountState("A"))["in_flight"] === 0);
  assertEquals((await rig.accountState("A"))["state"], "healthy");
});
