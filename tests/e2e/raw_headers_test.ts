/** Headers that contradict each other, hide each other or grow without end: what is served, and what goes upstream. */
import { assert, assertEquals } from "@std/assert";
import { json, ok } from "../../lib/demo/simulated_replies.ts";
import { assertNothingLeft, type Case, HEADERS, message, POST, runCases } from "../support/hardening.ts";
import { exchange } from "../support/raw_client.ts";
import { ADMIN_KEY, CLIENT_KEY, startRig } from "../support/rig.ts";

const HOST = "host: localhost";
const KEY = `authorization: Bearer ${CLIENT_KEY}`;
const WRONG = "authorization: Bearer SENT-wrong";

function post(lines: readonly string[]): Case["send"] {
  return (p) => message([POST, ...lines, p.length], p.body);
}

const keys: readonly Case[] = [
  { name: "no key", send: post([HOST]), want: "401" },
  { name: "the right key, then a wrong one", send: post([HOST, KEY, WRONG]), want: "401" },
  { name: "a wrong key, then the right one", send: post([HOST, WRONG, KEY]), want: "401" },
  { name: "the right key twice", send: post([HOST, KEY, KEY]), want: "401" },
  { name: "two in one line", send: post([HOST, `${KEY}, Bearer SENT-wrong`]), want: "401" },
  // `Authorization` is looked at alone where it is there: no second guess, whatever the other header holds.
  {
    name: "a wrong Authorization, the right x-api-key",
    send: post([HOST, WRONG, `x-api-key: ${CLIENT_KEY}`]),
    want: "401",
  },
  {
    name: "an empty Authorization, the right x-api-key",
    send: post([HOST, "authorization:", `x-api-key: ${CLIENT_KEY}`]),
    want: "401",
  },
  {
    name: "the right Authorization, a wrong x-api-key",
    send: post([HOST, KEY, "x-api-key: SENT-wrong"]),
    want: "200",
    hits: 1,
  },
  {
    name: "x-api-key twice",
    send: post([HOST, `x-api-key: ${CLIENT_KEY}`, "x-api-key: SENT-b"]),
    want: "401",
  },
  {
    name: "another scheme",
    send: post([HOST, `authorization: Basic ${btoa(`x:${CLIENT_KEY}`)}`]),
    want: "401",
  },
  {
    name: "in a cookie",
    send: post([HOST, `cookie: authorization=${CLIENT_KEY}; key=${CLIENT_KEY}`]),
    want: "401",
  },
  {
    name: "in the query",
    send: (p) => message([`POST /v1/responses?key=${CLIENT_KEY} HTTP/1.1`, HOST, p.length], p.body),
    want: "401",
  },
  { name: "for proxies", send: post([HOST, `proxy-authorization: Bearer ${CLIENT_KEY}`]), want: "401" },
  { name: "60 KB of key", send: post([HOST, `authorization: Bearer ${"k".repeat(60_000)}`]), want: "401" },
];

const hosts: readonly Case[] = [
  { name: "two of them", send: post([...HEADERS, "host: evil.test"]), want: "400" },
  { name: "the same twice", send: post([...HEADERS, HOST]), want: "400" },
  ...["a@b", "a, b", "a/b", "a?b", "a#b", "a\\b", "a b"].map((host): Case => ({
    name: JSON.stringify(host),
    send: post([`host: ${host}`, KEY]),
    want: "400",
  })),
  { name: "none", send: post([KEY]), want: "400 closed" },
  {
    name: "none, under HTTP/1.0, where that is right",
    send: (p) => message(["POST /v1/responses HTTP/1.0", KEY, p.length], p.body),
    want: "200 last closed",
    hits: 1,
  },
  { name: "an empty one", send: post(["host:", KEY]), want: "200", hits: 1 },
  // On the data routes the key decides, not the name: it is not in any browser.
  { name: "another name", send: post(["host: evil.test", KEY]), want: "200", hits: 1 },
];

