/** What is fuzzed: each target takes one broken input and must neither throw nor break its own promise. */
import { parseConfig } from "../../lib/config.ts";
import { classify } from "../../lib/core/classify.ts";
import {
  compareCopies,
  credentialOwner,
  fingerprintInput,
  maskEmail,
  parseCredentialFile,
} from "../../lib/core/credential.ts";
import { parseMessageDelay, parseRetryAfter } from "../../lib/core/retry_after.ts";
import { dialectOf } from "../../lib/protocol/dialects.ts";
import { readErrorFacts } from "../../lib/protocol/error_body.ts";
import { filterRequestHeaders, filterResponseHeaders } from "../../lib/protocol/headers.ts";
import { editTopLevel, scanTopLevel } from "../../lib/protocol/json_scan.ts";
import { ResponsesAggregator } from "../../lib/protocol/responses_aggregate.ts";
import { readSessionSignals } from "../../lib/protocol/session_signals.ts";
import { SseFramer } from "../../lib/protocol/sse.ts";
import { translatorFor } from "../../lib/protocol/translate/compose.ts";
import { isObject, type JsonObject } from "../../lib/protocol/translate/json.ts";
import type { AnswerContext, TranslatedProtocol } from "../../lib/protocol/translate/translator.ts";
import { descriptorFor } from "../../lib/providers/registry.ts";
import { readBodyFields } from "../../lib/proxy/request_body.ts";
import { type Bytes, equal, join, promise, type Source } from "./mutate.ts";
import { readChunks, readFrames, readHeads, readQueries, readTargets, unpack } from "./wire_targets.ts";

export interface Target {
  readonly name: string;
  /** @throws Error when a promise is broken; whatever else is thrown is a crash. */
  run(source: Source): void | Promise<void>;
}

const DECODER = new TextDecoder();
const PROTOCOLS: readonly TranslatedProtocol[] = ["responses", "chat", "messages"];
const KINDS = ["codex", "anthropic", "zai", "openai"] as const;
const SAFE_CODE = /^[a-z0-9_]{1,64}$/;

const STREAMS = [
  'event: response.created\ndata: {"type":"response.created","response":{"id":"r1"}}\n\nevent: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"é北🚀"}\n\ndata: {"type":"response.completed","response":{"id":"r1","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}\n\n',
  'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"hi","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\\"a\\""}}]}}]}\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
  'data: {"type":"error","error":{"code":"server_is_overloaded","message":"x"}}\n\ndata: {"type":"codex.rate_limits","rate_limits":{"primary":{"used_percent":1,"window_minutes":300,"reset_at":1}}}\n\n: ping\r\n\r\nid: 7\rdata: null\r\r',
];

const REQUESTS = [
  '{"model":"m","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}],"tools":[{"type":"function","name":"f","parameters":{}}],"reasoning":{"effort":"high"},"prompt_cache_key":"k"}',
  '{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{oops"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function","function":{"name":"f"}}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}}',
  '{"model":"m","max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"}]}]}],"metadata":{"user_id":"u_session_1"}}',
];

const ANSWERS = [
  '{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2}}',
  '{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
  '{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}',
];

const ERRORS = [
  '{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1775317531,"resets_in_seconds":602705}}',
  '{"detail":{"code":"deactivated_workspace"}}',
  '{"type":"error","error":{"type":"rate_limit_error","message":"x","details":{"error_code":"y"}},"request_id":null}',
  '{"error":{"code":"1308","message":"[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-08-27 21:31:39][2026]"}}',
  "<html><title>Just a moment...</title></html>",
  '{"error":{"message":"Rate limit reached. Please try again in 6m0s.","code":"rate_limit_exceeded"}}',
];

/** As long and mixed as real keys are: what looks like a word may be told as a wrong key, what looks like a key may not. */
const SECRETS = ["sk-SENT-4f9A7b2C8d1E6f3G5h7J", "hf_SENT8Kq2Lm5Np9Rs3Tv6Wx", "SENTpw7Yz4Bc8Df2Gh"] as const;

const CONFIGS = [
  'port: 1\nauth-dir: "~/x"\npools:\n  - name: a\n    members:\n      - { provider: codex, model: m, weight: 3 }\n',
  `request-retry: 3\nstreaming:\n  recovery: { attempts: 2 }\nproviders:\n  - { id: c, kind: anthropic, accounts: [{ id: a, api-key: ${
    SECRETS[0]
  } }] }\n`,
  `api-keys: ["${SECRETS[0]}"]\nadmin-api-key: "${SECRETS[1]}"\nproxy-url: "http://u:${SECRETS[2]}@h:1"\n`,
];

