/**
 * The tables of docs/translation.md and docs/zh/translation.md, made from the translators themselves.
 *
 * Fields come from the rules each side applies; the conversations from running the suite's fixtures.
 */
import { CHAT_CLIENT_FIELDS } from "../../lib/protocol/translate/chat_client_request.ts";
import { CHAT_UPSTREAM_FIELDS } from "../../lib/protocol/translate/chat_upstream_request.ts";
import { translatorFor } from "../../lib/protocol/translate/compose.ts";
import { MESSAGES_CLIENT_FIELDS } from "../../lib/protocol/translate/messages_client_request.ts";
import { MESSAGES_UPSTREAM_FIELDS } from "../../lib/protocol/translate/messages_upstream_request.ts";
import type { FieldRule, FieldRules } from "../../lib/protocol/translate/report.ts";
import { CODEX_DROPPED_FIELDS } from "../../lib/protocol/translate/targets.ts";
import { CONVERSATIONS, REFUSED } from "../protocol/translate/conversations.ts";
import { seededSplitter } from "./conversation_answers.ts";
import type { Conversation } from "./conversation_model.ts";
import {
  carryAnswer,
  carryRequest,
  carryStream,
  expectedAnswer,
  expectedRequest,
  PAIRS,
  streamBytes,
  understoodAnswer,
  understoodRequest,
} from "./conversation_pairs.ts";
import { renderRequest } from "./conversation_requests.ts";
import { translateContext } from "./translation.ts";
import { CHINESE } from "./translation_words_zh.ts";

export type Language = "en" | "zh";

/** Names of fields, which no language translates. */
const FIELD_NAMES = /^[a-z_.]+(, [a-z_.]+)*$/;

/** Words of a table in its language; a word without a translation is an error, so that none stays behind. */
function wordsOf(language: Language): (english: string) => string {
  if (language === "en") return (english) => english;
  return (english) => {
    const word = CHINESE[english] ?? (FIELD_NAMES.test(english) ? english : undefined);
    if (word === undefined) throw new Error(`No Chinese for: ${english}`);
    return word;
  };
}

export const TABLES: Readonly<Record<string, (language: Language) => string>> = {
  "chat-client": (language) => fieldTable(CHAT_CLIENT_FIELDS, language),
  "messages-client": (language) => fieldTable(MESSAGES_CLIENT_FIELDS, language),
  "chat-upstream": (language) => fieldTable(CHAT_UPSTREAM_FIELDS, language),
  "messages-upstream": (language) => fieldTable(MESSAGES_UPSTREAM_FIELDS, language),
  "codex-dropped": () => [...CODEX_DROPPED_FIELDS].sort().map((field) => `\`${field}\``).join(", "),
  "conversations": conversationTable,
};

function fieldTable(rules: FieldRules, language: Language): string {
  const say = wordsOf(language);
  const rows = Object.entries(rules).map(([field, rule]) => [`\`${field}\``, ...ruleCells(rule, say)]);
  return table([say("field"), say("what becomes of it"), say("as, or why")], rows);
}

function ruleCells(rule: FieldRule, say: (english: string) => string): [string, string] {
  switch (rule.kind) {
    case "carried":
      return [say("carried"), say(rule.as)];
    case "hint":
      return [say("left out, with a note"), say(rule.why)];
    case "default_only": {
      const values = rule.defaults.map((one) => `\`${JSON.stringify(one)}\``).join(", ");
      return [`${say("refused, except for")} ${values}`, say(rule.why)];
    }
    case "refused":
      return [say("refused"), say(rule.why)];
  }
}

function conversationTable(language: Language): string {
  const say = wordsOf(language);
  const header = [say("conversation"), ...PAIRS.map(({ client, upstream }) => `${client} → ${upstream}`)];
  const rows = CONVERSATIONS.map((conversation) => [
    say(conversation.name),
    ...PAIRS.map(({ client, upstream }) => outcomeOf(conversation, client, upstream)),
  ]);
  const refused = REFUSED.map(({ name, bodies }) => [
    say(name),
    ...PAIRS.map(({ client, upstream }) => {
      const translator = translatorFor(client, upstream);
      if (translator === null) return "=";
      const bare = renderRequest(client, { turns: [{ who: "user", parts: ["hi"] }], maxTokens: 9 }, false);
      const result = translator.request({ ...bare, ...bodies[client].body }, translateContext());
      return result.ok ? "?" : `400 \`${result.part}\``;
    }),
  ]);
  return table(header, [...rows, ...refused]);
}

/** `✓✓`: whole and streamed are carried with their meaning. A pair that fails is said to. */
function outcomeOf(
  conversation: Conversation,
  ...[client, upstream]: Parameters<typeof translatorFor>
): string {
  const translator = translatorFor(client, upstream);
  if (translator === null) return "=";
  const carried = carryRequest(translator, conversation, true);
  const whole = carryAnswer(translator, conversation, carried.memory);
  const bytes = streamBytes(upstream, conversation, seededSplitter(1, 9));
  const streamed = carryStream(translator, bytes, carried.memory, () => []);
  const meant = same(understoodRequest(carried, upstream), expectedRequest(conversation.request, upstream)) &&
    same(understoodAnswer(client, whole), expectedAnswer(conversation, client));
  return `${meant ? "✓" : "✗"}${same(streamed, whole) ? "✓" : "✗"}`;
}

function same(left: unknown, right: unknown): boolean {
  return sorted(left) === sorted(right);
}

function sorted(value: unknown): string {
  return JSON.stringify(
    value,
    (_key, one) =>
      one !== null && typeof one === "object" && !Array.isArray(one)
        ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => a < b ? -1 : 1))
        : one,
  );
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

/** The document with each `<!-- table:NAME -->` … `<!-- /table -->` filled anew. */
export function withTables(document: string, language: Language): string {
  return document.replaceAll(
    /(<!-- table:([a-z-]+) -->\n)[\s\S]*?(<!-- \/table -->)/g,
    (_all, open: string, name: string, close: string) => {
      const make = TABLES[name];
      if (make === undefined) throw new Error(`No such table: ${name}`);
      // The formatter would pad the cells; the ignore marks keep the text as it is made.
      return `${open}<!-- deno-fmt-ignore-start -->\n\n${
        make(language)
      }\n\n<!-- deno-fmt-ignore-end -->\n${close}`;
    },
  );
}
