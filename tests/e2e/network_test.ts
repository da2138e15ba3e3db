/** The way out: an egress proxy changed at run time, and proxies that lead to each other. */
import { assert, assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { startRig } from "../support/rig.ts";

Deno.test("two proxies that lead to each other notice it, and nobody goes round in circles (B142)", async () => {
  await using first = await startRig({ accounts: ["A"], checkScript: false });
  await using second = await startRig({ accounts: ["A"], checkScript: false });
  await first.app.reload({ ...first.config(), codexBaseUrl: `${second.app.url}/v1` });
  await second.app.reload({ ...second.config(), codexBaseUrl: `${first.app.url}/v1` });
  // Each asks the other with the account's token, which the other has to take for a client key.
  await second.app.reload({
    ...second.config(),
    codexBaseUrl: `${first.app.url}/v1`,
    apiKeys: ["SENT-tok-A", "SENT-key-client-1"],
  });
  await first.app.reload({
    ...first.config(),
    codexBaseUrl: `${second.app.url}/v1`,
    apiKeys: ["SENT-tok-A", "SENT-key-client-1"],
    retry: { ...first.config().retry, requestRetry: 0 },
  });
  let settled = false;
  const call = fetch(`${first.app.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: "Bearer SENT-key-client-1", "content-type": "application/json" },
    body: JSON.stringify({ model: "m1", input: "hi" }),
  }).finally(() => settled = true);
  while (!settled) {
    await Promise.all([first.clock.advance(50), second.clock.advance(50)]);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const answer = await call;
  assertEquals(answer.status, 502);
  await answer.body?.cancel();
  assert((await first.readLog()).includes("loop_detected"));
  assertEquals(first.provider.hits.length + second.provider.hits.length, 0);
});

Deno.test("a changed proxy-url is in effect after a reload; an unreachable proxy is told as 502, never passed by", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "request-retry": 0 } });
  rig.account("A").otherwise(ok("A"));
  await rig.app.reload({ ...rig.config(), proxyUrl: "http://127.0.0.1:9" });
  const blocked = await rig.responses();
  assertEquals(blocked.status, 502);
  await blocked.body?.cancel();
  assertEquals(rig.hits("A"), 0);
  await rig.app.reload(rig.config());
  await rig.pass(60_000);
  assertEquals((await (await rig.responses()).json()).status, "completed");
});
