/** Where a model's name leads does not depend on whether somebody has looked at the list of models. */
import { assertEquals } from "@std/assert";
import { json, ok } from "../../lib/demo/simulated_replies.ts";
import { eventually } from "../support/eventually.ts";
import { type Rig, startRig } from "../support/rig.ts";

const ASK = { messages: [{ role: "user", content: "hi" }] };

/** A Codex account, and a key at a host that lists `qwen3` when asked. */
async function startListingRig(): Promise<Rig> {
  const rig = await startRig({ accounts: ["A"] });
  const { url } = rig.provider;
  await rig.stop();
  rig.reconfigure({
    providers: [{
      id: "lab",
      kind: "openai",
      "base-url": `${url}/v1`,
      accounts: [{ id: "L1", "api-key": "SENT-tok-L1" }],
    }],
  });
  rig.account("A").otherwise(ok("codex"));
  const lab = rig.provider.account("SENT-tok-L1");
  lab.otherwise(ok("lab"));
  lab.models.otherwise(json({ object: "list", data: [{ id: "qwen3", object: "model" }] }));
  await rig.start();
  return rig;
}

const isListed = (rig: Rig) => () => rig.provider.hitsOf("SENT-tok-L1", "models").length > 0;

async function whoServes(rig: Rig, model: string): Promise<string> {
  const answer = await rig.call("/v1/chat/completions", { model, ...ASK });
  return (await answer.json()).choices[0].message.content;
}

Deno.test("a name that a provider lists leads there from the start on, without anybody having asked for the list", async () => {
  await using rig = await startListingRig();
  await eventually(isListed(rig));
  await rig.eventually(async () => await whoServes(rig, "qwen3") === "lab");
  assertEquals(await whoServes(rig, "gpt-5.5"), "codex");
});

Deno.test("a name leads where it led after a reload, and when the list is old", async () => {
  await using rig = await startListingRig();
  await eventually(isListed(rig));
  await rig.eventually(async () => await whoServes(rig, "qwen3") === "lab");
  await rig.app.reload(rig.config());
  assertEquals(await whoServes(rig, "qwen3"), "lab");
  await rig.clock.advance(3_600_000);
  assertEquals(await whoServes(rig, "qwen3"), "lab");
});
