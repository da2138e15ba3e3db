/** Walks the whole route table against the allow-list of state-machine-facts 2A.6, row by row. */
import { assertEquals } from "@std/assert";
import { assessReplay, type BodyKnowledge } from "../../lib/core/replay.ts";
import { type RouteName, ROUTES } from "../../lib/protocol/route.ts";

const JSON_BODY: BodyKnowledge = { kind: "known", lengthBytes: 64 };
const NO_BODY: BodyKnowledge = { kind: "none", lengthBytes: null };

/** What may be sent twice, with a JSON body or none, and with a multipart body. */
const EXPECTED: Record<RouteName, { json: boolean; multipart: boolean }> = {
  responses: { json: true, multipart: true },
  responses_ws: { json: true, multipart: true },
  compact: { json: true, multipart: true },
  search: { json: true, multipart: true },
  images_generations: { json: true, multipart: false },
  images_edits: { json: false, multipart: false },
  trace_summarize: { json: true, multipart: true },
  realtime_calls: { json: false, multipart: false },
  realtime_ws: { json: false, multipart: false },
  files: { json: false, multipart: false },
  files_uploaded: { json: false, multipart: false },
  wham_usage: { json: true, multipart: true },
  wham_profile: { json: true, multipart: true },
  wham_accounts: { json: true, multipart: true },
  wham_nudge: { json: false, multipart: false },
  wham_apps: { json: false, multipart: false },
  mcp: { json: false, multipart: false },
  chat: { json: true, multipart: true },
  messages: { json: true, multipart: true },
  count_tokens: { json: true, multipart: true },
};

Deno.test("the replay expectations name every route once", () => {
  assertEquals(ROUTES.map((route) => route.name).toSorted(), Object.keys(EXPECTED).toSorted());
});

for (const route of ROUTES) {
  for (const method of route.methods) {
    const want = EXPECTED[route.name];
    const body = method === "POST" ? JSON_BODY : NO_BODY;
    Deno.test(`assessReplay() ${want.json ? "allows" : "denies"} a second ${method} of ${route.name}`, () => {
      assertEquals(assessReplay(route.replay, method, "application/json", body).replayable, want.json);
      assertEquals(assessReplay(route.replay, method, null, body).replayable, want.json);
    });
    Deno.test(`assessReplay() judges a multipart ${method} of ${route.name}`, () => {
      const multipart = assessReplay(route.replay, method, "multipart/form-data; boundary=b", body);
      assertEquals(multipart.replayable, want.multipart);
    });
    Deno.test(`assessReplay() never repeats ${method} of ${route.name} when the body cannot be recreated`, () => {
      for (const kind of ["unknown", "over_limit", "failed"] as const) {
        assertEquals(
          assessReplay(route.replay, method, null, { kind, lengthBytes: null }).replayable,
          false,
        );
      }
    });
  }
}
