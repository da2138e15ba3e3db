import { HeaderFields, type HeaderList } from "../../lib/core/header_fields.ts";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  filterRequestHeaders,
  filterResponseHeaders,
  setHeader,
  websocketUpgradeHeaders,
} from "../../lib/protocol/headers.ts";

/** A list that was never looked at: whatever pairs there are, as they are. */
function listOf(pairs: Iterable<readonly [string, string]>): HeaderList {
  const all = [...pairs];
  const valuesOf = (name: string) =>
    all.filter(([own]) => own.toLowerCase() === name).map(([, value]) => value);
  return {
    get: (name) => has(name) ? valuesOf(name).join(", ") : null,
    has,
    forEach: (callback) => all.forEach(([name, value]) => callback(value, name)),
  };
  function has(name: string): boolean {
    return valuesOf(name).length > 0;
  }
}

function sorted(fields: HeaderFields): [string, string][] {
  return [...fields].sort(([a], [b]) => a < b ? -1 : 1);
}

type Pairs = [string, string][];

const requestCases: { name: string; input: Pairs; want: Pairs }[] = [
  {
    name: "ordinary headers, lower-cased",
    input: [["Content-Type", "application/json"], ["Session_Id", "s"], ["User-Agent", "codex/1"]],
    want: [["content-type", "application/json"], ["session_id", "s"], ["user-agent", "codex/1"]],
  },
  {
    name: "hop-by-hop in any case",
    input: [
      ["CONNECTION", "keep-alive"],
      ["Keep-Alive", "timeout=5"],
      ["Proxy-Connection", "close"],
      ["Proxy-Authorization", "SENT-proxy"],
      ["TE", "trailers"],
      ["Trailer", "x-end"],
      ["Transfer-Encoding", "chunked"],
      ["Upgrade", "websocket"],
      ["HTTP2-Settings", "x"],
      ["accept", "*/*"],
    ],
    want: [["accept", "*/*"]],
  },
  {
    name: "names listed in Connection, odd spacing and case, two Connection lines",
    input: [
      ["Connection", " X-Hop ,close"],
      ["connection", "x-other"],
      ["x-hop", "1"],
      ["X-Other", "2"],
      ["x-stays", "3"],
    ],
    want: [["x-stays", "3"]],
  },
  {
    name: "the client's keys and cookies",
    input: [
      ["Authorization", "Bearer SENT-client"],
      ["X-Api-Key", "SENT-client"],
      ["api-key", "SENT-client"],
      ["Cookie", "a=SENT-client"],
      ["version", "0.171.0"],
    ],
    want: [["version", "0.171.0"]],
  },
  {
    name: "where the client came from",
    input: [
      ["X-Forwarded-For", "10.0.0.1"],
      ["x-forwarded-proto", "http"],
      ["Forwarded", "for=10.0.0.1"],
      ["Via", "1.1 x"],
      ["X-Real-IP", "10.0.0.1"],
      ["True-Client-IP", "10.0.0.1"],
      ["CF-Ray", "x"],
      ["cf-connecting-ip", "10.0.0.1"],
      ["Origin", "http://a.test"],
      ["Referer", "http://a.test/x"],
      ["Sec-Fetch-Mode", "cors"],
      ["originator", "codex_cli_rs"],
    ],
    want: [["originator", "codex_cli_rs"]],
  },
  {
    name: "SDK telemetry and what the next hop makes anew",
    input: [
      ["X-Stainless-Lang", "js"],
      ["x-stainless-retry-count", "1"],
      ["Host", "127.0.0.1"],
      ["Content-Length", "12"],
      ["Content-Encoding", "zstd"],
      ["Accept-Encoding", "gzip"],
      ["Expect", "100-continue"],
      ["Sec-WebSocket-Key", "x"],
      ["sec-websocket-extensions", "permessage-deflate"],
      ["x-codex-beta-features", "a,b"],
    ],
    want: [["x-codex-beta-features", "a,b"]],
  },
  {
    name: "repeats stay, in order, whatever their case",
    input: [["X-A", "1"], ["x-b", "9"], ["x-a", "2"]],
    want: [["x-a", "1, 2"], ["x-b", "9"]],
  },
  {
    name: "an empty value stays",
    input: [["x-codex-turn-metadata", ""]],
    want: [["x-codex-turn-metadata", ""]],
  },
  {
    name: "values and names that would split the head are left out",
    input: [
      ["x-a", "1\r\nx-evil: 1"],
      ["x-b", "1\nx-evil: 1"],
      ["x-c\r\nx-evil", "1"],
      ["x d", "1"],
      ["", "1"],
      ["x-e", "a\0b"],
      ["x-f", "北"],
      ["x-g", "caf\u00e9"],
    ],
    want: [["x-g", "caf\u00e9"]],
  },
];
for (const c of requestCases) {
  Deno.test(`filterRequestHeaders() lets only the upstream's share pass: ${c.name}`, () => {
    assertEquals(sorted(filterRequestHeaders(listOf(c.input))), c.want);
  });
}

