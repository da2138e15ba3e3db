/**
 * The conversations every pair of protocols must carry, and the requests none can.
 *
 * Made fixtures: each is one thing that broke in some proxy, or one thing a protocol has a field for.
 */
import type {
  AnswerModel,
  CallModel,
  Conversation,
  PartModel,
  RefusedConversation,
  RequestModel,
  TurnModel,
  UsageModel,
} from "../../support/conversation_model.ts";

const USAGE: UsageModel = { input: 20, cached: 0, written: 0, output: 7, reasoning: 0 };

const user = (...parts: PartModel[]): TurnModel => ({ who: "user", parts });
const says = (text: string, ...calls: CallModel[]): TurnModel => ({ who: "assistant", text, calls });
const results = (...pairs: [id: string, ...output: PartModel[]][]): TurnModel => ({
  who: "results",
  results: pairs.map(([id, ...output]) => ({ id, output })),
});
const call = (id: string, name: string, args: unknown = {}): CallModel => ({
  id,
  name,
  args: JSON.stringify(args),
});

const schema = (...names: string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
  additionalProperties: false,
});
const READ_FILE = { name: "read_file", description: "Reads a file", schema: schema("path") };
const LIST = { name: "list", schema: schema() };

const PNG =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
const PDF = "JVBERi0xLjQKJSBzbWFsbA==";

function conversation(
  name: string,
  request: Partial<RequestModel>,
  answer: Partial<AnswerModel> = {},
  refuses = false,
): Conversation {
  const calls = answer.calls ?? [];
  return {
    name,
    request: { turns: [user("Hello")], maxTokens: 64_000, ...request },
    answer: {
      reasoning: "",
      text: calls.length > 0 ? "" : "Hi there.",
      calls,
      stop: calls.length > 0 ? "tool" : "end",
      usage: USAGE,
      ...answer,
    },
    ...(refuses ? { refuses } : {}),
  };
}

const toolTurn = [
  user("Read a.txt"),
  says("", call("call_1", "read_file", { path: "a.txt" })),
  results(["call_1", "contents of a"]),
];

