import { assertEquals, assertThrows } from "@std/assert";
import { startSimulatedProvider } from "../../lib/demo/simulated_provider.ts";
import { accept, close, json, silence } from "../../lib/demo/simulated_replies.ts";
import type { DialResult, UpstreamResult } from "../../lib/ports.ts";
import {
  createEgress,
  NO_PROXY_ENVIRONMENT,
  parseProxyUrl,
  type ProxyEnvironment,
  readProxyEnvironment,
} from "../../lib/upstream/egress_proxy.ts";
import { createDialer } from "../../lib/upstream/websocket_dialer.ts";
import { eventually } from "../support/eventually.ts";
import { FakeClock } from "../support/fake_clock.ts";
import { blackHole, deadPort, TEST_CA, tlsServer } from "../support/rude_sockets.ts";
import { type ProxyOptions, startTestProxy } from "../support/test_proxy.ts";
import { requestTo, send, testUpstream, textOf } from "../support/upstream_request.ts";

const PASSWORD = "SENT-proxy-pw";
const SCHEMES = ["http", "https", "socks5"] as const;

// ---------------------------------------------------------------- which way out

const HTTPS_UP = "https://api.example.com/v1";
const HTTP_UP = "http://api.example.com/v1";
const env = (changes: Partial<ProxyEnvironment>): ProxyEnvironment => ({
  ...NO_PROXY_ENVIRONMENT,
  ...changes,
});

const ways: { name: string; proxyUrl: string; env: ProxyEnvironment; target: string; want: string | null }[] =
  [
    { name: "nothing set", proxyUrl: "", env: env({}), target: HTTPS_UP, want: null },
    { name: "proxy-url", proxyUrl: "http://p:1", env: env({}), target: HTTPS_UP, want: "p:1" },
    { name: "proxy-url for plain http", proxyUrl: "http://p:1", env: env({}), target: HTTP_UP, want: "p:1" },
    {
      name: "proxy-url before the environment",
      proxyUrl: "socks5://p:1",
      env: env({ httpsProxy: "http://e:2" }),
      target: HTTPS_UP,
      want: "p:1",
    },
    {
      name: "HTTPS_PROXY for https",
      proxyUrl: "",
      env: env({ httpsProxy: "http://e:2" }),
      target: HTTPS_UP,
      want: "e:2",
    },
    {
      name: "HTTPS_PROXY not for http",
      proxyUrl: "",
      env: env({ httpsProxy: "http://e:2" }),
      target: HTTP_UP,
      want: null,
    },
    {
      name: "HTTP_PROXY for http",
      proxyUrl: "",
      env: env({ httpProxy: "e:2" }),
      target: HTTP_UP,
      want: "e:2",
    },
    {
      name: "HTTPS_PROXY for wss",
      proxyUrl: "",
      env: env({ httpsProxy: "e:2" }),
      target: "wss://a.b/",
      want: "e:2",
    },
    {
      name: "HTTP_PROXY for ws",
      proxyUrl: "",
      env: env({ httpProxy: "e:2" }),
      target: "ws://a.b/",
      want: "e:2",
    },
    {
      name: "ALL_PROXY for the rest",
      proxyUrl: "",
      env: env({ allProxy: "socks5://e:2" }),
      target: HTTPS_UP,
      want: "e:2",
    },
    {
      name: "direct ignores the environment",
      proxyUrl: "direct",
      env: env({ httpsProxy: "http://e:2", allProxy: "http://e:3" }),
      target: HTTPS_UP,
      want: null,
    },
  ];
for (const c of ways) {
  Deno.test(`createEgress() chooses the way out: ${c.name}`, () => {
    const proxy = createEgress(c.proxyUrl, c.env).proxyFor(new URL(c.target));
    assertEquals(proxy === null ? null : `${proxy.hostname}:${proxy.port}`, c.want);
  });
}

