/** The `openai` package through the proxy: Responses, chat, images and models, plain and streaming, with tools. */
import { assert, assertEquals } from "@std/assert";
import OpenAI, { toFile } from "openai";
import {
  completed,
  created,
  delta,
  event,
  failed,
  failure,
  itemAdded,
  models,
  ok,
  rst,
  type Step,
  stream,
} from "../../lib/demo/simulated_replies.ts";
import { CLIENT_KEY, type Rig, startRig } from "../support/rig.ts";

/** Without retries of its own: what it sees is the proxy's one answer. */
const clientOf = (rig: Rig) =>
  new OpenAI({ apiKey: CLIENT_KEY, baseURL: `${rig.app.url}/v1`, maxRetries: 0 });

const limit = (seconds: number) =>
  failure(429, {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    extra: { resets_in_seconds: seconds },
  });

/** A turn that calls two tools, their arguments in pieces. */
function toolTurn(): Step[] {
  const steps: Step[] = [created("resp_tools")];
  for (const [index, name] of ["read_file", "list_files"].entries()) {
    const item = {
      id: `fc_${index}`,
      type: "function_call",
      call_id: `call_${index}`,
      name,
      arguments: "",
      status: "in_progress",
    };
    const at = { item_id: item.id, output_index: index };
    const whole = `{"path":"/${index}"}`;
    const responses = (type: string, fields: Record<string, unknown>) => event(type, { type, ...fields });
    steps.push(responses("response.output_item.added", { output_index: index, item }));
    for (const piece of [whole.slice(0, 5), whole.slice(5)]) {
      steps.push(responses("response.function_call_arguments.delta", { ...at, delta: piece }));
    }
    steps.push(responses("response.function_call_arguments.done", { ...at, arguments: whole }));
    const done = { ...item, arguments: whole, status: "completed" };
    steps.push(responses("response.output_item.done", { output_index: index, item: done }));
  }
  return [...steps, completed("resp_tools")];
}

const TOOLS = ["read_file", "list_files"].map((name) => ({
  type: "function" as const,
  name,
  description: name,
  strict: false,
  parameters: { type: "object", properties: { path: { type: "string" } } },
}));
const CHAT_TOOLS = TOOLS.map(({ type, name, parameters }) => ({ type, function: { name, parameters } }));

Deno.test("openai responses: a plain answer through a failover, text and usage whole", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(limit(600));
  rig.account("B").script(ok("pong"));
  const answer = await rig.until(clientOf(rig).responses.create({ model: "gpt-5.5", input: "ping" }));
  assertEquals([answer.output_text, answer.status, answer.usage?.input_tokens], ["pong", "completed", 10]);
  assertEquals([rig.hits("A"), rig.hits("B")], [1, 1]);
});

Deno.test("openai responses: every event of a stream, and its end", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(ok("pong"));
  const events = await rig.until(
    clientOf(rig).responses.create({ model: "gpt-5.5", input: "ping", stream: true }),
  );
  const types: string[] = [];
  await rig.until((async () => {
    for await (const { type } of events) types.push(type);
  })());
  assertEquals(types, [
    "response.created",
    "response.output_item.added",
    "response.output_text.delta",
    "response.output_item.done",
    "response.completed",
  ]);
});

Deno.test("openai responses: its accumulating helper gives the final response, with both tool calls", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(stream([created("resp_lost"), failed("server_error")]));
  rig.account("B").script(stream(toolTurn()));
  const running = clientOf(rig).responses.stream({ model: "gpt-5.5", input: "look", tools: TOOLS });
  const snapshot: string[] = [];
  running.on("response.function_call_arguments.delta", ({ snapshot: whole }) => snapshot.push(whole));
  const final = await rig.until(running.finalResponse());
  assertEquals(snapshot.at(-1), '{"path":"/1"}');
  assertEquals(final.id, "resp_tools");
});

Deno.test("openai responses: a plain answer holds both tool calls", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream(toolTurn()));
  const answer = await rig.until(
    clientOf(rig).responses.create({ model: "gpt-5.5", input: "look", tools: TOOLS }),
  );
  const calls = answer.output.filter((item) => item.type === "function_call");
  assertEquals(calls.map((call) => [call.name, call.arguments, call.call_id]), [
    ["read_file", '{"path":"/0"}', "call_0"],
    ["list_files", '{"path":"/1"}', "call_1"],
  ]);
});

Deno.test("openai: all accounts limited is a RateLimitError with the time, code and request id", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(limit(600));
  const refused: unknown = await rig.until(
    clientOf(rig).responses.create({ model: "gpt-5.5", input: "ping" }).catch((error) => error),
  );
  if (!(refused instanceof OpenAI.RateLimitError)) throw new Error(`Not refused: ${refused}`);
  assertEquals([refused.status, refused.code, refused.headers.get("retry-after")], [
    429,
    "rate_limited",
    "600",
  ]);
  assert(refused.requestID?.startsWith("req_"));
});

