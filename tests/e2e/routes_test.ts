/**
 * Every route of the table (design.md 4): where it goes, how often it is sent when its upstream fails, when a kept
 * connection dies, when the body's length is unknown, and when the client stops half-way.
 */
import { assert, assertEquals } from "@std/assert";
import { failure, hangUp, ok } from "../../lib/demo/simulated_replies.ts";
import { type Route, ROUTES } from "../../lib/protocol/route.ts";
import { openRigSocket, refusedRigSocket } from "../support/rig_sockets.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

/** What a client of the route sends. Routes of any provider are asked for a model that Codex serves. */
const BODIES: Readonly<Record<string, unknown>> = {
  responses: { model: "m1", input: "hi" },
  compact: { model: "m1", input: [] },
  search: { id: "s", model: "m1", commands: {} },
  images_generations: { model: "gpt-image-2", prompt: "a cat" },
  images_edits: { model: "gpt-image-2", prompt: "a hat", images: [] },
  trace_summarize: { model: "m1", traces: [] },
  realtime_calls: { sdp: "v=0", session: {} },
  files: { file_name: "a.txt", file_size: 1, use_case: "codex" },
  files_uploaded: {},
  wham_nudge: { credit_type: "credits" },
  wham_apps: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  mcp: { jsonrpc: "2.0", id: 1, method: "tools/list" },
  chat: { model: "m1", messages: [{ role: "user", content: "hi" }] },
  messages: { model: "m1", max_tokens: 64, messages: [{ role: "user", content: "hi" }] },
};

/** Codex counts no tokens: the route is another provider's. */
const SERVED_BY_CODEX = ROUTES.filter(({ name }) => name !== "count_tokens");
const OVER_HTTP = SERVED_BY_CODEX.filter(({ websocket }) => !websocket);
const WITH_BODY = OVER_HTTP.filter(({ methods }) => methods.includes("POST"));

const pathOf = (route: Route, index = 0) => route.paths[index]!.replace("{id}", "file-1");
const bodyOf = (route: Route) => JSON.stringify(BODIES[route.name]);
const isRepeated = (route: Route) => route.replay !== "once";