const responseCases: { name: string; input: Pairs; bodyUnchanged: boolean; want: Pairs }[] = [
  {
    name: "quota, model and content headers",
    input: [
      ["Content-Type", "text/event-stream"],
      ["X-Codex-Primary-Used-Percent", "12"],
      ["x-codex-turn-state", "ts"],
      ["OpenAI-Model", "m"],
      ["openai-processing-ms", "5"],
      ["X-Models-Etag", "e"],
      ["Retry-After", "5"],
      ["Location", "/v1/realtime/calls/rtc_1"],
    ],
    bodyUnchanged: true,
    want: [
      ["content-type", "text/event-stream"],
      ["location", "/v1/realtime/calls/rtc_1"],
      ["openai-model", "m"],
      ["openai-processing-ms", "5"],
      ["retry-after", "5"],
      ["x-codex-primary-used-percent", "12"],
      ["x-codex-turn-state", "ts"],
      ["x-models-etag", "e"],
    ],
  },
  {
    name: "edge, transport and cookies",
    input: [
      ["Set-Cookie", "__cf_bm=SENT-cookie"],
      ["set-cookie", "b=SENT-cookie"],
      ["Server", "cloudflare"],
      ["CF-Ray", "r"],
      ["cf-cache-status", "DYNAMIC"],
      ["Alt-Svc", "h3"],
      ["Strict-Transport-Security", "max-age=1"],
      ["NEL", "{}"],
      ["Report-To", "{}"],
      ["WWW-Authenticate", "Bearer"],
      ["Access-Control-Allow-Origin", "*"],
      ["Date", "Thu, 01 Jan 1970 00:00:00 GMT"],
      ["Connection", "close, x-hop"],
      ["x-hop", "1"],
      ["Transfer-Encoding", "chunked"],
      ["x-keeps", "1"],
    ],
    bodyUnchanged: true,
    want: [["x-keeps", "1"]],
  },
  {
    name: "length and coding while they hold",
    input: [["Content-Length", "10"], ["Content-Encoding", "gzip"]],
    bodyUnchanged: true,
    want: [["content-encoding", "gzip"], ["content-length", "10"]],
  },
  {
    name: "length and coding of a body that changed",
    input: [["Content-Length", "10"], ["Content-Encoding", "gzip"], ["content-type", "application/json"]],
    bodyUnchanged: false,
    want: [["content-type", "application/json"]],
  },
  {
    name: "the upstream's request id moves aside for ours",
    input: [["X-Request-Id", " 8f7c-1 "]],
    bodyUnchanged: true,
    want: [["x-upstream-request-id", "8f7c-1"]],
  },
  {
    name: "a request id that is no id is dropped",
    input: [["x-request-id", "a b"]],
    bodyUnchanged: true,
    want: [],
  },
  {
    name: "nothing that would split the head",
    input: [["x-a", "1\r\nset-cookie: x=1"], ["x-request-id", "1\r\nx-evil: 1"]],
    bodyUnchanged: true,
    want: [],
  },
];
for (const c of responseCases) {
  Deno.test(`filterResponseHeaders() lets only the client's share pass: ${c.name}`, () => {
    assertEquals(sorted(filterResponseHeaders(listOf(c.input), c.bodyUnchanged)), c.want);
  });
}

Deno.test("websocketUpgradeHeaders() hands on the five headers Codex reads and invents none", () => {
  const upstream = new Headers({
    "x-codex-turn-state": "ts-A1",
    "X-Models-Etag": "e1",
    "x-reasoning-included": "true",
    "openai-model": "m",
    "x-codex-websocket-max-message-bytes": "16777216",
    "sec-websocket-accept": "x",
    "set-cookie": "a=SENT-cookie",
  });
  assertEquals(sorted(websocketUpgradeHeaders(upstream)), [
    ["openai-model", "m"],
    ["x-codex-turn-state", "ts-A1"],
    ["x-codex-websocket-max-message-bytes", "16777216"],
    ["x-models-etag", "e1"],
    ["x-reasoning-included", "true"],
  ]);
  assertEquals([...websocketUpgradeHeaders(new Headers())], []);
});

Deno.test("setHeader() leaves a broken value out instead of throwing it into a message", () => {
  const headers = new HeaderFields();
  setHeader(headers, "authorization", "Bearer SENT-token\nx: 1");
  assertEquals([...headers], []);
  setHeader(headers, "authorization", "Bearer SENT-token");
  assertEquals(headers.get("authorization"), "Bearer SENT-token");
});

Deno.test("both filters accept any pairs and never let one become two", () => {
  const pair = fc.tuple(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }));
  fc.assert(fc.property(fc.array(pair), fc.boolean(), (pairs, bodyUnchanged) => {
    const list = listOf(pairs);
    for (const kept of [filterRequestHeaders(list), filterResponseHeaders(list, bodyUnchanged)]) {
      for (const [name, value] of kept) assert(!/[\r\n\0]/.test(name + value));
    }
  }));
});