Deno.test("openai responses: a stream cut after its first words ends as response.failed", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream([created(), itemAdded(), delta("Hel"), rst()]));
  const events = await rig.until(
    clientOf(rig).responses.create({ model: "gpt-5.5", input: "ping", stream: true }),
  );
  let last = "";
  await rig.until((async () => {
    for await (const { type } of events) last = type;
  })());
  assertEquals(last, "response.failed");
});

Deno.test("openai: a request at fault is the upstream's own error, told once", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(
    failure(400, { code: "invalid_value", type: "invalid_request_error", message: "Bad image" }),
  );
  const refused: unknown = await rig.until(
    clientOf(rig).responses.create({ model: "gpt-5.5", input: "ping" }).catch((error) => error),
  );
  if (!(refused instanceof OpenAI.BadRequestError)) throw new Error(`Not refused: ${refused}`);
  assertEquals([refused.code, refused.message], ["invalid_value", "400 Bad image"]);
  assertEquals(rig.hits("B"), 0);
});

Deno.test("openai chat: a plain answer with two tool calls, and a follow-up with their results", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream(toolTurn()), ok("done"));
  const client = clientOf(rig);
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "look" }];
  const first = await rig.until(
    client.chat.completions.create({ model: "gpt-5.5", messages, tools: CHAT_TOOLS }),
  );
  const { message, finish_reason } = first.choices[0]!;
  const calls = message.tool_calls!.map((call) =>
    call.type === "function" ? [call.id, call.function.name, call.function.arguments] : []
  );
  assertEquals([finish_reason, calls], ["tool_calls", [
    ["call_0", "read_file", '{"path":"/0"}'],
    ["call_1", "list_files", '{"path":"/1"}'],
  ]]);
  messages.push(
    message,
    ...["one", "two"].map((content, index) => ({
      role: "tool" as const,
      tool_call_id: `call_${index}`,
      content,
    })),
  );
  const second = await rig.until(
    client.chat.completions.create({ model: "gpt-5.5", messages, tools: CHAT_TOOLS }),
  );
  assertEquals([second.choices[0]!.message.content, second.usage?.prompt_tokens], ["done", 10]);
  const input = rig.provider.hits[1]!.json().input as { type: string; call_id?: string; output?: unknown }[];
  assertEquals(input.filter(({ type }) => type === "function_call_output").map(({ call_id }) => call_id), [
    "call_0",
    "call_1",
  ]);
});

Deno.test("openai chat: its accumulating helper joins streamed tool calls and usage", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").script(stream(toolTurn()));
  const running = clientOf(rig).chat.completions.stream({
    model: "gpt-5.5",
    messages: [{ role: "user", content: "look" }],
    tools: CHAT_TOOLS,
    stream_options: { include_usage: true },
  });
  const final = await rig.until(running.finalChatCompletion());
  const calls = final.choices[0]!.message.tool_calls!;
  assertEquals(calls.map((call) => call.type === "function" && call.function.arguments), [
    '{"path":"/0"}',
    '{"path":"/1"}',
  ]);
  assertEquals([final.choices[0]!.finish_reason, final.usage?.total_tokens], ["tool_calls", 15]);
});

Deno.test("openai images: generated after a failover, edited once", async () => {
  await using rig = await startRig({ accounts: ["A", "B"] });
  rig.account("A").script(failure(503, { code: "server_is_overloaded" }));
  rig.account("B").script(ok("a cat"), ok("a hat"));
  const client = clientOf(rig);
  const made = await rig.until(client.images.generate({ model: "gpt-image-2", prompt: "a cat" }));
  assertEquals(atob(made.data![0]!.b64_json!), "a cat");
  const bytes = new Uint8Array(200_000).map((_, index) => index % 251);
  const image = await toFile(bytes, "a.png", { type: "image/png" });
  const edited = await rig.until(client.images.edit({ model: "gpt-image-2", image, prompt: "a hat" }));
  assertEquals(atob(edited.data![0]!.b64_json!), "a hat");
  const sent = rig.provider.hits.at(-1)!;
  assert(sent.headers.get("content-type")!.startsWith("multipart/form-data; boundary="));
  const form = await new Response(sent.body, {
    headers: { "content-type": sent.headers.get("content-type")! },
  }).formData();
  assertEquals(await (form.get("image") as File).bytes(), bytes);
});

Deno.test("openai models: the list of all accounts, and one by name", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  rig.account("A").models.otherwise(models(["gpt-5.5", "gpt-5.4-mini"]));
  const listed = await rig.until(clientOf(rig).models.list());
  assertEquals(listed.data.map(({ id }) => id).sort(), ["gpt-5.4-mini", "gpt-5.5"]);
});