const CREDENTIALS = [
  '{"auth_mode":"chatgpt","tokens":{"id_token":"a.eyJlbWFpbCI6ImEifQ.c","access_token":"SENT-a","refresh_token":"SENT-r","account_id":"x"},"last_refresh":"2026-01-01T00:00:00Z"}',
  '{"type":"codex","access_token":"SENT-a","refresh_token":"SENT-r","expired":"2026-01-01T00:00:00Z"}',
  '{"claudeAiOauth":{"accessToken":"SENT-a","refreshToken":"SENT-r","expiresAt":1767225600000,"scopes":[]}}',
];

const HEADERS = [
  "connection: close, x-foo",
  "connection: authorization,  X-Codex-Turn-State ,,",
  "x-foo: 1",
  "set-cookie: a=b; Path=/",
  "server: x",
  "x-forwarded-for: 127.0.0.1",
  "transfer-encoding: chunked",
  "cookie: a=b",
  "x-codex-turn-state: t",
  "retry-after: Wed, 21 Oct 2026 07:28:00 GMT",
  "x-codex-primary-used-percent: 1e9",
  "anthropic-ratelimit-unified-5h-utilization: 1.08",
  "content-length: 12",
];

export const TARGETS: readonly Target[] = [
  { name: "sse framer", run: frameStream },
  { name: "json scan", run: scanBody },
  { name: "error bodies and classifiers", run: classifyError },
  { name: "configuration", run: readConfig },
  { name: "credential files", run: readCredentials },
  { name: "headers", run: filterHeaders },
  { name: "request translation", run: translateRequests },
  { name: "answer translation", run: translateAnswers },
  { name: "stream translation", run: translateStreams },
  { name: "times", run: readTimes },
  { name: "answer heads", run: readHeads },
  { name: "chunked bodies", run: readChunks },
  { name: "content codings", run: unpack },
  { name: "request targets", run: readTargets },
  { name: "websocket frames", run: readFrames },
  { name: "management queries", run: readQueries },
];

function frameStream(source: Source): void {
  const bytes = source.broken(STREAMS);
  const framer = new SseFramer();
  const given: Bytes[] = [];
  const dialects = PROTOCOLS.map(dialectOf);
  const aggregator = new ResponsesAggregator();
  const take = (frames: ReturnType<SseFramer["push"]>): void => {
    for (const frame of frames) {
      given.push(frame.raw.slice());
      for (const dialect of dialects) dialect.readEvent(frame);
      aggregator.add(frame, dialects[0]!.readEvent(frame));
    }
  };
  for (const piece of source.cut(bytes)) take(framer.push(piece));
  take(framer.end());
  aggregator.result();
  promise(equal(join(...given, framer.tail().slice()), bytes), "the frames and the tail are not the input");
}

function scanBody(source: Source): void {
  const bytes = source.broken(REQUESTS);
  readBodyFields(bytes);
  const scan = scanTopLevel(bytes);
  if (!scan.ok) return;
  const same = editTopLevel(bytes, scan.members, []);
  promise(equal(same, bytes), "an edit of nothing changed something");
  const edited = editTopLevel(bytes, scan.members, [{ key: "model", json: '"x"' }, {
    key: "stream",
    remove: true,
  }]);
  promise(scanTopLevel(edited).ok, "an edited body cannot be read any more");
}

function classifyError(source: Source): void {
  const bytes = source.broken(ERRORS);
  const error = readErrorFacts(bytes, source.pick(["application/json", "text/html", null]));
  const headers = makeHeaders(source);
  const status = source.pick([400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503, 504, 529, 200]);
  const evidence = status === 200
    ? { kind: "in_stream" as const, error, headers }
    : { kind: "http" as const, status, headers, error };
  for (const kind of KINDS) {
    const signal = descriptorFor(kind).readSignal(evidence, { nowMs: 1_800_000_000_000, model: "m" });
    const outcome = classify(evidence, signal, { nowMs: 1_800_000_000_000 });
    promise(SAFE_CODE.test(outcome.code), `a code is not safe: ${outcome.code}`);
    descriptorFor(kind).readQuotaHeaders(headers, 1_800_000_000_000);
  }
}

function readConfig(source: Source): void {
  const parsed = parseConfig(DECODER.decode(source.broken(CONFIGS)), {
    homeDir: "/home/x",
    get: () => undefined,
  });
  if (parsed.ok) return;
  const told = JSON.stringify(parsed.mistakes);
  promise(!SECRETS.some((secret) => told.includes(secret)), "a mistake repeats a secret");
}