const exclusions: { noProxy: string; target: string; direct: boolean }[] = [
  { noProxy: "api.example.com", target: HTTPS_UP, direct: true },
  { noProxy: "example.com", target: HTTPS_UP, direct: true },
  { noProxy: ".example.com", target: HTTPS_UP, direct: true },
  { noProxy: "*.example.com", target: HTTPS_UP, direct: true },
  { noProxy: "ample.com", target: HTTPS_UP, direct: false },
  { noProxy: "other, API.example.COM", target: HTTPS_UP, direct: true },
  { noProxy: "other api.example.com", target: HTTPS_UP, direct: true },
  { noProxy: "*", target: HTTPS_UP, direct: true },
  { noProxy: "api.example.com:443", target: HTTPS_UP, direct: true },
  { noProxy: "api.example.com:8443", target: HTTPS_UP, direct: false },
  { noProxy: "127.0.0.1", target: "http://127.0.0.1:8000/", direct: true },
  { noProxy: "127.0.0.1:8000", target: "http://127.0.0.1:8000/", direct: true },
  { noProxy: "::1", target: "http://[::1]:8000/", direct: true },
  { noProxy: "[::1]:8000", target: "http://[::1]:8000/", direct: true },
  { noProxy: "[::1]:8001", target: "http://[::1]:8000/", direct: false },
  { noProxy: "", target: HTTPS_UP, direct: false },
  { noProxy: " , ", target: HTTPS_UP, direct: false },
];
for (const c of exclusions) {
  Deno.test(`NO_PROXY "${c.noProxy}" ${c.direct ? "excludes" : "does not exclude"} ${c.target}`, () => {
    const egress = createEgress("http://p:1", env({ noProxy: c.noProxy }));
    assertEquals(egress.proxyFor(new URL(c.target)) === null, c.direct);
  });
}

Deno.test("readProxyEnvironment() takes the lower-case spelling first and skips empty ones", () => {
  const values: Record<string, string> = {
    http_proxy: "",
    HTTP_PROXY: "a",
    https_proxy: "b",
    HTTPS_PROXY: "c",
  };
  assertEquals(readProxyEnvironment((name) => values[name]), {
    httpProxy: "a",
    httpsProxy: "b",
    allProxy: "",
    noProxy: "",
  });
});

const urls: { url: string; want: [string, string, number, string | null] | null }[] = [
  { url: "http://proxy", want: ["http", "proxy", 80, null] },
  { url: "proxy:3128", want: ["http", "proxy", 3128, null] },
  { url: "https://proxy", want: ["https", "proxy", 443, null] },
  { url: "socks5://proxy", want: ["socks5", "proxy", 1080, null] },
  { url: "socks5h://[::1]:9", want: ["socks5", "::1", 9, null] },
  { url: "http://u%40x:p%3Aw@proxy:1", want: ["http", "proxy", 1, "u@x p:w"] },
  { url: "socks4://proxy", want: null },
  { url: "ftp://proxy", want: null },
  { url: "http://", want: null },
  { url: "http://user:SENT-pw@bad host", want: null },
];
for (const c of urls) {
  Deno.test(`parseProxyUrl() ${c.want === null ? "refuses" : "reads"} ${c.url}`, () => {
    if (c.want === null) {
      const error = assertThrows(() => parseProxyUrl(c.url, "HTTPS_PROXY"), SyntaxError);
      assertEquals(error.message, "Cannot parse HTTPS_PROXY: expected an http, https or socks5 URL");
      return;
    }
    const proxy = parseProxyUrl(c.url, "proxy-url");
    const words = proxy.credentials;
    const named = words === null ? null : `${words.username} ${words.password}`;
    assertEquals([proxy.scheme, proxy.hostname, proxy.port, named], c.want);
  });
}

// ---------------------------------------------------------------- through a real proxy (B152)

interface Way {
  readonly name: string;
  run(proxyUrl: string, url: string, environment?: ProxyEnvironment, clock?: FakeClock): Promise<string>;
}

/** HTTP pooled, HTTP alone and WebSocket go out by the same door; each is reduced to one word. */
const WAYS: readonly Way[] = [
  httpWay("a request with a body", {}),
  httpWay("a request of its own connection", { fresh: true }),
  httpWay("a request without a body", { method: "GET", body: null }),
  {
    name: "a WebSocket",
    async run(proxyUrl, url, environment = NO_PROXY_ENVIRONMENT, clock = new FakeClock()) {
      const dialer = createDialer({ clock, proxyUrl, environment, caCerts: [TEST_CA] });
      const result: DialResult = await dialer.dial({
        url,
        headers: new Headers({ authorization: "Bearer SENT-tok-A" }),
        protocols: [],
        connectTimeoutMs: 15_000,
        handshakeTimeoutMs: 30_000,
        maxPayloadBytes: 1_024,
        attempt: "req_test:1",
      }, new AbortController().signal);
      if (result.ok) {
        result.socket.terminate();
        return "served";
      }
      return result.status === null ? causeOf(result) : String(result.status);
    },
  },
];

