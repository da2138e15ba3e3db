/** A reload takes a provider out of the configuration while a request waits for its answer. */
import { assertEquals } from "@std/assert";
import { ok } from "../../lib/demo/simulated_replies.ts";
import { startRig } from "../support/rig.ts";
import { rawServer } from "../support/rude_sockets.ts";

/** More than is read whole before it is passed on. */
const LARGE = `{"choices":[{"message":{"content":"${"x".repeat(9_000_000)}`;

const cases = [
  { name: "its refusal is relayed", status: 400, body: `{"error":{"message":"no"}}`, want: "400 whole" },
  { name: "its failure finds nobody to go to", status: 500, body: "", want: "503 whole" },
  { name: "its limit finds nobody to go to", status: 429, body: `{"error":{}}`, want: "503 whole" },
  { name: "its answer is delivered", status: 200, body: `{"choices":[{}],"usage":{}}`, want: "200 whole" },
  { name: "its large answer breaks", status: 200, body: LARGE, missingBytes: 9, want: "200 broken" },
] as const;

for (const c of cases) {
  Deno.test(`a provider is removed during a request, ${c.name}, and the others go on`, async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    await using upstream = await rawServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", async (head) => {
        if (String(head).startsWith("GET")) return socket.end(answerText(404, "", 0));
        asked.resolve();
        socket.end(await answer.promise);
      });
    });
    const lab = {
      id: "lab",
      kind: "openai",
      "base-url": `http://127.0.0.1:${upstream.port}/v1`,
      models: ["m"],
      accounts: [{ id: "one", "api-key": "SENT-lab-key" }],
    };
    await using rig = await startRig({ accounts: ["A"], config: { providers: [lab], "request-retry": 0 } });
    const messages = [{ role: "user", content: "hi" }];
    const call = rig.call("/v1/chat/completions", { model: "lab/m", messages });
    await rig.until(asked.promise);
    await rig.app.reload({ ...rig.config(), providers: [] });
    answer.resolve(answerText(c.status, c.body, "missingBytes" in c ? c.missingBytes : 0));
    const response = await call;
    const end = await rig.until(response.text().then(() => "whole", () => "broken"));
    assertEquals(`${response.status} ${end}`, c.want);
    await rig.eventually(() => rig.app.decisions.latest(1)[0]?.model === "lab/m");
    rig.account("A").script(ok("hello"));
    const next = await rig.responses();
    assertEquals([next.status, (await next.text()).includes("hello")], [200, true]);
    assertEquals((await rig.readLog()).includes(`"fatal"`), false);
  });
}

function answerText(status: number, body: string, missingBytes: number): string {
  return `HTTP/1.1 ${status} X\r\ncontent-type: application/json\r\nconnection: close\r\n` +
    `content-length: ${body.length + missingBytes}\r\n\r\n${body}`;
}
