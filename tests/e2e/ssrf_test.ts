/** B141: nothing a client or an upstream says makes us open a connection the configuration does not name. */
import { assertEquals } from "@std/assert";
import { failure, json, ok, raw } from "../../lib/demo/simulated_replies.ts";
import { assertNothingLeft } from "../support/hardening.ts";
import { CLIENT_KEY, startRig } from "../support/rig.ts";
import { rawServer } from "../support/rude_sockets.ts";

/** Counts whoever connects, and asks for everything as if it were an account's provider. */
async function trap() {
  const seen: string[] = [];
  const server = await rawServer((socket) => {
    seen.push("connected");
    socket.on("data", (data) => seen.push(String(data)));
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
  });
  return {
    seen,
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function image(url: string) {
  return { type: "image_url", image_url: { url } };
}

Deno.test("URLs in a request are the upstream's business: images, tools, files and settings are not fetched", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  await using elsewhere = await trap();
  const { url } = elsewhere;
  rig.account("A").otherwise(ok("A"));
  const requests = [
    ["/v1/responses", {
      model: "m1",
      input: [{
        type: "message",
        role: "user",
        content: [{ type: "input_image", image_url: `${url}/a.png` }, {
          type: "input_file",
          file_url: `${url}/f`,
        }],
      }],
      tools: [{ type: "mcp", server_label: "x", server_url: `${url}/mcp` }],
      api_base: url,
      base_url: url,
    }],
    ["/v1/responses", { model: "m1", input: `${url}/read-me`, instructions: url, metadata: { url } }],
    ["/v1/chat/completions", { model: "m1", messages: [{ role: "user", content: [image(`${url}/a.png`)] }] }],
    ["/v1/chat/completions", { model: url, messages: [{ role: "user", content: "x" }] }],
    ["/v1/messages", {
      model: "m1",
      max_tokens: 5,
      messages: [{
        role: "user",
        content: [{ type: "image", source: { type: "url", url: `${url}/a.png` } }, {
          type: "document",
          source: { type: "url", url: `${url}/d.pdf` },
        }],
      }],
    }],
    ["/v1/images/generations", { model: "m1", prompt: url, image: url }],
  ] as const;
  const headers = {
    "x-base-url": url,
    "x-custom-host": url,
    "x-forwarded-host": new URL(url).host,
    "x-original-url": url,
    "x-rewrite-url": `${url}/v1/responses`,
    "x-upstream": url,
    "x-openai-base-url": url,
    "x-target-url": url,
    forwarded: `host=${new URL(url).host}`,
    referer: url,
    origin: url,
    destination: url,
    "callback-url": url,
  };
  for (const [path, body] of requests) {
    const answer = await rig.call(path, body, {
      headers: { ...headers, authorization: `Bearer ${CLIENT_KEY}` },
    });
    await answer.body?.cancel();
    const query = await rig.call(`${path}?url=${url}&base_url=${url}`, body, { headers });
    await query.body?.cancel();
  }
  assertEquals(elsewhere.seen, []);
  assertNothingLeft(rig);
});

const codes = [300, 301, 302, 303, 305, 307, 308];
Deno.test("redirects are followed by nobody: answers, models, usage pages, token refreshes", async () => {
  await using rig = await startRig({
    accounts: ["A"],
    config: { "request-retry": 0, quota: { "poll-interval-seconds": 1 } },
    checkScript: false,
  });
  await using elsewhere = await trap();
  const { url } = elsewhere;
  const away = (status: number) =>
    raw(status, "", {
      location: `${url}/steal`,
      "content-location": `${url}/steal`,
      refresh: `0; url=${url}`,
    });
  rig.account("A").usage.otherwise(away(302));
  rig.account("A").models.otherwise(away(301));
  rig.provider.account("SENT-ref-A").tokens.otherwise(away(307));
  for (const status of codes) {
    rig.account("A").script(away(status));
    const answer = await rig.responses();
    const text = await answer.text();
    assertEquals([status, answer.status, answer.headers.get("location"), text.includes(url)], [
      status,
      502,
      null,
      false,
    ]);
    await rig.pass(300_000);
  }
  // A once-only route keeps its upstream's own status (ruling 24), and it is still the client that has to go there.
  rig.account("A").script(away(307));
  const once = await rig.call("/v1/realtime/calls", { model: "m1" });
  await once.body?.cancel();
  // A 401 asks for a refresh, whose answer leads away as well.
  await rig.pass(300_000);
  rig.account("A").script(failure(401));
  await (await rig.responses()).body?.cancel();
  const models = await fetch(`${rig.app.url}/v1/models`, {
    headers: { authorization: `Bearer ${CLIENT_KEY}` },
  });
  await models.body?.cancel();
  await rig.eventually(() => rig.provider.hits.some(({ lane }) => lane === "usage"));
  await rig.eventually(() => rig.provider.hits.some(({ lane }) => lane === "tokens"));
  assertEquals(elsewhere.seen, []);
});

Deno.test("what an upstream names in its answer is handed on, not fetched", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  await using elsewhere = await trap();
  const { url } = elsewhere;
  const named = {
    "x-models-etag": url,
    link: `<${url}>; rel=preload`,
    "alt-svc": `h2="${new URL(url).host}"`,
    "x-codex-turn-state": url,
  };
  rig.account("A").script(json({ output: [], upload_url: `${url}/up`, file_id: "f1" }, 200, named));
  const answer = await rig.call("/v1/responses/compact", { model: "m1", input: [] });
  assertEquals((await answer.json()).upload_url, `${url}/up`);
  assertEquals(answer.headers.get("alt-svc"), null);
  assertEquals(elsewhere.seen, []);
});
