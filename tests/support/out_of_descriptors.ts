/**
 * Run under a small `ulimit -n`: opens what there is, then tries to connect in every way we have, and prints what
 * each was taken for as one line of JSON. Arguments: a port of 127.0.0.1 on which somebody listens.
 */
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createUpstream } from "../../lib/upstream/http_client.ts";
import { createDialer } from "../../lib/upstream/websocket_dialer.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { requestTo } from "./upstream_request.ts";

const port = Number(Deno.args[0]);
const signal = new AbortController().signal;
const clock = createClock();
const options = { clock, environment: NO_PROXY_ENVIRONMENT };
const direct = createUpstream({ ...options, proxyUrl: "direct" });
const proxied = createUpstream({ ...options, proxyUrl: `http://127.0.0.1:${port}` });
const dialer = createDialer({ ...options, proxyUrl: "direct" });
const proxiedDialer = createDialer({ ...options, proxyUrl: `socks5://127.0.0.1:${port}` });
const causes: Record<string, string> = {};

async function send(name: string, upstream: typeof direct, url: string): Promise<void> {
  const result = await upstream.send(requestTo(url), signal);
  causes[name] = result.ok
    ? "answered"
    : result.evidence.kind === "transport"
    ? result.evidence.cause
    : result.evidence.kind;
}

async function dial(name: string, by: typeof dialer, host: string): Promise<void> {
  const result = await by.dial({
    url: `ws://${host}:${port}/`,
    headers: new Headers(),
    protocols: [],
    connectTimeoutMs: 2_000,
    handshakeTimeoutMs: 2_000,
    maxPayloadBytes: 1_000,
    attempt: "req_test:1",
  }, signal);
  causes[name] = !result.ok && result.status === null && result.evidence.kind === "transport"
    ? result.evidence.cause
    : "answered";
}

async function tryAll(when: string): Promise<void> {
  await send(`${when}, http by address`, direct, `http://127.0.0.1:${port}/`);
  await send(`${when}, http by name`, direct, `http://localhost:${port}/`);
  await send(`${when}, http by an unknown name`, direct, `http://nothing.invalid/`);
  await send(`${when}, https`, direct, `https://127.0.0.1:${port}/`);
  await send(`${when}, egress proxy`, proxied, `http://nothing.invalid/`);
  await dial(`${when}, websocket by address`, dialer, "127.0.0.1");
  await dial(`${when}, websocket by name`, dialer, "localhost");
  await dial(`${when}, websocket over a proxy`, proxiedDialer, "nothing.invalid");
}

// A process that runs already: what the runtime opens late would otherwise find no descriptor, and it panics then.
const early = createUpstream({ ...options, proxyUrl: "direct" });
await send("before", early, `http://127.0.0.1:${port}/`);
await dial("before", dialer, "127.0.0.1");
delete causes["before"];
early.close();

const files: Deno.FsFile[] = [];
// Twice: what the first calls left behind is let go a moment later.
for (const pauseMs of [100, 0]) {
  try {
    for (;;) files.push(Deno.openSync("/dev/null"));
  } catch {
    // None is left.
  }
  await new Promise((resolve) => setTimeout(resolve, pauseMs));
}
await tryAll("none left");
for (const file of files) file.close();
await send("enough again", direct, `http://127.0.0.1:${port}/`);
console.log(JSON.stringify(causes));
Deno.exit(0);