function send(
  rig: Rig,
  route: Route,
  init: RequestInit & { readonly path?: string } = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${CLIENT_KEY}`);
  const reading = !route.methods.includes("POST");
  if (!reading && !headers.has("content-type")) headers.set("content-type", "application/json");
  return rig.until(
    fetch(rig.app.url + (init.path ?? pathOf(route)), {
      method: route.methods[0]!,
      ...(reading ? {} : { body: bodyOf(route) }),
      ...init,
      headers,
    }),
  );
}

/** The account pages and the models' routes differ in what their hits are called. */
const hits = (rig: Rig, name: string) => rig.provider.hitsOf(`SENT-tok-${name}`).length;

function scriptAll(rig: Rig, name: string, reply: ReturnType<typeof ok>): void {
  const account = rig.account(name);
  for (const lane of [account, account.websocket, account.usage]) lane.otherwise(reply);
}

Deno.test("every route has a body or needs none, and each of its paths leads to the same upstream path", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  scriptAll(rig, "A", ok("x"));
  for (const route of OVER_HTTP) {
    assert(!route.methods.includes("POST") || BODIES[route.name] !== undefined, route.name);
    const base = route.base === "chatgpt" ? "/backend-api" : "/backend-api/codex";
    const translated = route.name === "chat" || route.name === "messages";
    const want = base + (translated ? "/responses" : route.upstreamPath.replace("{id}", "file-1"));
    for (let index = 0; index < route.paths.length; index++) {
      rig.provider.hits.length = 0;
      const answer = await send(rig, route, { path: `${pathOf(route, index)}?a=%20b` });
      assertEquals(answer.status, 200, `${route.name} ${await answer.text()}`);
      const [hit, ...more] = rig.provider.hits;
      assertEquals([hit!.path, hit!.method, more.length], [
        want + (translated ? "" : "?a=%20b"),
        route.methods[0]!,
        0,
      ]);
      assertEquals(hit!.headers.get("chatgpt-account-id"), "acct-A", route.name);
    }
  }
});

Deno.test("count_tokens without a provider that counts them is 404, and nothing is sent", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const answer = await rig.call("/v1/messages/count_tokens", { model: "m1", messages: [] });
  assertEquals(answer.status, 404);
  await answer.body?.cancel();
  assertEquals(rig.provider.hits.length, 0);
});

for (const route of OVER_HTTP) {
  const repeated = isRepeated(route);
  Deno.test(`${route.name}: an upstream that fails once is ${repeated ? "passed over" : "relayed as it is"}`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"] });
    const words = { code: "server_is_overloaded", message: "simulated trouble" };
    rig.account("A").script(failure(503, words));
    if (route.name === "wham_usage") {
      rig.account("A").usage.script(...[rig.account("A").next()!]);
    }
    if (repeated) scriptAll(rig, "B", ok("B"));
    const answer = await send(rig, route);
    const text = await answer.text();
    assertEquals([answer.status, hits(rig, "A"), hits(rig, "B")], repeated ? [200, 1, 1] : [503, 1, 0], text);
    if (!repeated) assertEquals(JSON.parse(text).error.message, "simulated trouble");
  });

  const kept = repeated;
  Deno.test(`${route.name}: a kept connection that dies is ${kept ? "asked again once" : "not used"}`, async () => {
    await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 }, checkScript: false });
    const account = rig.account("A");
    for (const lane of [account, account.usage]) lane.script(ok("warm"), hangUp()).otherwise(ok("again"));
    await (await rig.responses()).text();
    if (route.name === "wham_usage") account.usage.next();
    const warm = rig.provider.hits[0]!.connection;
    const answer = await send(rig, route);
    await answer.text();
    const [died, ...more] = rig.provider.hits.slice(1);
    assertEquals([answer.status, more.length], kept ? [200, 1] : [502, 0]);
    if (kept) {
      assertEquals(died!.connection, warm, "it was the kept one");
      assert(more[0]!.connection !== warm);
    } else assert(died!.connection !== warm);
    const state = (await rig.accountState("A")).state;
    assertEquals(
      state,
      kept ? "healthy" : "cooling",
      "an idle close is nobody's fault, an answer that never came is",
    );
  });
}

for (const route of WITH_BODY) {
  Deno.test(`${route.name}: a body of unknown length goes upstream whole, and once`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"] });
    rig.account("A").script(failure(503, { message: "simulated trouble" }));
    const bytes = new TextEncoder().encode(bodyOf(route));
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.subarray(0, 5));
        controller.enqueue(bytes.subarray(5));
        controller.close();
      },
    });
    const answer = await send(rig, route, { body });
    assertEquals(answer.status, 503, await answer.text());
    assertEquals([hits(rig, "A"), hits(rig, "B")], [1, 0]);
    if (route.protocol === "raw") assertEquals(rig.provider.hits[0]!.text(), bodyOf(route));
  });

  Deno.test(`${route.name}: a client that stops in the middle of its body harms nobody`, async () => {
    await using rig = await startRig({ accounts: ["A", "B"], checkScript: false });
    scriptAll(rig, "A", ok("A"));
    const { hostname, port } = new URL(rig.app.url);
    const head = (framing: string) =>
      `POST ${pathOf(route)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${CLIENT_KEY}\r\n` +
      `content-type: application/json\r\n${framing}\r\n\r\n`;
    for (
      const text of [head("content-length: 5000") + "{", head("transfer-encoding: chunked") + '5\r\n{"a":']
    ) {
      using connection = await Deno.connect({ hostname, port: Number(port) });
      await connection.write(new TextEncoder().encode(text));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await rig.eventually(async () => (await rig.accountState("A")).in_flight === 0);
    assertEquals((await rig.accountState("A")).state, "healthy");
    // What nobody looks into is streamed on as it comes, and stops where the client stopped.
    for (const hit of rig.provider.hits) assert(hit.text().length < 10, hit.text());
  });
}

// ---------------------------------------------------------------- bodies that are no JSON

Deno.test("a multipart image edit is sent once, byte for byte, and its upstream's answer passed on", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(503, { message: "simulated trouble" }));
  const form = new FormData();
  form.append("prompt", "a hat");
  const file = new Uint8Array(1_048_576).map((_, index) => index * 31 % 251);
  form.append("image", new Blob([file]), "a.png");
  const made = new Request("http://x/", { method: "POST", body: form });
  const body = await made.bytes();
  const route = ROUTES.find(({ name }) => name === "images_edits")!;
  const answer = await send(rig, route, {
    body,
    headers: { "content-type": made.headers.get("content-type")! },
  });
  assertEquals([answer.status, (await answer.json()).error.message], [503, "simulated trouble"]);
  const hit = rig.provider.hits[0]!;
  assertEquals(hit.headers.get("content-type"), made.headers.get("content-type"));
  assertEquals(hit.body.length === body.length && hit.body.every((byte, at) => byte === body[at]), true);
  assertEquals(rig.provider.hits.length, 1);
});

Deno.test("multipart on image generation is sent once, JSON is sent again", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(503));
  const form = new FormData();
  form.append("prompt", "a cat");
  const route = ROUTES.find(({ name }) => name === "images_generations")!;
  const made = new Request("http://x/", { method: "POST", body: form });
  const answer = await send(rig, route, {
    body: await made.bytes(),
    headers: { "content-type": made.headers.get("content-type")! },
  });
  assertEquals(answer.status, 503);
  await answer.body?.cancel();
  assertEquals(rig.provider.hits.length, 1);
});

// ---------------------------------------------------------------- WebSockets

Deno.test("responses_ws: a refused handshake is made again elsewhere; realtime_ws: relayed as it is", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").websocket.script(failure(503));
  rig.account("B").websocket.script(ok("B"), failure(503, { message: "simulated trouble" }));
  await using client = await openRigSocket(rig);
  assertEquals([hits(rig, "A"), hits(rig, "B")], [1, 1]);
  assertEquals(client.isClosed, false);
  const refused = await refusedRigSocket(rig, { path: "/v1/realtime?model=x" });
  assertEquals([refused.status, JSON.parse(refused.body).error.message], [503, "simulated trouble"]);
  assertEquals([hits(rig, "A"), hits(rig, "B")], [1, 2]);
  assertEquals(rig.provider.hits.at(-1)!.path, "/backend-api/codex/realtime?model=x");
});

for (const path of ["/v1/responses", "/v1/realtime"]) {
  Deno.test(`a handshake on ${path} whose connection dies unanswered was one call`, async () => {
    await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
    rig.account("A").websocket.script(hangUp());
    const refused = await refusedRigSocket(rig, { path });
    assertEquals([refused.status, JSON.parse(refused.body).error.code], [502, "upstream_unavailable"]);
    assertEquals(rig.provider.hits.length, 1);
  });
}

Deno.test("every answer brings an id to ask about, also those that concern no account", async () => {
  await using rig = await startRig({ accounts: ["A"], checkScript: false });
  const without: string[] = [];
  for (
    const path of [
      "/",
      "/healthz",
      "/readyz",
      "/metrics",
      "/status",
      "/status/nothing",
      "/v0/management/accounts",
      "/v0/user/api-key",
      "/v1/models",
      "/v1/nothing",
      "/nothing",
    ]
  ) {
    const answer = await fetch(`${rig.app.url}${path}`);
    await answer.body?.cancel();
    if (!/^req_[A-Za-z0-9_-]{24}$/.test(answer.headers.get("x-request-id") ?? "")) without.push(path);
  }
  assertEquals(without, []);
});
