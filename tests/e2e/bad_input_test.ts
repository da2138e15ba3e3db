/** Bad input from clients and upstreams: a clear error each, nothing lost, nothing leaked. */
import { assert, assertEquals } from "@std/assert";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { failure, json, ok, raw } from "../../lib/demo/simulated_replies.ts";
import { ADMIN_KEY, CLIENT_KEY, startRig } from "../support/rig.ts";

const BODY = { model: "m1", input: "hi" };

Deno.test("a body that is no JSON object is refused with its place, and nothing is sent", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  const cases = [
    { name: "half an object", body: '{"model":"m1","inp' },
    { name: "an array", body: "[1,2]" },
    { name: "text behind it", body: '{"model":"m1"} x' },
    { name: "nothing", body: "" },
    { name: "a depth bomb", body: '{"input":' + "[".repeat(100_000) },
    { name: "bytes that are no UTF-8", body: new Uint8Array([0xff, 0xfe, 0x00]) },
  ];
  for (const { name, body } of cases) {
    await t.step(name, async () => {
      const answer = await rig.call("/v1/responses", null, { body });
      assertEquals(answer.status, 400);
      const { error } = await answer.json();
      assertEquals(error.code, "invalid_request");
      assert(answer.headers.get("x-request-id")?.startsWith("req_"));
    });
  }
  assertEquals(rig.hits("A"), 0);
});

Deno.test("packed bodies are undone before they are read, whatever the coding (B080)", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const plain = new TextEncoder().encode(JSON.stringify({ ...BODY, input: "x".repeat(100_000) }));
  const codings = {
    gzip: gzipSync(plain),
    br: brotliCompressSync(plain),
    zstd: zstdCompressSync(plain),
    "gzip, zstd": zstdCompressSync(gzipSync(plain)),
  };
  for (const [coding, body] of Object.entries(codings)) {
    await t.step(coding, async () => {
      const answer = await rig.call("/v1/responses", null, {
        body: new Uint8Array(body),
        headers: { "content-encoding": coding },
      });
      assertEquals([answer.status, (await answer.json()).status], [200, "completed"]);
      const hit = rig.provider.hits.at(-1)!;
      assertEquals(hit.headers.get("content-encoding"), null);
      assertEquals((hit.json()["input"] as unknown[]).length, 1);
    });
  }
});

Deno.test("codings nobody knows, broken ones and bombs are refused without an upstream call (B080, B167)", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  const bomb = new Uint8Array(zstdCompressSync(new Uint8Array(64 * 1024 * 1024)));
  const cases = [
    { name: "unknown", coding: "foo", body: new Uint8Array(10), status: 415 },
    { name: "corrupt zstd", coding: "zstd", body: new Uint8Array([1, 2, 3, 4]), status: 400 },
    { name: "corrupt gzip", coding: "gzip", body: new Uint8Array([1, 2, 3, 4]), status: 400 },
    { name: "a bomb", coding: "zstd", body: bomb, status: 413 },
    { name: "a nested bomb", coding: "zstd, gzip", body: new Uint8Array(gzipSync(bomb)), status: 413 },
  ];
  for (const { name, coding, body, status } of cases) {
    await t.step(name, async () => {
      const answer = await rig.call("/v1/responses", null, { body, headers: { "content-encoding": coding } });
      assertEquals(answer.status, status);
      await answer.body?.cancel();
    });
  }
  assertEquals(rig.hits("A"), 0);
});

Deno.test("error bodies of every shape become one well-formed answer (B046)", async (t) => {
  const shapes: (string | Uint8Array<ArrayBuffer>)[] = [
    "",
    "null",
    '"slow down"',
    '{"error":"slow down"}',
    '{"error":null}',
    "[]",
    '{"errors":[{"message":"x"}]}',
    "x".repeat(1_048_576),
    new Uint8Array([0xff, 0xfe, 0x00]),
  ];
  for (const [index, shape] of shapes.entries()) {
    await t.step(`shape ${index}`, async () => {
      await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
      rig.account("A").script(raw(429, shape, { "content-type": "application/json" }));
      const answer = await rig.responses();
      assert(answer.status === 429 || answer.status === 502, `${answer.status}`);
      const text = await answer.text();
      assertEquals(typeof JSON.parse(text).error.code, "string");
      assert(!text.includes("slow down") && text.length < 1_000);
    });
  }
});

