/** Fields of the Responses API that no other protocol has a place for, and what becomes of each. */
import type { FieldRules } from "./report.ts";

const STORED = "the state it names is stored upstream";
const BOOKKEEPING = "bookkeeping that changes no answer";
const ALONE = "no counterpart in the other protocol";

export const RESPONSES_ONLY_FIELDS: FieldRules = {
  store: { kind: "default_only", defaults: [false, true], why: STORED },
  stream_options: { kind: "hint", why: BOOKKEEPING },
  client_metadata: { kind: "hint", why: BOOKKEEPING },
  background: {
    kind: "default_only",
    defaults: [false],
    why: "background answers are the Responses API's own",
  },
  truncation: { kind: "default_only", defaults: ["disabled"], why: "nothing upstream shortens the input" },
  previous_response_id: { kind: "refused", why: STORED },
  conversation: { kind: "refused", why: STORED },
  prompt: { kind: "refused", why: STORED },
  max_tool_calls: { kind: "refused", why: ALONE },
  context_management: { kind: "refused", why: ALONE },
  moderation: { kind: "refused", why: ALONE },
};
