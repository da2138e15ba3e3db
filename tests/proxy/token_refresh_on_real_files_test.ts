/** The whole way of a refresh with nothing faked: real folder, real clock, real sockets to a local issuer. */
import { assert, assertEquals } from "@std/assert";
import { AccountDirectory } from "../../lib/proxy/account_directory.ts";
import { TokenRefresher } from "../../lib/proxy/token_refresher.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { createDigest } from "../../lib/runtime/digest.ts";
import { createCredentialFiles } from "../../lib/store/credential_files.ts";
import { NO_PROXY_ENVIRONMENT } from "../../lib/upstream/egress_proxy.ts";
import { createUpstream } from "../../lib/upstream/http_client.ts";
import { createOauthClient } from "../../lib/upstream/oauth_client.ts";
import { codexAuthText, fakeJwt } from "../support/credential_texts.ts";
import { memoryLog } from "../support/memory_log.ts";

const ID = "codex:w1:alice";
const ALICE = { account: "w1", user: "alice" };

async function withIssuer(
  handler: (body: { refresh_token: string }) => Response | Promise<Response>,
  run: (
    parts: { refresher: TokenRefresher; path: string; hits: () => number; logText: () => string },
  ) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir();
  let hitCount = 0;
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    hitCount += 1;
    return await handler(await request.json());
  });
  const path = `${dir}/auth.json`;
  await Deno.writeTextFile(
    path,
    codexAuthText({ ...ALICE, expiresAtMs: 1_700_000_000_000, refreshToken: "rt_SENT-1" }),
  );
  const clock = createClock();
  const upstream = createUpstream({ clock, proxyUrl: "direct", environment: NO_PROXY_ENVIRONMENT });
  const log = memoryLog();
  const onFatal = (error: unknown) => {
    throw error;
  };
  const directory = new AccountDirectory({
    config: {
      authDir: dir,
      providers: [],
      codexRefreshTokenUrl: `http://127.0.0.1:${server.addr.port}/oauth/token`,
    },
    files: createCredentialFiles(),
    clock,
    digest: createDigest(),
    log,
    onFatal,
  });
  const refresher = new TokenRefresher({
    directory,
    issuer: createOauthClient(upstream, clock),
    clock,
    log,
    onFatal,
  });
  try {
    await directory.start();
    await run({ refresher, path, hits: () => hitCount, logText: () => log.text });
  } finally {
    await refresher.close();
    await directory.close();
    upstream.close();
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("200 concurrent callers with an expired token make one call, and the file has the new login", async () => {
  const next = fakeJwt({ ...ALICE, serial: "2", expiresAtMs: 4_000_000_000_000 });
  await withIssuer((body) => {
    assertEquals(body.refresh_token, "rt_SENT-1");
    return Response.json({ access_token: next, refresh_token: "rt_SENT-2", expires_in: 864_000 });
  }, async ({ refresher, path, hits, logText }) => {
    const results = await Promise.all(Array.from({ length: 200 }, () => refresher.ensureFresh(ID, null)));
    assert(results.every((result) => result.kind === "ready"));
    assertEquals(hits(), 1);
    const { tokens } = JSON.parse(await Deno.readTextFile(path));
    assertEquals([tokens.access_token, tokens.refresh_token], [next, "rt_SENT-2"]);
    assert(!logText().includes("SENT"));
  });
});

/** Field case B055, over the wire: a dead login is told from a passing failure, and asked for once. */
const refusals = [
  {
    name: "401 token_expired",
    response: () => Response.json({ error: { code: "token_expired" } }, { status: 401 }),
    terminal: true,
    hits: 1,
  },
  {
    name: "403 account_deactivated",
    response: () => Response.json({ error: { code: "account_deactivated" } }, { status: 403 }),
    terminal: true,
    hits: 1,
  },
  {
    name: "400 that is no JSON",
    response: () => new Response("not json", { status: 400 }),
    terminal: false,
    hits: 5,
  },
  {
    name: "a portal's page",
    response: () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    terminal: false,
    hits: 5,
  },
] as const;
for (const c of refusals) {
  Deno.test(`five requests against ${c.name} make ${c.hits} calls and leave the file as it was`, async () => {
    await withIssuer(c.response, async ({ refresher, path, hits }) => {
      const before = await Deno.readTextFile(path);
      for (let i = 0; i < 5; i++) {
        const result = await refresher.ensureFresh(ID, null);
        assertEquals(result.kind === "failed" && result.evidence.terminal, c.terminal);
      }
      assertEquals(hits(), c.hits);
      assertEquals(await Deno.readTextFile(path), before);
    });
  });
}

Deno.test("an issuer whose answer is cut short is asked once: the token may be used up", async () => {
  const cut = '{"access_token":"SENT-';
  await withIssuer(() => new Response(cut), async ({ refresher, hits }) => {
    const result = await refresher.ensureFresh(ID, null);
    assertEquals(result.kind === "failed" && result.evidence.code, "token_endpoint_unreadable");
    assertEquals(hits(), 1);
  });
});