Deno.test("trouble dressed as 200 is a failed attempt, and the next account serves (B045)", async (t) => {
  const disguises = {
    "a login page": raw(200, "<html>Sign in</html>", { "content-type": "text/html" }),
    "an error object": json({ error: { message: "no credit" } }),
    "an empty body": raw(200, "", { "content-type": "application/json" }),
    "half a document": raw(200, '{"output":[', { "content-type": "application/json" }),
  };
  for (const [name, disguise] of Object.entries(disguises)) {
    await t.step(name, async () => {
      await using rig = await startRig({
        accounts: ["A", "B"],
        config: { "request-retry": 0 },
        checkScript: false,
      });
      rig.account("A").otherwise(disguise);
      rig.account("B").otherwise(ok("B"));
      const answer = await rig.call("/v1/responses/compact", BODY);
      assertEquals(answer.status, name === "an error object" ? answer.status : 200);
      const text = await answer.text();
      if (name !== "an error object") assert(text.includes("B"), text);
    });
  }
});

Deno.test("bodies of exactly 32 MiB are replayed, larger and chunked ones are sent once (B161)", async (t) => {
  const limit = 33_554_432;
  const cases = [
    { name: "32 MiB - 1", bytes: limit - 1, chunked: false, hitsB: 1 },
    { name: "32 MiB", bytes: limit, chunked: false, hitsB: 1 },
    { name: "32 MiB + 1", bytes: limit + 1, chunked: false, hitsB: 0 },
    { name: "chunked 1 MiB", bytes: 1_048_576, chunked: true, hitsB: 0 },
  ];
  for (const { name, bytes, chunked, hitsB } of cases) {
    await t.step(name, async () => {
      await using rig = await startRig({
        accounts: ["A", "B"],
        config: { "request-retry": 0 },
        checkScript: false,
      });
      rig.account("A").otherwise(failure(503));
      rig.account("B").otherwise(ok("B"));
      const head = '{"model":"m1","stream":true,"store":false,"instructions":"","input":[{"x":"';
      const tail = '"}]}';
      const text = head + "y".repeat(bytes - head.length - tail.length) + tail;
      const body = chunked ? new Blob([text]).stream() : text;
      const answer = await rig.call("/v1/responses", null, { body });
      await answer.text();
      // A once-only answer keeps the upstream's own status (ruling 24).
      assertEquals([answer.status, rig.hits("A"), rig.hits("B")], [hitsB === 1 ? 200 : 503, 1, hitsB]);
      assertEquals(rig.provider.hits[0]!.body.length, bytes);
    });
  }
});

for (const path of ["/v1/responses", "/v1/chat/completions", "/v1/messages"]) {
  Deno.test(`what an upstream makes of a body nobody looked into goes back as it comes: ${path}`, async () => {
    await using rig = await startRig({ accounts: ["A"], checkScript: false });
    rig.account("A").otherwise(ok("A"));
    const head = '{"model":"m1","stream":true,"input":"';
    const body = `${head}${"y".repeat(33_554_433 - head.length - 2)}"}`;
    const answer = await rig.call(path, null, { body });
    const text = await answer.text();
    if (path === "/v1/responses") {
      assertEquals([answer.status, answer.headers.get("content-type")], [
        200,
        "text/event-stream; charset=utf-8",
      ]);
      assert(text.includes("response.completed"), text);
    } else assertEquals(answer.status, 413, text);
  });
}

Deno.test("only the exact key passes, in each of its three places", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  const status = async (headers: Record<string, string>): Promise<number> => {
    const answer = await rig.until(
      fetch(`${rig.app.url}/v1/responses`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(BODY),
      }),
    );
    await answer.body?.cancel();
    return answer.status;
  };
  assertEquals(await status({ authorization: `Bearer ${CLIENT_KEY}` }), 200);
  assertEquals(await status({ authorization: CLIENT_KEY }), 200);
  assertEquals(await status({ "x-api-key": CLIENT_KEY }), 200);
  for (
    const wrong of [
      "",
      "Bearer ",
      `Bearer ${CLIENT_KEY}x`,
      `Bearer ${CLIENT_KEY.slice(0, -1)}`,
      `Bearer x${CLIENT_KEY.slice(1)}`,
      `Bearer ${ADMIN_KEY}`,
    ]
  ) {
    assertEquals(await status(wrong === "" ? {} : { authorization: wrong }), 401);
  }
  assertEquals(rig.hits("A"), 3);
});