function httpWay(name: string, changes: Parameters<typeof requestTo>[1]): Way {
  return {
    name,
    async run(proxyUrl, url, environment = NO_PROXY_ENVIRONMENT, clock = new FakeClock()) {
      using upstream = testUpstream(clock, { proxyUrl, environment });
      const result = await send(upstream, requestTo(url, changes));
      if (!result.ok) return causeOf(result);
      await textOf(result);
      return result.response.status === 200 ? "served" : String(result.response.status);
    },
  };
}

function causeOf(result: Extract<UpstreamResult, { ok: false }>): string {
  const { evidence } = result;
  return evidence.kind === "transport" ? evidence.cause : evidence.kind;
}

async function simulated() {
  const provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.anyone.otherwise(json({}));
  provider.anyone.websocket.otherwise(accept([close(1000)]));
  return provider;
}

for (const scheme of SCHEMES) {
  for (const way of WAYS) {
    for (const credentials of [null, `user:${PASSWORD}`]) {
      const named = credentials === null ? "" : " with a password";
      Deno.test(`an ${scheme} proxy${named} carries ${way.name}`, async () => {
        await using provider = await simulated();
        await using proxy = await startTestProxy({
          scheme,
          upstreamPort: provider.port,
          split: true,
          ...(credentials === null ? {} : { credentials }),
        });
        const login = credentials === null ? "" : `${credentials}@`;
        // A name nobody can resolve here: only the proxy knows the way.
        const url = `http://upstream.invalid:${provider.port}/v1/responses`;
        assertEquals(await way.run(`${scheme}://${login}localhost:${proxy.port}`, url), "served");
        assertEquals(proxy.calls.length, 1);
        assertEquals(proxy.calls[0]!.target, `upstream.invalid:${provider.port}`);
        assertEquals(proxy.calls[0]!.credentials, credentials);
        const seen = JSON.stringify([...provider.hits[0]!.headers]);
        assertEquals(seen.includes(PASSWORD) || seen.includes("proxy-auth"), false);
      });
    }

    Deno.test(`an ${scheme} proxy carries ${way.name} to a TLS upstream`, async () => {
      await using upstream = await tlsServer("localhost", (socket) => {
        socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
      });
      await using proxy = await startTestProxy({ scheme, upstreamPort: upstream.port });
      const word = await way.run(
        `${scheme}://localhost:${proxy.port}`,
        `https://localhost:${upstream.port}/`,
      );
      // A 200 is a refused handshake for a WebSocket; both mean that the request arrived.
      assertEquals(word === "served" || word === "200", true, word);
      assertEquals(proxy.calls.length, 1);
    });

    const failures: { name: string; options: Partial<ProxyOptions> }[] = [
      { name: "asks for another password", options: { credentials: "someone:else" } },
      {
        name: "refuses",
        options: {
          refuse: scheme === "socks5"
            ? "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"
            : "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nbad",
        },
      },
      { name: "is no proxy", options: { refuse: "SSH-2.0-OpenSSH_9\r\n\r\n" } },
      { name: "closes", options: { refuse: "" } },
    ];
    for (const c of failures) {
      Deno.test(`an ${scheme} proxy that ${c.name} fails ${way.name} and is never gone around`, async () => {
        await using upstream = await tlsServer("localhost", () => {
          throw new Error("The proxy was gone around");
        });
        await using proxy = await startTestProxy({ scheme, upstreamPort: upstream.port, ...c.options });
        const proxyUrl = `${scheme}://user:${PASSWORD}@localhost:${proxy.port}`;
        assertEquals(await way.run(proxyUrl, `https://localhost:${upstream.port}/`), "egress_proxy");
      });
    }

    Deno.test(`an ${scheme} proxy that is down fails ${way.name} and is never gone around`, async () => {
      await using provider = await simulated();
      const proxyUrl = `${scheme}://127.0.0.1:${deadPort()}`;
      assertEquals(await way.run(proxyUrl, provider.url), "egress_proxy");
      assertEquals(await way.run(`${scheme}://nothing.invalid:1`, provider.url), "egress_proxy");
      assertEquals(provider.hits.length, 0);
    });
  }
}