const oversized: readonly Case[] = [
  { name: "a header of 60 KB", send: post([...HEADERS, `x-a: ${"y".repeat(60_000)}`]), want: "200", hits: 1 },
  { name: "a header of 100 KB", send: post([...HEADERS, `x-a: ${"y".repeat(100_000)}`]), want: "431 closed" },
  { name: "a header of 2 MB", send: post([...HEADERS, `x-a: ${"y".repeat(2_000_000)}`]), want: "431 closed" },
  { name: "90 headers", send: post([...HEADERS, ...many(90)]), want: "200", hits: 1 },
  { name: "200 headers", send: post([...HEADERS, ...many(200)]), want: "200", hits: 1 },
  { name: "3,000 headers before the key", send: post([HOST, ...many(3_000), KEY]), want: "200", hits: 1 },
  { name: "20,000 headers", send: post([...HEADERS, ...many(20_000)]), want: "431 closed" },
  {
    name: "a URL of 60 KB",
    send: (p) => message([`POST /v1/responses?${"q".repeat(60_000)} HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "200",
    hits: 1,
  },
  {
    name: "a URL of 70 KB",
    send: (p) => message([`POST /v1/responses?${"q".repeat(70_000)} HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "431 closed",
  },
  {
    name: "a path of 60 KB",
    send: (p) => message([`POST /${"q".repeat(60_000)} HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "404",
  },
  {
    name: "a method of 60 KB",
    send: (p) => message([`${"Q".repeat(60_000)} /v1/responses HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "400 closed",
  },
];

function many(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `x-${index}: y`);
}

for (const [name, cases] of Object.entries({ keys, hosts, oversized })) {
  Deno.test(`contradicting and oversized headers: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(ok("A"));
    await runCases(rig, cases);
  });
}

const forwarded: readonly { name: string; lines: readonly string[]; gone: readonly string[] }[] = [
  {
    name: "headers the client calls hop-by-hop",
    lines: ["connection: x-codex-window-id, keep-alive", "x-codex-window-id: w", "keep-alive: timeout=9"],
    gone: ["connection", "x-codex-window-id", "keep-alive"],
  },
  {
    name: "hop-by-hop lists over several lines, in any case",
    lines: ["Connection: X-A", "connection: , X-Codex-Window-Id ,", "x-codex-window-id: w", "x-a: 1"],
    gone: ["connection", "x-codex-window-id", "x-a"],
  },
  {
    name: "hop-by-hop headers nobody lists",
    lines: [
      "te: trailers",
      "trailer: x",
      "proxy-connection: x",
      "proxy-authorization: Basic SENT-p",
      "proxy-authenticate: x",
      "keep-alive: x",
    ],
    gone: ["te", "trailer", "proxy-connection", "proxy-authorization", "proxy-authenticate", "keep-alive"],
  },
  {
    name: "who the client is, and its keys",
    lines: [
      "x-api-key: SENT-own",
      "api-key: SENT-own",
      "x-goog-api-key: SENT-own",
      "cookie: session=SENT-own",
      "x-forwarded-for: 10.1.2.3",
      "x-forwarded-host: evil.test",
      "x-forwarded-authorization: SENT-own",
      "forwarded: for=10.1.2.3",
      "x-real-ip: 10.1.2.3",
      "via: 1.1 SENT-own",
      "origin: https://evil.test",
      "referer: https://evil.test/?SENT-own",
    ],
    gone: [
      "x-api-key",
      "api-key",
      "x-goog-api-key",
      "cookie",
      "x-forwarded-for",
      "x-forwarded-host",
      "x-forwarded-authorization",
      "forwarded",
      "x-real-ip",
      "origin",
      "referer",
    ],
  },
];
for (const { name, lines, gone } of forwarded) {
  Deno.test(`nothing of the client's way and keys goes upstream: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(ok("A"));
    await runCases(rig, [{ name, send: post([...HEADERS, ...lines]), want: "200", hits: 1 }]);
    const { headers } = rig.provider.hits[0]!;
    assertEquals(gone.filter((header) => headers.has(header)), []);
  });
}

const taken = [
  "authorization",
  "host",
  "content-length",
  "content-type",
  "accept-encoding",
  "chatgpt-account-id",
];
Deno.test("a Connection header cannot take away what the account needs", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const lists = [...taken, taken.join(", ")];
  await runCases(
    rig,
    lists.map((list) => ({
      name: list,
      send: post([...HEADERS, `connection: ${list}`]),
      want: "200",
      hits: 1,
    })),
  );
  assertEquals(rig.provider.hits.length, lists.length + 1);
  for (const { headers, body } of rig.provider.hits) {
    assertEquals([
      headers.get("authorization"),
      headers.get("host"),
      headers.get("content-length"),
      headers.get("content-type"),
      headers.get("chatgpt-account-id"),
    ], [
      "Bearer SENT-tok-A",
      `127.0.0.1:${rig.provider.port}`,
      String(body.length),
      "application/json",
      "acct-A",
    ]);
  }
});

Deno.test("contradicting admin keys open nothing, and a client's key opens no management", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const ask = async (...lines: string[]) => {
    const head = message(["GET /v0/management/accounts HTTP/1.1", HOST, ...lines]);
    return (await exchange(rig.app.server.port, head)).answers.map(({ status }) => status);
  };
  const admin = `authorization: Bearer ${ADMIN_KEY}`;
  assertEquals(await ask(admin), [200]);
  assertEquals(await ask(admin, "x-api-key: SENT-wrong"), [200]);
  for (
    const lines of [
      [KEY],
      [KEY, `x-api-key: ${ADMIN_KEY}`],
      [admin, KEY],
      [KEY, admin],
      [admin, admin],
      [`cookie: holdfast=${ADMIN_KEY}`],
    ]
  ) assertEquals(await ask(...lines), [401]);
});

Deno.test("an upstream's cookies, server words and limits of its edge do not reach the client", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const theirs = {
    "set-cookie": "__cf_bm=SENT-cookie; Secure",
    "set-cookie2": "SENT-cookie",
    server: "SENT-server",
    via: "1.1 SENT-via",
    "x-powered-by": "SENT-stack",
    "cf-ray": "SENT-ray",
    "alt-svc": 'h3="SENT-host:443"',
    "www-authenticate": "Bearer SENT-realm",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "SENT-header",
    "strict-transport-security": "max-age=1",
    "report-to": "SENT-report",
    nel: "SENT-nel",
    connection: "x-hop",
    "x-hop": "SENT-hop",
    "proxy-authenticate": "SENT-proxy",
    "x-models-etag": "kept",
  };
  const refusal = { error: { message: "SENT-upstream-words", code: "server_error" } };
  rig.account("A").script(ok("A", theirs), ok("A", theirs), json(refusal, 500, theirs))
    .otherwise(json(refusal, 500, theirs));
  for (const stream of [false, true, false]) {
    const body = JSON.stringify({ model: "m1", input: "x", stream });
    const raw = exchange(
      rig.app.server.port,
      message([POST, ...HEADERS, `content-length: ${body.length}`], body),
      { limitMs: 8_000 },
    );
    const { text, answers } = await rig.until(raw);
    assertEquals(answers.length, 1);
    assertEquals(/SENT-[a-z-]+/.exec(text)?.[0] ?? null, null);
    assert(!/^(set-cookie|server|access-control|cf-|via|alt-svc)/im.test(text), text);
    if (answers[0]!.status === 200) assertEquals(answers[0]!.headers.get("x-models-etag"), "kept");
  }
  assertNothingLeft(rig);
});