export const CONVERSATIONS: readonly Conversation[] = [
  conversation("a plain question", {}),
  conversation("a system prompt", { system: "Be brief." }),
  conversation("several turns", {
    system: "Be brief.\nAnswer in English.",
    turns: [user("One"), says("Two"), user("Three"), says("Four"), user("Five")],
  }),
  conversation("a system message in mid-conversation", {
    system: "Be brief.",
    turns: [user("One"), says("Two"), { who: "system", text: "Now be long." }, user("Three")],
  }),
  conversation("letters of every kind", {
    system: "Grüezi 你好 \u2028 \u0000",
    turns: [user('emoji 👩‍👩‍👧‍👦 and é, "quotes", \\ and </script>')],
  }, { text: '👋🏽 \u00e9e\u0301 \u2028 漢字 \t\n"x" \\n' }),
  conversation("an image by its address", {
    turns: [user("What is this?", { image: "https://images.test/cat.png" })],
  }),
  conversation("an image in base64", { turns: [user({ image: PNG }, "What is this?")] }),
  conversation("images among texts", {
    turns: [user("First", { image: PNG }, "second", { image: "https://images.test/b.webp" }, "last")],
  }),
  conversation("a PDF", { turns: [user("Sum up", { pdf: PDF, name: "report.pdf" })] }),
  conversation("a text document", {
    turns: [user({ document: "line 1\nZeile 2: äöü", name: "notes.txt" }, "Sum up")],
  }),
  conversation("one tool call", { tools: [READ_FILE] }, {
    calls: [call("call_1", "read_file", { path: "a.txt" })],
  }),
  conversation("text before a tool call", { tools: [READ_FILE] }, {
    text: "Let me look.",
    calls: [call("call_1", "read_file", { path: "a.txt" })],
  }),
  conversation("two parallel tool calls", { tools: [READ_FILE, LIST] }, {
    calls: [call("call_1", "read_file", { path: "a" }), call("call_2", "read_file", { path: "b" })],
  }),
  conversation("five parallel tool calls of two tools", { tools: [READ_FILE, LIST] }, {
    calls: [1, 2, 3, 4, 5].map((n) =>
      n % 2 === 0 ? call(`call_${n}`, "list") : call(`call_${n}`, "read_file", { path: `${n}` })
    ),
  }),
  conversation("a tool call without arguments", { tools: [LIST] }, { calls: [call("call_1", "list")] }),
  conversation("a tool call with nested and escaped arguments", { tools: [READ_FILE] }, {
    calls: [call("call_1", "read_file", {
      path: 'C:\\dir\\"x".txt',
      list: [1, -2.5, 1e21, true, null, { deep: { deeper: ["\u2028", "👍"] } }],
      empty: {},
    })],
  }),
  conversation("a tool call with long arguments", { tools: [READ_FILE] }, {
    calls: [call("call_1", "read_file", { path: "x".repeat(5_000), other: "line\n".repeat(200) })],
  }),
  conversation("a tool's result", { tools: [READ_FILE], turns: toolTurn }),
  conversation("an empty result", {
    tools: [LIST],
    turns: [user("List"), says("", call("call_1", "list")), results(["call_1"])],
  }),
  conversation("results of parallel calls", {
    tools: [READ_FILE],
    turns: [
      user("Read both"),
      says(
        "Reading.",
        call("call_1", "read_file", { path: "a" }),
        call("call_2", "read_file", { path: "b" }),
      ),
      results(["call_1", "A"], ["call_2", "B"]),
    ],
  }),
  conversation("results in another order than their calls", {
    tools: [READ_FILE],
    turns: [
      user("Read both"),
      says("", call("call_1", "read_file", { path: "a" }), call("call_2", "read_file", { path: "b" })),
      results(["call_2", "B"], ["call_1", "A"]),
    ],
  }),
  conversation("tool turns one after the other", {
    tools: [READ_FILE],
    turns: [
      ...toolTurn,
      says("Now b.", call("call_2", "read_file", { path: "b.txt" })),
      results(["call_2", "contents of b"]),
      says("Both read."),
      user("And?"),
    ],
  }),
  conversation("an image from a tool", {
    tools: [READ_FILE],
    turns: [
      user("Look"),
      says("", call("call_1", "read_file", { path: "a.png" })),
      results(["call_1", { image: PNG }]),
    ],
  }),
  conversation("text and an image from a tool, text from another", {
    tools: [READ_FILE],
    turns: [
      user("Look"),
      says("", call("call_1", "read_file", { path: "a.png" }), call("call_2", "read_file", { path: "b" })),
      results(["call_1", "a picture:", { image: PNG }], ["call_2", "text"]),
    ],
  }),
  conversation("images from two tools", {
    tools: [READ_FILE],
    turns: [
      user("Look"),
      says("", call("call_1", "read_file", { path: "a" }), call("call_2", "read_file", { path: "b" })),
      results(["call_1", { image: PNG }], ["call_2", { image: "https://images.test/b.png" }]),
      user("Well?"),
    ],
  }),
  conversation("a question right after a result", {
    tools: [READ_FILE],
    turns: [...toolTurn, user("And what does it mean?")],
  }),
  conversation("tools that must not be called", { tools: [READ_FILE], toolChoice: "none", turns: toolTurn }),
  conversation("tools of which one must be called", { tools: [READ_FILE, LIST], toolChoice: "required" }, {
    calls: [call("call_1", "list")],
  }),
  conversation("a tool that must be called", { tools: [READ_FILE, LIST], toolChoice: { name: "list" } }, {
    calls: [call("call_1", "list")],
  }),
  conversation("one call at a time", { tools: [READ_FILE], toolChoice: "auto", parallel: false }),
  conversation("one call at a time, and one that must be", {
    tools: [READ_FILE],
    toolChoice: { name: "read_file" },
    parallel: false,
  }, { calls: [call("call_1", "read_file", { path: "a" })] }),
  conversation("forty tools", {
    tools: Array.from({ length: 40 }, (_, n) => ({ ...READ_FILE, name: `tool-${n}_x` })),
  }, { calls: [call("call_1", "tool-39_x", { path: "a" })] }),
  conversation("an answer held to a schema", { schema: schema("city", "country") }, {
    text: '{"city":"Bern","country":"CH"}',
  }),
  conversation("an answer cut by the limit", { maxTokens: 4_096 }, { text: "And then", stop: "length" }),
  conversation("an empty answer at the limit", { maxTokens: 1 }, {
    text: "",
    stop: "length",
    usage: { ...USAGE, input: 8, output: 1 },
  }),
  conversation("an answer stopped by a filter", {}, { text: "I was about", stop: "filter" }),
  conversation("a refusal in words", {}, { text: "I can't help with that.", stop: "filter" }, true),
  conversation("reasoning before an answer", { effort: "high" }, {
    reasoning: "The user greets me.",
    usage: { ...USAGE, output: 40, reasoning: 25 },
  }),
  conversation("reasoning before tool calls", { effort: "medium", tools: [READ_FILE] }, {
    reasoning: "I need the file.",
    text: "Looking.",
    calls: [call("call_1", "read_file", { path: "a" })],
  }),
  conversation("reasoning in several parts", { effort: "low" }, {
    reasoning: "First this.\n\nThen that: 漢字\n\nAt last the rest.",
  }),
  conversation("no reasoning", { effort: "none" }),
  conversation("temperature and top-p", { temperature: 0.3, topP: 0.8 }),
  conversation("stop sequences", { stop: ["STOP", "\n\n"] }, { text: "one line" }),
  conversation("a user's label", { user: "user-7f3a" }),
  conversation("usage with cached tokens", {}, {
    usage: { input: 12_500, cached: 11_008, written: 500, output: 40, reasoning: 0 },
  }),
  conversation("no usage at all", {}, { usage: null }),
  conversation("a long answer", {}, { text: "All work and no play makes Jack a dull boy.\n".repeat(60) }),
  conversation("an answer that looks like a stream", {}, {
    text: 'event: error\ndata: {"error":1}\n\ndata: [DONE]\n\n: ping\r\n\r\n',
  }),
  conversation("code with line ends of all kinds", {
    turns: [user("```\r\na\rb\nc\r\n```")],
  }, { text: "```js\r\nconst a = `${'$'}{b}`;\r\n```\r" }),
];