function readCredentials(source: Source): void {
  const parsed = parseCredentialFile(DECODER.decode(source.broken(CREDENTIALS)));
  if (parsed.kind !== "credential") {
    return promise(!JSON.stringify(parsed).includes("SENT-"), "a reason repeats a token");
  }
  const { record } = parsed;
  const { email, tokens } = record;
  if (email?.includes("@")) promise(maskEmail(email) !== email, "an e-mail address is shown whole");
  promise(!(credentialOwner(record) ?? "").includes("SENT-"), "an account is named by its token");
  fingerprintInput(tokens);
  const copy = { path: "a", record };
  promise(compareCopies(copy, copy) === 0, "a copy is newer than itself");
}

const NEVER_SENT = [
  "cookie",
  "transfer-encoding",
  "connection",
  "content-length",
  "x-forwarded-for",
  "te",
  "via",
];
const NEVER_SHOWN = [
  "set-cookie",
  "transfer-encoding",
  "connection",
  "content-length",
  "server",
  "keep-alive",
];

function filterHeaders(source: Source): void {
  const headers = makeHeaders(source);
  const listed = (headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase());
  const sent = filterRequestHeaders(headers);
  const shown = filterResponseHeaders(headers, false);
  for (const gone of [...NEVER_SENT, ...listed]) {
    promise(gone === "" || !sent.has(gone), `${gone} goes upstream`);
  }
  for (const gone of NEVER_SHOWN) promise(!shown.has(gone), `${gone} goes to the client`);
  for (const kept of [sent, shown]) {
    for (const [name, value] of kept) promise(!/[\r\n\0]/.test(name + value), "a header breaks its line");
  }
  readSessionSignals(headers, null);
}

function translateRequests(source: Source): void {
  const body = parse(source.broken(REQUESTS));
  if (body === null) return;
  for (const client of PROTOCOLS) {
    for (const upstream of PROTOCOLS) translatorFor(client, upstream)?.request(body, context());
  }
}

function translateAnswers(source: Source): void {
  const body = parse(source.broken(ANSWERS));
  if (body === null) return;
  for (const client of PROTOCOLS) {
    for (const upstream of PROTOCOLS) translatorFor(client, upstream)?.answer(body, answerContext());
  }
}

function translateStreams(source: Source): void {
  const client = source.pick(PROTOCOLS);
  const upstream = source.pick(PROTOCOLS);
  const translation = translatorFor(client, upstream)?.startStream(answerContext());
  if (translation === undefined) return;
  const dialect = dialectOf(upstream);
  const framer = new SseFramer();
  const out: Bytes[] = [];
  for (const piece of source.cut(source.broken(STREAMS))) {
    for (const frame of framer.push(piece)) out.push(...translation.push(frame, dialect.readEvent(frame)));
  }
  out.push(...translation.end({ kind: "closed" }));
  const check = new SseFramer();
  const frames = check.push(join(...out));
  promise(
    check.pendingBytes === 0 && check.end().length === 0,
    "a translated stream does not end at a frame's end",
  );
  promise(frames.every((frame) => frame.closed), "a translated frame lacks its blank line");
}

function readTimes(source: Source): void {
  const text = DECODER.decode(source.broken(HEADERS)).slice(0, 200);
  const at = parseRetryAfter(text, 1_800_000_000_000, null);
  promise(at === null || Number.isSafeInteger(at), `a time is no time: ${at}`);
  const delay = parseMessageDelay(text);
  promise(delay === null || (Number.isFinite(delay) && delay >= 0), `a delay is no delay: ${delay}`);
}

function makeHeaders(source: Source): Headers {
  const headers = new Headers();
  for (let count = source.below(8); count > 0; count--) {
    const line = DECODER.decode(source.broken(HEADERS));
    const at = line.indexOf(":");
    try {
      headers.append(line.slice(0, at), line.slice(at + 1).trim());
    } catch {
      // What no HTTP implementation lets through cannot arrive.
    }
  }
  return headers;
}

function context() {
  return {
    clientModel: "m",
    upstreamModel: "m",
    target: "codex" as const,
    nowMs: 0,
    newId: (prefix: string) => `${prefix}_1`,
  };
}

function answerContext(): AnswerContext {
  return {
    ...context(),
    memory: {
      streaming: true,
      includeUsage: true,
      takesReasoning: true,
      cutAt: ["STOP"],
      tools: NO_TOOLS,
      echo: {},
      estimatedInputTokens: 1,
    },
  };
}

const NO_TOOLS = (translatorFor("chat", "responses")!.request(
  { model: "m", messages: [{ role: "user", content: "x" }] },
  context(),
) as { memory: AnswerContext["memory"] }).memory.tools;

function parse(bytes: Bytes): JsonObject | null {
  try {
    const value: unknown = JSON.parse(DECODER.decode(bytes));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
