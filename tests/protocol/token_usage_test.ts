import { assertEquals } from "@std/assert";
import {
  mergeUsage,
  readChatUsage,
  readMessagesUsage,
  readResponsesUsage,
} from "../../lib/protocol/token_usage.ts";

const ZERO = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

for (const [name, read] of Object.entries({ readResponsesUsage, readChatUsage, readMessagesUsage })) {
  Deno.test(`${name}() is null where nothing is stated, and 0 where a count is no count`, () => {
    for (const nothing of [null, undefined, 3, "x", []]) assertEquals(read(nothing), null);
    assertEquals(read({}), ZERO);
    const odd = { input_tokens: "7", prompt_tokens: -1, output_tokens: 1.5, completion_tokens: NaN };
    assertEquals(read(odd), ZERO);
  });
}

Deno.test("readResponsesUsage() believes a thousand million tokens, and no more", () => {
  const cases = [[1_000_000_000, 1_000_000_000], [1_000_000_001, 0], [Number.MAX_SAFE_INTEGER, 0], [
    1e300,
    0,
  ]];
  for (const [stated, want] of cases) {
    assertEquals(readResponsesUsage({ input_tokens: stated })?.inputTokens, want);
  }
});

Deno.test("mergeUsage() takes the later of running totals, and whatever there is", () => {
  const start = { inputTokens: 12500, cachedTokens: 11008, outputTokens: 1, reasoningTokens: 0 };
  const delta = { ...ZERO, outputTokens: 40 };
  assertEquals(mergeUsage(start, delta), { ...start, outputTokens: 40 });
  assertEquals(mergeUsage(null, delta), delta);
  assertEquals(mergeUsage(start, null), start);
  assertEquals(mergeUsage(null, null), null);
});
