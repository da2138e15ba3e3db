import { assertEquals } from "@std/assert";
import { assessReplay, type BodyKnowledge, type ReplayClass } from "../../lib/core/replay.ts";

const NONE: BodyKnowledge = { kind: "none", lengthBytes: null };
const SMALL: BodyKnowledge = { kind: "known", lengthBytes: 2 };
const known = (lengthBytes: number | null): BodyKnowledge => ({ kind: "known", lengthBytes });

interface Row {
  name: string;
  replay: ReplayClass | null;
  method: string;
  contentType: string | null;
  body: BodyKnowledge;
  reason: string;
}

const post = (name: string, body: BodyKnowledge, reason: string): Row => ({
  name,
  replay: "replayable",
  method: "POST",
  contentType: "application/json",
  body,
  reason,
});
const typed = (name: string, contentType: string | null, reason: string): Row => ({
  name,
  replay: "json_only",
  method: "POST",
  contentType,
  body: SMALL,
  reason,
});

const cases: Row[] = [
  post("empty body", known(0), "replayable"),
  post("no body", NONE, "replayable"),
  post("one byte under 32 MiB", known(33_554_431), "replayable"),
  post("exactly 32 MiB", known(33_554_432), "replayable"),
  post("one byte over 32 MiB", known(33_554_433), "body_too_large"),
  post("buffer gave up at its limit", { kind: "over_limit", lengthBytes: 33_554_433 }, "body_too_large"),
  post("over the limit with unknown length", { kind: "over_limit", lengthBytes: null }, "body_too_large"),
  post("chunked", { kind: "unknown", lengthBytes: null }, "body_length_unknown"),
  post(
    "chunked although some bytes were counted",
    { kind: "unknown", lengthBytes: 5 },
    "body_length_unknown",
  ),
  post("read failed", { kind: "failed", lengthBytes: 5 }, "body_read_failed"),
  post("known but without a length", known(null), "body_length_unknown"),
  post("negative length", known(-1), "body_length_unknown"),
  post("length that is no number", known(Number.NaN), "body_length_unknown"),
  { ...post("GET", NONE, "replayable"), method: "GET" },
  { ...post("HEAD", NONE, "replayable"), method: "HEAD" },
  { ...post("PUT on a repeatable route", SMALL, "method"), method: "PUT" },
  { ...post("DELETE on a repeatable route", NONE, "method"), method: "DELETE" },
  { ...post("lower-case post is another method", SMALL, "method"), method: "post" },
  { ...post("once-only route", SMALL, "once_only_route"), replay: "once" },
  { ...post("once-only GET", NONE, "once_only_route"), replay: "once", method: "GET" },
  { ...post("unknown write", SMALL, "unknown_route"), replay: null },
  { ...post("unknown read", NONE, "unknown_route"), replay: null, method: "GET" },
  typed("JSON", "application/json", "replayable"),
  typed("JSON with parameters and odd case", "Application/JSON ; charset=utf-8", "replayable"),
  typed("structured JSON suffix", "application/vnd.api+json", "replayable"),
  typed("absent", null, "replayable"),
  typed("empty", "  ", "replayable"),
  typed("multipart", "multipart/form-data; boundary=x", "content_type"),
  typed("plain text", "text/plain", "content_type"),
  typed("JSON only as a parameter", "text/plain; x=application/json", "content_type"),
  typed("name that merely begins like JSON", "application/jsonp", "content_type"),
];

for (const c of cases) {
  Deno.test(`assessReplay() says ${c.reason}: ${c.name}`, () => {
    assertEquals(assessReplay(c.replay, c.method, c.contentType, c.body), {
      replayable: c.reason === "replayable",
      reason: c.reason,
    });
  });
}
