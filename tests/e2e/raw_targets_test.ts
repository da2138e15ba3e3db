/** Paths, targets and methods that mean one thing to one reader and another to the next: 404 or 400, nothing sent. */
import { assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { type Case, HEADERS, message, runCases } from "../support/hardening.ts";
import { exchange } from "../support/raw_client.ts";
import { ADMIN_KEY, CLIENT_KEY, startRig } from "../support/rig.ts";

function target(path: string, want: string, hits = 0): Case {
  return {
    name: JSON.stringify(path),
    send: (p) => message([`POST ${path} HTTP/1.1`, ...HEADERS, p.length], p.body),
    want,
    hits,
  };
}

const paths: readonly Case[] = [
  target("/v1/responses", "200", 1),
  target("/v1/responses?x=%2e%2e/&y=//", "200", 1),
  ...[
    "//v1//responses",
    "//v1/responses",
    "/v1//responses",
    "/v1/responses/",
    "/v1/responses//",
    "/v1/./responses",
    "/./v1/responses",
    "/v1/../v1/responses",
    "/v1/x/../responses",
    "/../v1/responses",
    "/v1/%2e%2e/v1/responses",
    "/v1/%2e/responses",
    "/v1/%2E%2E/v1/responses",
    "/v1/.%2e/v1/responses",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1%2fresponses",
    "/v1%2Fresponses",
    "/%2fv1/responses",
    "/v1/%72esponses",
    "/v1/%2572esponses",
    "/v1/responses%00",
    "/v1/responses%20",
    "/v1/responses%0d%0ax-a:%20b",
    "/v1/responses%3fx=y",
    "/v1/responses%23",
    "/v1/responses;x=1",
    "/v1/responses#x",
    "/v1/nothing#/../responses",
    "/v1\\responses",
    "\\v1\\responses",
    "/v1%5cresponses",
    "/v1/..\\responses",
    "/V1/responses",
    "/v1/Responses",
    "/v1/responses.",
    "/v1/responses*",
    "//evil.test/v1/responses",
    "///evil.test/v1/responses",
    "/@evil.test/v1/responses",
    "/http://evil.test/v1/responses",
    "/files/../uploaded",
    "/files/a%2fb/uploaded",
    "/files/%2e%2e/uploaded",
    "/files/a/b/uploaded",
    "/files/a?/uploaded",
    "/files//uploaded",
  ].map((path) => target(path, path.startsWith("\\") ? "400 closed" : "404")),
];

const absolute: readonly Case[] = [
  // The form itself every server must understand; the host in it must be the one of the Host header.
  target("http://localhost/v1/responses", "200", 1),
  target("http://LOCALHOST:80/v1/responses", "200", 1),
  ...[
    "http://evil.test/v1/responses",
    "https://evil.test/v1/responses",
    "http://localhost.evil.test/v1/responses",
    "http://localhost@evil.test/v1/responses",
    "http://localhost:80@evil.test/v1/responses",
    "http://user:SENT-password@localhost/v1/responses",
    "http://localhost:8080/v1/responses",
    "http://127.0.0.1/v1/responses",
    "http://169.254.169.254/latest/meta-data",
    "ftp://localhost/v1/responses",
    "gopher://evil.test/v1/responses",
    "http://evil.test",
    "http://evil.test?/v1/responses",
    "file://localhost/etc/passwd",
  ].map((path) => target(path, "400")),
  target("http:///v1/responses", "400"),
  target("file:///etc/passwd", "400"),
];

const methods: readonly Case[] = [
  ...[
    "TRACE",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "GET",
    "PROPFIND",
  ].map((
    method,
  ): Case => ({
    name: `${method} /v1/responses`,
    send: (p) => message([`${method} /v1/responses HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "404",
  })),
  ...["post", "Post", "FROB", "TRACK"].map((method): Case => ({
    name: `${method}, which is no method`,
    send: (p) => message([`${method} /v1/responses HTTP/1.1`, ...HEADERS, p.length], p.body),
    want: "400 closed",
  })),
  ...["TRACE / HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT evil.test:443 HTTP/1.1"].map((line): Case => ({
    name: line,
    send: () => message([line, ...HEADERS]),
    want: line.startsWith("CONNECT") ? "closed" : line.startsWith("OPTIONS") ? "400" : "404",
  })),
  {
    name: "a method by override",
    send: (p) =>
      message(["GET /v1/responses HTTP/1.1", ...HEADERS, "x-http-method-override: POST", p.length], p.body),
    want: "404",
  },
  {
    name: "an upgrade of a POST",
    send: (p) =>
      message(
        ["POST /v1/responses HTTP/1.1", ...HEADERS, "connection: upgrade", "upgrade: websocket", p.length],
        p.body,
      ),
    want: "400 last closed",
  },
];

for (const [name, cases] of Object.entries({ paths, absolute, methods })) {
  Deno.test(`only what is exactly a route is served: ${name}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    rig.account("A").otherwise(ok("A"));
    await runCases(rig, cases);
  });
}

Deno.test("TRACE shows nobody the headers that came with a request", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const lines = [
    "TRACE / HTTP/1.1",
    "host: x",
    `authorization: Bearer ${CLIENT_KEY}`,
    "cookie: a=SENT-cookie",
  ];
  const { text } = await exchange(rig.app.server.port, message(lines));
  assertEquals([text.includes("SENT-"), text.includes("cookie")], [false, false]);
});

Deno.test("management and status open by their own path alone, and only under their own name", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const ask = async (first: string, host: string, ...lines: string[]) => {
    const head = message([`${first} HTTP/1.1`, `host: ${host}`, ...lines]);
    const { answers, text } = await exchange(rig.app.server.port, head);
    assertEquals(/^(?:access-control|set-cookie)/im.test(text), false, text);
    return answers.map(({ status }) => status).join();
  };
  const admin = `authorization: Bearer ${ADMIN_KEY}`;
  for (
    const path of [
      "/v0//management/accounts",
      "//v0/management/accounts",
      "/v0/%6danagement/accounts",
      "/v0/management/../management/accounts",
      "/V0/management/accounts",
      "/v1/../v0/management/accounts",
      "/v0/management/accounts%00",
      "/status%2fevents",
      "/status/../v0/management/accounts",
      "//status",
    ]
  ) assertEquals([path, await ask(`GET ${path}`, "localhost", admin)], [path, "404"]);

  // DNS rebinding: a name of theirs that leads here. Without the key there is nothing to read, and the page is shut.
  for (const host of ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:8317", "evil.test:80"]) {
    assertEquals([host, await ask("GET /status", host)], [host, "403"]);
    assertEquals([host, await ask("GET /status/events", host)], [host, "403"]);
    for (const call of ["GET /v0/management/accounts", "POST /v0/management/users", "GET /metrics"]) {
      assertEquals([host, call, await ask(call, host, "cookie: holdfast_status=x")], [host, call, "401"]);
    }
  }
  assertEquals(await ask("GET http://localhost/status", "evil.test"), "400");
  assertEquals(await ask("GET http://evil.test/status", "localhost"), "400");
  for (const origin of ["http://evil.test", "null", "http://localhost.evil.test"]) {
    assertEquals([origin, await ask("POST /status/login", "localhost", `origin: ${origin}`)], [
      origin,
      "403",
    ]);
    assertEquals([origin, await ask("POST /v0/management/users", "localhost", `origin: ${origin}`)], [
      origin,
      "401",
    ]);
  }
});