for (const way of WAYS) {
  Deno.test(`NO_PROXY lets ${way.name} go direct, and only then`, async () => {
    await using provider = await simulated();
    await using proxy = await startTestProxy({ scheme: "http", upstreamPort: provider.port });
    const environment = env({
      httpProxy: `http://127.0.0.1:${proxy.port}`,
      noProxy: `127.0.0.1:${provider.port}`,
    });
    assertEquals(await way.run("", provider.url, environment), "served");
    assertEquals(proxy.calls.length, 0);
    assertEquals(await way.run("", `http://localhost:${provider.port}/`, environment), "served");
    assertEquals(proxy.calls.length, 1);
  });

  Deno.test(`a proxy that swallows connections fails ${way.name} at the connect limit`, async () => {
    using hole = await blackHole();
    const clock = new FakeClock();
    const pending = way.run(`http://127.0.0.1:${hole.port}`, "https://upstream.invalid/", undefined, clock);
    await clock.advance(15_000);
    assertEquals(await pending, "egress_proxy");
    assertEquals(clock.pendingCount, 0);
  });
}

Deno.test("a 407 of a forwarding proxy is the proxy's failure, a 407 of the upstream is an answer", async () => {
  const http = WAYS[0]!;
  await using provider = await startSimulatedProvider({ clock: new FakeClock() });
  provider.anyone.otherwise(json({}, 407));
  assertEquals(await http.run("direct", provider.url), "407");
  await using proxy = await startTestProxy({
    scheme: "http",
    upstreamPort: provider.port,
    credentials: "someone:else",
  });
  assertEquals(await http.run(`http://127.0.0.1:${proxy.port}`, provider.url), "egress_proxy");
});

Deno.test("words in a host name are not taken for the failure", async () => {
  await using proxy = await startTestProxy({ scheme: "http", upstreamPort: 1, refuse: "" });
  const url = "https://tls-handshake.alert.certificate.invalid/";
  assertEquals(await WAYS[0]!.run(`http://127.0.0.1:${proxy.port}`, url), "egress_proxy");
  assertEquals(await WAYS[0]!.run("direct", url), "dns");
});

Deno.test("a direct client does not see the process's proxy variables", async () => {
  await using provider = await simulated();
  const script = `
    import { createUpstream } from ${
    JSON.stringify(new URL("../../lib/upstream/http_client.ts", import.meta.url))
  };
    const clock = { now: () => 0, schedule: () => ({ cancel() {} }) };
    const environment = { httpProxy: "", httpsProxy: "", allProxy: "", noProxy: "" };
    const upstream = createUpstream({ clock, proxyUrl: "direct", environment });
    const result = await upstream.send({
      method: "POST", url: Deno.args[0], headers: new Headers(), body: new Uint8Array(1), bodyLength: null,
      fresh: false, connectTimeoutMs: 1, firstByteTimeoutMs: 2, attempt: "req_test:1",
    }, new AbortController().signal);
    console.log(result.ok, Deno.env.get("HTTP_PROXY"));
    result.response?.body?.cancel();
    upstream.close();
  `;
  const proxy = `http://127.0.0.1:${deadPort()}`;
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["eval", script, provider.url],
    env: { HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy, NO_COLOR: "1" },
  }).output();
  assertEquals(new TextDecoder().decode(output.stdout).trim(), `true ${proxy}`);
});

Deno.test("a silent upstream behind a proxy is waited for as long as the proxy can be reached", async () => {
  const clock = new FakeClock();
  await using provider = await startSimulatedProvider({ clock });
  provider.anyone.script(silence());
  await using proxy = await startTestProxy({ scheme: "http", upstreamPort: provider.port });
  using upstream = testUpstream(clock, { proxyUrl: `http://127.0.0.1:${proxy.port}` });
  const request = requestTo("http://upstream.invalid/", { firstByteTimeoutMs: 60_000 });
  const pending = send(upstream, request);
  await provider.hitCount(1);
  await clock.advance(15_000);
  await eventually(() => clock.pendingCount === 1);
  await clock.advance(45_000);
  const result = await pending;
  assertEquals(result.ok || causeOf(result), "first_byte_timeout");
});