export const REFUSED: readonly RefusedConversation[] = [
  {
    name: "a part nobody knows",
    bodies: {
      chat: {
        body: { messages: [{ role: "user", content: [{ type: "zz_new", x: 1 }] }] },
        part: 'messages[0].content[0].type "zz_new"',
      },
      responses: {
        body: { input: [{ role: "user", content: [{ type: "zz_new", x: 1 }] }] },
        part: 'input[0].content[0].type "zz_new"',
      },
      messages: {
        body: { messages: [{ role: "user", content: [{ type: "zz_new", x: 1 }] }] },
        part: 'messages[0].content[0].type "zz_new"',
      },
    },
  },
  {
    name: "a turn nobody knows",
    bodies: {
      chat: { body: { messages: [{ role: "zz", content: "x" }] }, part: 'messages[0].role "zz"' },
      responses: { body: { input: [{ type: "zz_new" }] }, part: 'input[0].type "zz_new"' },
      messages: { body: { messages: [{ role: "zz", content: "x" }] }, part: 'messages[0].role "zz"' },
    },
  },
  {
    name: "a field nobody knows",
    bodies: {
      chat: { body: { zz: 1 }, part: "zz" },
      responses: { body: { zz: 1 }, part: "zz" },
      messages: { body: { zz: 1 }, part: "zz" },
    },
  },
  {
    name: "a tool nobody knows",
    bodies: {
      chat: { body: { tools: [{ type: "zz" }] }, part: 'tools[0].type "zz"' },
      responses: { body: { tools: [{ type: "zz" }] }, part: 'tools[0].type "zz"' },
      messages: { body: { tools: [{ type: "zz", name: "zz" }] }, part: 'tools[0].type "zz"' },
    },
  },
  {
    name: "audio",
    bodies: {
      chat: {
        body: {
          messages: [{
            role: "user",
            content: [{ type: "input_audio", input_audio: { data: "", format: "wav" } }],
          }],
        },
        part: 'messages[0].content[0].type "input_audio"',
      },
      responses: {
        body: { input: [{ role: "user", content: [{ type: "input_audio" }] }] },
        part: 'input[0].content[0].type "input_audio"',
      },
      messages: {
        body: { messages: [{ role: "user", content: [{ type: "audio" }] }] },
        part: 'messages[0].content[0].type "audio"',
      },
    },
  },
  {
    name: "more than one answer",
    bodies: {
      chat: { body: { n: 2 }, part: "n" },
      responses: { body: { n: 2 }, part: "n" },
      messages: { body: { n: 2 }, part: "n" },
    },
  },
];
