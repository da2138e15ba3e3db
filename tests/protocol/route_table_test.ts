/** The documents' tables of routes say what the route table says, row by row, in both languages. */
import { assertEquals } from "@std/assert";
import { type Route, ROUTES } from "../../lib/protocol/route.ts";

const WORDS = {
  "docs/routes.md": {
    upgrade: "upgrade",
    base: { codex: "Codex", chatgpt: "ChatGPT", any: "by model" },
    replay: { replayable: "yes", json_only: "JSON bodies only", once: "never" },
    untilUpgrade: "until the upgrade",
  },
  "docs/zh/routes.md": {
    upgrade: "升级",
    base: { codex: "Codex", chatgpt: "ChatGPT", any: "按模型" },
    replay: { replayable: "可以", json_only: "仅 JSON 请求体", once: "从不" },
    untilUpgrade: "升级之前",
  },
} as const;

type Words = (typeof WORDS)[keyof typeof WORDS];

function row(route: Route, words: Words): string[] {
  return [
    route.methods.join(", ") + (route.websocket ? ` + ${words.upgrade}` : ""),
    route.paths.map((path) => `\`${path}\``).join(" "),
    words.base[route.base],
    `\`${route.upstreamPath}\``,
    route.websocket && route.replay === "replayable" ? words.untilUpgrade : words.replay[route.replay],
  ];
}

for (const [path, words] of Object.entries(WORDS)) {
  Deno.test(`${path} lists every route as it is`, () => {
    const text = Deno.readTextFileSync(new URL(`../../${path}`, import.meta.url));
    const rows = text.split("\n").filter((line) => line.startsWith("|")).slice(2)
      .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
    assertEquals(rows, ROUTES.map((route) => row(route, words)));
  });
}
