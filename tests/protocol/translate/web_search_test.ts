/** Web search across providers: the offer, the record, the citations. */
import { assertEquals } from "@std/assert";
import { translatorFor } from "../../../lib/protocol/translate/compose.ts";
import type { JsonObject } from "../../../lib/protocol/translate/json.ts";
import type { TranslateTarget } from "../../../lib/protocol/translate/targets.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "../../support/accumulators.ts";
import { answerContext, translateContext, translateStream } from "../../support/translation.ts";

// deno-lint-ignore no-explicit-any -- JSON of three protocols, looked into by each test
type Loose = Record<string, any>;

const PLACE = { type: "approximate", city: "Bern" };
const CLAUDE_TOOL = {
  type: "web_search_20250305",
  name: "web_search",
  allowed_domains: ["x.test"],
  user_location: PLACE,
};
const HUB_TOOL = { type: "web_search", filters: { allowed_domains: ["x.test"] }, user_location: PLACE };

function request(
  client: "chat" | "responses" | "messages",
  body: JsonObject,
  target: TranslateTarget = "platform",
) {
  const upstream = client === "messages" ? "responses" : "messages";
  return translatorFor(client, upstream)!.request(body, translateContext(target));
}

Deno.test("web search of an Anthropic client is offered to OpenAI, its choice and its history with it", () => {
  const result = request("messages", {
    max_tokens: 9,
    messages: [
      { role: "user", content: "find" },
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
          { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
          { type: "text", text: "found" },
        ],
      },
      { role: "user", content: "more" },
    ],
    tools: [{ ...CLAUDE_TOOL, max_uses: 8 }],
    tool_choice: { type: "tool", name: "web_search" },
  });
  if (!result.ok) throw new Error(result.part);
  const { tools, tool_choice, input } = JSON.parse(JSON.stringify(result.body));
  assertEquals([tools, tool_choice, input.length], [[HUB_TOOL], { type: "web_search" }, 3]);
  assertEquals(result.notes, [
    "messages[1].content[0] left out: the record of a finished web search",
    "messages[1].content[1] left out: the record of a finished web search",
    "tools[0].max_uses left out: no counterpart",
  ]);
});

Deno.test("web search of an OpenAI client is offered to Anthropic", () => {
  const responses = request("responses", {
    input: "x",
    tools: [HUB_TOOL],
    tool_choice: { type: "web_search" },
  }, "anthropic");
  if (!responses.ok) throw new Error(responses.part);
  assertEquals(responses.body.tools, [CLAUDE_TOOL]);
  assertEquals(responses.body.tool_choice, { type: "tool", name: "web_search" });
  const chat = request("chat", {
    messages: [{ role: "user", content: "x" }],
    web_search_options: { user_location: { type: "approximate", approximate: { city: "Bern" } } },
  }, "anthropic");
  if (!chat.ok) throw new Error(chat.part);
  assertEquals(chat.body.tools, [{ type: "web_search_20250305", name: "web_search", user_location: PLACE }]);
});

const refused: {
  client: "responses" | "messages";
  body: JsonObject;
  part: string;
  target?: TranslateTarget;
}[] = [
  {
    client: "messages",
    body: { tools: [{ ...CLAUDE_TOOL, blocked_domains: ["y.test"] }] },
    part: "tools[0].blocked_domains",
  },
  { client: "responses", body: { tools: [HUB_TOOL] }, part: 'tools[0].type "web_search"', target: "zai" },
];
for (const c of refused) {
  Deno.test(`web search is refused where it cannot be carried: ${c.part}`, () => {
    const question = c.client === "messages" ? { max_tokens: 9, messages: [] } : { input: "x" };
    const result = request(c.client, { ...question, ...c.body }, c.target);
    assertEquals(result.ok ? "translated" : result.part, c.part);
  });
}