Deno.test("paths that are not exactly a route are 404, and nothing is sent", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  for (
    const path of [
      "/v1//responses",
      "/v1/responses/",
      "/v1/%72esponses",
      "/V1/responses",
      "/files/a%2fb/uploaded",
      "/files/../uploaded",
      "/v1/unknown",
    ]
  ) {
    const answer = await rig.call(path, BODY);
    assertEquals([path, answer.status], [path, 404]);
    await answer.body?.cancel();
  }
  assertEquals(rig.provider.hits.length, 0);
});

Deno.test("nothing in a request changes where it goes (B141)", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  await using trap = await startRig({ accounts: [] });
  const answer = await rig.call("/v1/responses", {
    ...BODY,
    api_base: trap.provider.url,
    base_url: trap.provider.url,
  }, {
    headers: {
      "x-base-url": trap.provider.url,
      "x-custom-host": trap.provider.url,
      "x-forwarded-host": trap.provider.url,
    },
  });
  assertEquals(answer.status, 200);
  await answer.body?.cancel();
  assertEquals(trap.provider.hits.length, 0);
});

Deno.test("an upstream redirect is not followed with credentials (B141)", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  await using trap = await startRig({ accounts: [] });
  rig.account("A").script(raw(302, "", { location: `${trap.provider.url}/steal` }));
  const answer = await rig.responses();
  assertEquals(answer.status, 502);
  await answer.body?.cancel();
  assertEquals(trap.provider.hits.length, 0);
});

Deno.test("a model name of any length costs no memory: beyond 256 characters it is refused", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").otherwise(ok("A"));
  for (const [length, status] of [[256, 200], [257, 400], [1_000_000, 400]] as const) {
    const answer = await rig.responses({ model: "m".repeat(length) });
    assertEquals([length, answer.status], [length, status]);
    await answer.body?.cancel();
  }
  assertEquals(rig.hits("A"), 1);
});

const models: readonly { readonly model: unknown; readonly got: string }[] = [
  { model: 5, got: "a number" },
  { model: true, got: "true" },
  { model: false, got: "false" },
  { model: { name: "m1" }, got: "an object" },
  { model: ["m1"], got: "an array" },
];
Deno.test("a model that is no string is refused with its name and kind, in every protocol, and nothing is sent", async (t) => {
  await using rig = await startRig({ accounts: [] });
  for (const { model, got } of models) {
    for (const path of ["/v1/responses", "/v1/chat/completions", "/v1/messages", "/v1/alpha/search"]) {
      await t.step(`${got}, ${path}`, async () => {
        const answer = await rig.call(path, { model });
        const { error } = await answer.json();
        const want = `"model" must be a string, got ${got}`;
        assertEquals([answer.status, error.code, error.message], [400, "invalid_request", want]);
      });
    }
  }
  assertEquals(rig.provider.hits.length, 0);
});

Deno.test("a model that is missing or null is nobody's mistake here: with no account it is told 503 (worked example 1)", async () => {
  await using rig = await startRig({ accounts: [] });
  for (const model of [undefined, null, "unlisted"]) {
    const answer = await rig.responses({ model });
    assertEquals([answer.status, (await answer.json()).error.code], [503, "auth_unavailable"]);
  }
});

Deno.test("a Host header that reaches into the path is refused", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: rig.app.server.port });
  await connection.write(
    new TextEncoder().encode(
      "GET /healthz HTTP/1.1\r\nHost: x/v0/management/accounts?\r\nConnection: close\r\n\r\n",
    ),
  );
  const answer = await rig.until(new Response(connection.readable).text());
  assert(answer.startsWith("HTTP/1.1 400"), answer);
});
