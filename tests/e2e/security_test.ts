/** What must never get out, and who must never get in: field cases (h), through the whole proxy. */
import { assert, assertEquals } from "@std/assert";
import {
  created,
  delta,
  failed,
  failure,
  hangUp,
  json,
  ok,
  raw,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { ADMIN_KEY, CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";
import { refusedRigSocket } from "../support/rig_sockets.ts";

const SECRET = /SENT-[A-Za-z0-9_-]+/g;

/** Everything of the proxy that somebody may read, with the secrets in it that have no business there. */
async function leaks(rig: Rig, told: readonly string[]): Promise<Record<string, string[]>> {
  const read = async (path: string) => await (await rig.admin(path)).text();
  const places: Record<string, string> = {
    "client answers": told.join("\n"),
    log: await rig.readLog(),
    metrics:
      await (await fetch(`${rig.app.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } }))
        .text(),
  };
  for (
    const call of [
      "accounts",
      "providers",
      "requests?limit=1000",
      "usage",
      "usage/events",
      "users",
      "why?model=m1",
    ]
  ) {
    places[call] = await read(call);
    assert(!places[call]!.includes('"management_error"'), `${call}: ${places[call]}`);
  }
  const found: Record<string, string[]> = {};
  for (const [place, text] of Object.entries(places)) {
    const secrets = text.match(SECRET) ?? [];
    if (secrets.length > 0) found[place] = [...new Set(secrets)];
  }
  return found;
}

/** The database's files: digests of keys are in it, keys and tokens are not. */
function leaksInDatabase(rig: Rig): string[] {
  return ["holdfast.db", "holdfast.db-wal"].flatMap((name) => {
    try {
      return new TextDecoder("latin1").decode(Deno.readFileSync(rig.folder.file(`state/${name}`))).match(
        SECRET,
      ) ?? [];
    } catch {
      return [];
    }
  });
}

Deno.test("B133 whatever upstreams echo and whatever breaks, no secret is anywhere but in its file", async () => {
  await using rig = await startRig({
    accounts: ["A", "B", "C", "D"],
    config: { "request-retry": 0, "codex-user-agent": "" },
    checkScript: false,
  });
  const told: string[] = [];
  const tell = async (answer: Response) =>
    void told.push(`${answer.status} ${[...answer.headers].join()} ${await answer.text()}`);
  // The upstream echoes the token, the token endpoint echoes the refresh token.
  rig.account("A").otherwise(
    failure(401, { code: "SENT-code-A", type: "SENT-type-A", message: "Bad header: Bearer SENT-tok-A" }),
  );
  rig.provider.account("SENT-ref-A").tokens.otherwise(
    json({ error: "invalid_grant", error_description: "Refresh token SENT-ref-A not found" }, 400),
  );
  rig.account("B").otherwise(failure(429, {
    code: "SENT-code-B",
    message: "Key SENT-tok-B used up",
    headers: { "retry-after": "60", "x-debug": "Bearer SENT-tok-B", "set-cookie": "session=SENT-cookie" },
  }));
  rig.account("C").otherwise(failure(500, { message: "at https://SENT-host/?key=SENT-tok-C" }));
  rig.account("D").otherwise(hangUp());
  for (let turn = 0; turn < 3; turn++) {
    await tell(await rig.responses({ stream: turn === 1 }));
    // Every block is over by then: the next request reaches the upstream again.
    await rig.pass(300_000);
  }
  await tell(
    await rig.call("/v1/chat/completions", {
      model: "m1",
      messages: [{ role: "user", content: "SENT-prompt" }],
    }),
  );
  await rig.pass(300_000);
  await tell(
    await rig.call("/v1/messages", {
      model: "m1",
      max_tokens: 5,
      messages: [{ role: "user", content: "SENT-prompt" }],
    }),
  );
  await rig.pass(300_000);
  // Our own refusals: bodies that break, keys that are wrong, sessions that are named.
  await tell(await rig.call("/v1/responses", null, { body: '{"model":"m1","input":"SENT-prompt' }));
  await tell(
    await rig.call("/v1/responses", null, { body: "SENT-bytes", headers: { "content-encoding": "gzip" } }),
  );
  await tell(await rig.responses({}, { headers: { authorization: "Bearer SENT-wrong-key" } }));
  await tell(
    await rig.responses({}, {
      headers: { "session-id": "SENT-session", "idempotency-key": "SENT-idempotency" },
    }),
  );
  await tell(await rig.call("/v1/unknown?key=SENT-query", {}));
  await tell(await rig.admin("users", { method: "POST", body: '{"name":1,"api_key":"SENT-own-key"}' }));
  await tell(await rig.admin("requests/SENT-id"));
  for (const name of ["A", "B", "C", "D"]) {
    rig.account(name).websocket.otherwise(failure(401, { message: `Bearer SENT-tok-${name}` }));
  }
  await rig.pass(300_000);
  const { status, headers, body } = await refusedRigSocket(rig);
  told.push(`${status} ${[...headers].join()} ${body}`);
  assert(rig.provider.hits.length > 20, `${rig.provider.hits.length} calls reached an upstream`);
  assertEquals(await leaks(rig, told), {});
  await rig.stop();
  assertEquals([leaksInDatabase(rig), (await rig.readLog()).match(SECRET) ?? []], [[], []]);
  assert((await rig.readLog()).includes("codex:acct-A:user-A"), "account ids are there instead");
});

const ECHO = "POST /responses authorization: Bearer SENT-tok-A x-api-key: SENT-tok-A";

for (const streams of [false, true]) {
  for (
    const [name, reply] of [
      ["plain text", raw(400, ECHO, { "content-type": "text/plain" })],
      [
        "an error object",
        failure(400, { code: "invalid_prompt", type: "invalid_request_error", message: ECHO }),
      ],
      ["an error object of 422", failure(422, { code: "SENT-tok-A", message: ECHO })],
      ["an event", stream([created(), failed("invalid_prompt", ECHO)])],
      ["an event behind output", stream([created(), delta("Hel"), failed("invalid_prompt", ECHO)])],
    ] as const
  ) {
    for (const path of ["/v1/responses", "/v1/messages", "/v1/chat/completions"]) {
      Deno.test(`the key an upstream sends back in ${name} does not reach the client: ${path}, ${streams ? "streamed" : "whole"}`, async () => {
        await using rig = await startRig({
          accounts: ["A"],
          config: { "request-retry": 0 },
          checkScript: false,
        });
        rig.account("A").otherwise(reply);
        const messages = [{ role: "user", content: "hi" }];
        const body = path === "/v1/responses" ? { input: "hi" } : { messages, max_tokens: 9 };
        const answer = await rig.call(path, { model: "m1", stream: streams, ...body });
        const told = `${[...answer.headers].join()} ${await answer.text()}`;
        assert(rig.hits("A") > 0);
        assertEquals(told.match(SECRET), null, told);
        assertEquals(await leaks(rig, []), {});
      });
    }
  }
}

Deno.test("B133 an egress proxy's password and an in-stream failure's words stay inside", async () => {
  await using rig = await startRig({
    accounts: ["A", "B"],
    config: { "request-retry": 0, "proxy-url": "http://me:SENT-password@127.0.0.1:1" },
    checkScript: false,
  });
  const told = [await (await rig.responses()).text(), await (await rig.responses({ stream: true })).text()];
  assertEquals(await leaks(rig, told), {});
  await rig.app.reload({ ...rig.config(), proxyUrl: "direct" });
  for (const name of ["A", "B"]) {
    rig.account(name).otherwise(stream([created(), failed("server_error", `Bearer SENT-tok-${name}`)]));
  }
  told.push(await (await rig.responses({ stream: true })).text());
  assertEquals(await leaks(rig, told), {});
});

/** One HTTP request as it is on the wire, with headers no client library would send. */
async function rawRequest(
  port: number,
  lines: readonly string[],
  hostname = "127.0.0.1",
): Promise<{ status: number; text: string }> {
  using connection = await Deno.connect({ hostname, port });
  const bytes = lines.map((line) => `${line}\r\n`).join("") + "\r\n";
  await connection.write(Uint8Array.from(bytes, (character) => character.charCodeAt(0)));
  let text = "";
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(8_192);
  for (;;) {
    const count = await connection.read(buffer);
    if (count === null) break;
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
    if (/\r\n\r\n/.test(text) && /"\}*$|\}$/.test(text)) break;
  }
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text };
}

/** An address of this machine that is not loopback, where it has one. */
function ownAddress(): string {
  return Deno.networkInterfaces().find(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  )
    ?.address ?? "127.0.0.1";
}

const forged: readonly { name: string; headers: readonly string[] }[] = [
  { name: "X-Forwarded-For", headers: ["X-Forwarded-For: 127.0.0.1"] },
  { name: "X-Forwarded-For twice", headers: ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-For: ::1"] },
  { name: "X-Real-IP", headers: ["X-Real-IP: ::1"] },
  { name: "Forwarded", headers: ["Forwarded: for=127.0.0.1;proto=https"] },
  { name: "empty ones", headers: ["X-Forwarded-For: ", "X-Real-IP:"] },
  {
    name: "a product's own",
    headers: ["CF-Connecting-IP: 127.0.0.1", "True-Client-IP: 127.0.0.1", "X-Holdfast-Real-IP: 127.0.0.1"],
  },
  {
    name: "an identity (B145)",
    headers: ["X-Forwarded-User: admin", "Remote-User: admin", "X-Auth-Request-Email: a@b.c"],
  },
  {
    name: "an identity in another case, twice (B145)",
    headers: ["x-forwarded-user: user1", "X-FORWARDED-USER: admin"],
  },
];
Deno.test("B136 B145 no header makes a caller local or somebody: 401 each time, from any address", async (t) => {
  await using rig = await startRig({ accounts: ["A"], config: { host: "0.0.0.0" } });
  for (const host of ["localhost", "127.0.0.1:8317", "evil.test"]) {
    for (const { name, headers } of forged) {
      await t.step(`${name}, Host: ${host}`, async () => {
        const calls = [
          "POST /v1/chat/completions",
          "GET /v0/management/accounts",
          "GET /v0/user/api-key",
          "GET /metrics",
          "GET /v1/models",
        ];
        for (const call of calls) {
          const lines = [
            `${call} HTTP/1.1`,
            `Host: ${host}`,
            ...headers,
            "Content-Length: 0",
            "Connection: close",
          ];
          const answer = await rawRequest(rig.app.server.port, lines, ownAddress());
          assertEquals([call, answer.status], [call, 401]);
        }
      });
    }
  }
  assertEquals(rig.provider.hits.length, 0);
});

const origins = ["http://evil.test", "null", "http://127.0.0.1:3000", "https://localhost"];
Deno.test("B138 no page of another origin may read anything: no answer carries an allow-origin", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(
    ok("A", { "access-control-allow-origin": "*", "access-control-allow-credentials": "true" }),
  );
  const paths = [
    "/v0/management/accounts",
    "/v0/management/users",
    "/v0/user/api-key",
    "/metrics",
    "/status",
    "/v1/responses",
    "/v1/models",
    "/",
    "/readyz",
  ];
  const corsOf = ({ headers }: Response) =>
    [...headers.keys()].filter((name) => name.startsWith("access-control-"));
  for (const origin of origins) {
    await t.step(origin, async () => {
      for (const path of paths) {
        const preflight = await fetch(`${rig.app.url}${path}`, {
          method: "OPTIONS",
          headers: {
            origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, x-stainless-os",
          },
        });
        assertEquals([path, preflight.status < 500, corsOf(preflight)], [path, true, []]);
        await preflight.body?.cancel();
        const plain = await fetch(`${rig.app.url}${path}`, {
          headers: { origin, authorization: `Bearer ${ADMIN_KEY}` },
        });
        assertEquals([path, corsOf(plain)], [path, []]);
        await plain.body?.cancel();
      }
      const served = await rig.responses({}, { headers: { origin } });
      assertEquals([served.status, corsOf(served)], [200, []]);
      await served.body?.cancel();
    });
  }
  assertEquals(rig.hits("A"), origins.length, "a preflight reaches no upstream");
  const { users } = await (await rig.admin("users")).json();
  assertEquals(users, []);
});

const names = [
  "../x",
  "..%2f..%2fetc%2fpasswd",
  "%252e%252e/x",
  "%2e%2e",
  "%2Fetc%2Fpasswd",
  "C:%5Cx",
  "%5C%5Csrv%5Cx",
  "a%00.json",
  "%20",
  ".",
  "con",
  "%",
  "%ff%fe",
  "x".repeat(300),
];
Deno.test("B140 no name in a management path is a path: refused, nothing read or written, no path in the answer", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  Deno.symlinkSync("/etc/hosts", `${rig.authDir}/hosts.json`);
  const before = rig.folder.names("accounts");
  for (const name of [...names, "hosts.json", "hosts", "A.json"]) {
    await t.step(name.slice(0, 30), async () => {
      for (
        const [method, path] of [
          ["GET", `accounts/${name}`],
          ["PATCH", `accounts/${name}`],
          ["POST", `accounts/${name}/reset`],
          ["GET", `users/${name}`],
          ["POST", `users/${name}/api-key/reset`],
          ["GET", `requests/${name}`],
        ] as const
      ) {
        const lines = [
          `${method} /v0/management/${path} HTTP/1.1`,
          "Host: localhost",
          `Authorization: Bearer ${ADMIN_KEY}`,
          "Content-Length: 0",
          "Connection: close",
        ];
        const { status, text } = await rawRequest(rig.app.server.port, lines);
        assert(status === 400 || status === 404, `${method} ${path}: ${status}`);
        const body = text.slice(text.indexOf("\r\n\r\n"));
        assert(
          !body.includes("/etc") && !body.includes(rig.folder.path) && !body.includes("localhost "),
          body,
        );
      }
    });
  }
  assertEquals(rig.folder.names("accounts"), before);
  assertEquals(rig.app.directory.accounts().map(({ id }) => id), ["codex:acct-A:user-A"]);
});

const wrongKeys: readonly { name: string; of: (key: string) => string }[] = [
  { name: "wrong at the first byte", of: (key) => `X${key.slice(1)}` },
  { name: "wrong at the last byte", of: (key) => `${key.slice(0, -1)}X` },
  { name: "shorter", of: (key) => key.slice(0, -1) },
  { name: "longer", of: (key) => `${key}X` },
  { name: "empty", of: () => "" },
  { name: "blank", of: () => "   " },
  { name: "with a blank inside", of: (key) => `${key.slice(0, 4)} ${key.slice(4)}` },
  { name: "twice", of: (key) => `${key} ${key}` },
  { name: "in another case", of: (key) => key.toLowerCase() },
  { name: "with bytes that are no ASCII", of: (key) => `${key}\u00ff\u00fe` },
  { name: "the digest of the key", of: () => "0".repeat(64) },
];
Deno.test("B143 only the exact key opens, in any of its three places", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const doors = [
    { call: "GET /v1/models", key: CLIENT_KEY, open: 200 },
    { call: "GET /v0/user/usage/today", key: CLIENT_KEY, open: 200 },
    { call: "GET /v0/management/accounts", key: ADMIN_KEY, open: 200 },
    { call: "GET /metrics", key: ADMIN_KEY, open: 200 },
  ];
  const ask = async (call: string, header: string) => {
    const lines = [`${call} HTTP/1.1`, "Host: localhost", header, "Connection: close"];
    return (await rawRequest(rig.app.server.port, lines)).status;
  };
  const places = [
    (key: string) => `Authorization: Bearer ${key}`,
    (key: string) => `Authorization: ${key}`,
    (key: string) => `x-api-key: ${key}`,
  ];
  rig.account("A").models.otherwise(json({ models: [] }));
  for (const { call, key, open } of doors) {
    for (const place of places) {
      assertEquals([call, place(""), await ask(call, place(key))], [call, place(""), open]);
    }
    for (const wrong of wrongKeys) {
      await t.step(`${call}: ${wrong.name}`, async () => {
        for (const place of places) assertEquals(await ask(call, place(wrong.of(key))), 401);
      });
    }
  }
});