Deno.test("a search of OpenAI is told to an Anthropic client, whole and streamed", () => {
  const search = {
    type: "web_search_call",
    id: "ws_1",
    status: "completed",
    action: { type: "search", query: "q", sources: [{ type: "url", url: "https://x.test/a" }] },
  };
  const annotation = {
    type: "url_citation",
    start_index: 3,
    end_index: 8,
    title: "A",
    url: "https://x.test/a",
  };
  const message = {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "It says so.", annotations: [annotation] }],
  };
  const response = { id: "resp_1", status: "completed", output: [search, message] };
  const translator = translatorFor("messages", "responses")!;
  const whole = translator.answer(response, answerContext());
  const events = [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.added", output_index: 0, item: { ...search, status: "in_progress" } },
    { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
    { type: "response.output_item.done", output_index: 0, item: search },
    { type: "response.output_text.delta", output_index: 1, content_index: 0, delta: "It says so." },
    { type: "response.output_text.annotation.added", output_index: 1, content_index: 0, annotation },
    { type: "response.output_item.done", output_index: 1, item: message },
    { type: "response.completed", response: { ...response, output: [] } },
  ];
  const { answer } = accumulateMessages(translateStream(translator, events));
  assertEquals(whole.ok && whole.body, answer);
  assertEquals((answer as Loose).content, [
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
    {
      type: "web_search_tool_result",
      tool_use_id: "srvtoolu_1",
      content: [{
        type: "web_search_result",
        url: "https://x.test/a",
        title: "https://x.test/a",
        encrypted_content: "",
        page_age: null,
      }],
    },
    {
      type: "text",
      text: "It says so.",
      citations: [{
        type: "web_search_result_location",
        url: "https://x.test/a",
        title: "A",
        cited_text: "says ",
        encrypted_index: "",
      }],
    },
  ]);
});

Deno.test("a search of Anthropic is told to OpenAI clients, whole and streamed", () => {
  const citation = {
    type: "web_search_result_location",
    url: "https://x.test/a",
    title: "A",
    cited_text: "so",
    encrypted_index: "E",
  };
  const content = [
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
    { type: "text", text: "Well, " },
    { type: "text", text: "it says so.", citations: [citation] },
  ];
  const message = { id: "msg_1", content, stop_reason: "end_turn" };
  const piece = (index: number, delta: JsonObject) => ({ type: "content_block_delta", index, delta });
  const block = (index: number, content_block: JsonObject, ...pieces: JsonObject[]) => [
    { type: "content_block_start", index, content_block },
    ...pieces,
    { type: "content_block_stop", index },
  ];
  const events = [
    { type: "message_start", message: { id: "msg_1", content: [] } },
    ...block(
      0,
      { ...content[0], input: {} },
      piece(0, { type: "input_json_delta", partial_json: '{"query":"q"}' }),
    ),
    ...block(1, content[1]!),
    ...block(2, { type: "text", text: "" }, piece(2, { type: "text_delta", text: "Well, " })),
    ...block(
      3,
      { type: "text", text: "" },
      piece(3, { type: "citations_delta", citation }),
      piece(3, { type: "text_delta", text: "it says so." }),
    ),
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ];
  const toResponses = translatorFor("responses", "messages")!;
  const responses = accumulateResponses(translateStream(toResponses, events)).answer as Loose;
  const wholeResponses = toResponses.answer(message, answerContext());
  assertEquals(wholeResponses.ok && wholeResponses.body, responses);
  const { id: _id, ...record } = responses.output[0];
  assertEquals(record, {
    type: "web_search_call",
    status: "completed",
    action: { type: "search", query: "q" },
  });
  assertEquals(responses.output[1].content.map((part: Loose) => part.annotations), [[], [
    { type: "url_citation", start_index: 0, end_index: 11, title: "A", url: "https://x.test/a" },
  ]]);
  const toChat = translatorFor("chat", "messages")!;
  const chat = accumulateChat(translateStream(toChat, events)).answer as Loose;
  const wholeChat = toChat.answer(message, answerContext());
  assertEquals(wholeChat.ok && wholeChat.body, chat);
  assertEquals(chat.choices[0].message, {
    role: "assistant",
    content: "Well, it says so.",
    refusal: null,
    annotations: [{
      type: "url_citation",
      url_citation: { start_index: 6, end_index: 17, title: "A", url: "https://x.test/a" },
    }],
  });
});
