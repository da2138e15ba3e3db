/** `/status` as a browser meets it: headers, login, sessions, who may ask. The page itself: tests/browser. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { MAX_SESSIONS, SESSION_MS } from "../../lib/proxy/admin_sessions.ts";
import { ADMIN_KEY, type Rig, startRig } from "../support/rig.ts";
import { decision } from "../support/decisions.ts";

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** One request on a connection of its own, so that every header is ours, `Host` too. */
async function ask(
  rig: Rig,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = "",
): Promise<Answer> {
  const { hostname, port } = new URL(rig.app.url);
  const all = {
    host: `127.0.0.1:${port}`,
    connection: "close",
    "content-length": `${body.length}`,
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  using connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(`${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`));
  const text = await new Response(connection.readable).text();
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...rest] = text.slice(0, end).split("\r\n");
  const answer = new Headers();
  for (const line of rest) {
    answer.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim());
  }
  return { status: Number(first.split(" ")[1]), headers: answer, body: text.slice(end + 4) };
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

function logIn(rig: Rig, key: string = ADMIN_KEY, headers: Record<string, string> = {}): Promise<Answer> {
  const origin = { origin: rig.app.url };
  return ask(
    rig,
    "POST",
    "/status/login",
    { ...FORM, ...origin, ...headers },
    `key=${encodeURIComponent(key)}`,
  );
}

async function openSession(rig: Rig): Promise<{ cookie: string }> {
  const answer = await logIn(rig);
  assertEquals(answer.status, 303);
  return { cookie: answer.headers.get("set-cookie")!.split(";")[0]! };
}

const isPage = (answer: Answer) => answer.body.includes('id="account-rows"');
const isLogin = (answer: Answer) => answer.body.includes('action="/status/login"');

Deno.test("/status is off without an admin key, and says how to turn it on", async () => {
  await using rig = await startRig({ accounts: ["A"], config: { "admin-api-key": "" } });
  for (const path of ["/status", "/status/", "/status/events", "/status/login"]) {
    const answer = await ask(rig, "GET", path);
    assertEquals([answer.status, answer.body.includes("set admin-api-key")], [404, true], path);
  }
});

Deno.test("/status shows only the login to whoever is not logged in", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const answer = await ask(rig, "GET", "/status");
  assertEquals([answer.status, isLogin(answer), isPage(answer)], [200, true, false]);
  assertEquals(answer.body.includes("<script"), false);
  for (const path of ["/status/events", "/status/requests/req_1"]) {
    const refused = await ask(rig, "GET", path);
    assertEquals([refused.status, JSON.parse(refused.body).error.code], [401, "not_logged_in"], path);
  }
});

Deno.test("/status opens with the admin key, and the cookie is kept from scripts, other sites and other paths", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const answer = await logIn(rig);
  assertEquals([answer.status, answer.headers.get("location")], [303, "/status"]);
  const port = new URL(rig.app.url).port;
  assertMatch(
    answer.headers.get("set-cookie")!,
    new RegExp(`^holdfast_${port}=[\\w-]{43}; Path=/status; HttpOnly; SameSite=Strict; Max-Age=43200$`),
  );
  const cookie = answer.headers.get("set-cookie")!.split(";")[0]!;
  assertEquals(isPage(await ask(rig, "GET", "/status", { cookie })), true);
  assertEquals(isPage(await ask(rig, "GET", "/status/", { cookie: `a=b; ${cookie}; c=d` })), true);
  const head = await ask(rig, "HEAD", "/status", { cookie });
  assertEquals([head.status, head.body], [200, ""]);
  for (const wrong of [`${cookie}x`, cookie.replace("holdfast", "other"), `holdfast_${port}=`, "junk"]) {
    assertEquals(isLogin(await ask(rig, "GET", "/status", { cookie: wrong })), true, wrong);
  }
});

const secure: readonly { why: string; headers: (url: string) => Record<string, string> }[] = [
  {
    why: "the browser's origin is https",
    headers: () => ({ origin: "https://status.example", "sec-fetch-site": "same-origin" }),
  },
  { why: "a proxy in front says https", headers: () => ({ "x-forwarded-proto": "https, http" }) },
];
for (const c of secure) {
  Deno.test(`/status gives a Secure cookie when ${c.why}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const answer = await logIn(rig, ADMIN_KEY, c.headers(rig.app.url));
    assertEquals([answer.status, answer.headers.get("set-cookie")!.endsWith("; Secure")], [303, true]);
  });
}

Deno.test("every answer below /status carries a policy that lets nothing foreign in, and is never stored", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  const answers = [
    await ask(rig, "GET", "/status", session),
    await ask(rig, "GET", "/status"),
    await ask(rig, "GET", "/status/requests/none", session),
    await ask(rig, "GET", "/status/nothing", session),
    await logIn(rig, "wrong"),
  ];
  for (const { headers } of answers) {
    const policy = headers.get("content-security-policy")!;
    assert(policy.startsWith("default-src 'none'; ") && policy.includes("frame-ancestors 'none'"), policy);
    assertEquals(/unsafe|\*|https?:/.test(policy), false, policy);
    assertEquals(
      [
        "cache-control",
        "x-content-type-options",
        "x-frame-options",
        "referrer-policy",
        "cross-origin-resource-policy",
      ]
        .map((name) => headers.get(name)),
      ["no-store", "nosniff", "DENY", "same-origin", "same-origin"],
    );
    assertEquals(headers.has("access-control-allow-origin"), false);
  }
});

const refusals: readonly { why: string; method: string; path: string; headers: Record<string, string> }[] = [
  { why: "a rebound name", method: "GET", path: "/status", headers: { host: "evil.example" } },
  {
    why: "a rebound name's stream",
    method: "GET",
    path: "/status/events",
    headers: { host: "evil.example:8317" },
  },
  {
    why: "a rebound name's login",
    method: "POST",
    path: "/status/login",
    headers: { host: "evil.example", origin: "http://evil.example" },
  },
  {
    why: "a foreign page's login",
    method: "POST",
    path: "/status/login",
    headers: { origin: "http://evil.example" },
  },
  {
    why: "a login that hides its origin",
    method: "POST",
    path: "/status/login",
    headers: { origin: "null" },
  },
  { why: "a login without origin", method: "POST", path: "/status/login", headers: {} },
  {
    why: "another port's logout",
    method: "POST",
    path: "/status/logout",
    headers: { origin: "http://127.0.0.1:1", "sec-fetch-site": "same-site" },
  },
  {
    why: "a foreign page's stream",
    method: "GET",
    path: "/status/events",
    headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
  },
];
Deno.test("/status refuses what another site or name asks for, logged in or not", async (t) => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  for (const c of refusals) {
    await t.step(c.why, async () => {
      const body = c.method === "POST" ? `key=${ADMIN_KEY}` : "";
      const answer = await ask(rig, c.method, c.path, { ...FORM, ...session, ...c.headers }, body);
      assertEquals([answer.status, answer.headers.has("set-cookie")], [403, false]);
    });
  }
  await t.step("the session is still open", async () => {
    assertEquals(isPage(await ask(rig, "GET", "/status", session)), true);
  });
});

Deno.test("/status answers other methods and paths in order", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = { ...await openSession(rig), origin: rig.app.url };
  const cases: readonly [string, string, number, string | null][] = [
    ["POST", "/status", 405, "GET, HEAD"],
    ["GET", "/status/login", 405, "POST"],
    ["GET", "/status/logout", 405, "POST"],
    ["POST", "/status/events", 405, "GET"],
    ["HEAD", "/status/events", 405, "GET"],
    ["GET", "/status/secrets", 404, null],
    ["GET", "/status/requests/../x", 404, null],
  ];
  for (const [method, path, status, allow] of cases) {
    const answer = await ask(rig, method, path, session);
    assertEquals([answer.status, answer.headers.get("allow")], [status, allow], `${method} ${path}`);
  }
});

Deno.test("a wrong key is refused in our words, and the third one makes the next wait, right or wrong", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  for (let nth = 0; nth < 3; nth++) {
    const answer = await logIn(rig, `SENT-wrong-<b>${nth}`);
    assertEquals([answer.status, answer.body.includes("That is not the admin key.")], [401, true]);
    assertEquals([answer.body.includes("SENT-wrong"), answer.headers.has("set-cookie")], [false, false]);
  }
  const slowed = await logIn(rig);
  assertEquals([slowed.status, slowed.headers.get("retry-after")], [429, "1"]);
  rig.clock.jump(1_000);
  assertEquals((await logIn(rig)).status, 303);
});

Deno.test("wrong keys sent side by side do not overtake the wait they earn", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const answers = await Promise.all(Array.from({ length: 12 }, (_, nth) => logIn(rig, `SENT-guess-${nth}`)));
  const statuses = answers.map(({ status }) => status).toSorted();
  assertEquals(statuses, [401, 401, 401, ...Array(9).fill(429)]);
});

const logins: readonly { why: string; headers: Record<string, string>; body: string; want: number }[] = [
  { why: "JSON", headers: { "content-type": "application/json" }, body: `{"key":"${ADMIN_KEY}"}`, want: 415 },
  { why: "a body beyond 4 KiB", headers: FORM, body: `key=${"k".repeat(4_096)}`, want: 413 },
  { why: "no key", headers: FORM, body: "name=x", want: 401 },
];
for (const c of logins) {
  Deno.test(`/status/login answers ${c.want} to ${c.why}`, async () => {
    await using rig = await startRig({ accounts: ["A"] });
    const answer = await ask(rig, "POST", "/status/login", { origin: rig.app.url, ...c.headers }, c.body);
    assertEquals([answer.status, isLogin(answer), answer.headers.has("set-cookie")], [c.want, true, false]);
  });
}

Deno.test("a session ends by itself after twelve hours, at logout, with another key, and with the process", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  rig.clock.jump(SESSION_MS - 1);
  assertEquals(isPage(await ask(rig, "GET", "/status", session)), true);
  rig.clock.jump(1);
  assertEquals(isLogin(await ask(rig, "GET", "/status", session)), true);

  const second = await openSession(rig);
  const out = await ask(rig, "POST", "/status/logout", { ...second, origin: rig.app.url });
  assertEquals([out.status, /=; .*Max-Age=0/.test(out.headers.get("set-cookie")!)], [303, true]);
  assertEquals(isLogin(await ask(rig, "GET", "/status", second)), true);

  const third = await openSession(rig);
  await rig.app.reload({ ...rig.config(), adminApiKey: "SENT-key-admin-2" });
  assertEquals(isLogin(await ask(rig, "GET", "/status", third)), true);

  const fourth = await logIn(rig, "SENT-key-admin-2");
  await rig.restart();
  assertEquals(
    isLogin(await ask(rig, "GET", "/status", { cookie: fourth.headers.get("set-cookie")! })),
    true,
  );
});

Deno.test("sessions are bounded: with one too many the first is over", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const first = await openSession(rig);
  for (let nth = 0; nth < MAX_SESSIONS; nth++) await openSession(rig);
  assertEquals(isLogin(await ask(rig, "GET", "/status", first)), true);
});

Deno.test("the live stream ends with its session, and does not hold a shutdown up", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  const first = await fetch(`${rig.app.url}/status/events`, { headers: session });
  assertEquals(first.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const reading = first.text();
  await ask(rig, "POST", "/status/logout", { ...session, origin: rig.app.url });
  const told = await rig.until(reading);
  assertMatch(told, /event: state\ndata: \{.*"full":true/);
  const second = await fetch(`${rig.app.url}/status/events`, { headers: await openSession(rig) });
  const rest = second.text();
  await rig.stop();
  assertMatch(await rest, /^retry: 2000\n\n/);
});

Deno.test("one request is told in words, with names as people know them and nothing that could be markup by mistake", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  const model = `<img src=x onerror="alert(1)">\u2028</script>`;
  rig.app.decisions.add(
    decision({ requestId: "req_x", model, status: 429, code: "rate_limited", rule: "all_quota" }),
  );
  const answer = await ask(rig, "GET", "/status/requests/req_x", session);
  assertEquals(answer.headers.get("content-type"), "application/json");
  const told = JSON.parse(answer.body);
  assertEquals([told.model, told.result, told.title], [
    model,
    "failed",
    "The client was told 429 rate_limited",
  ]);
  assertEquals(told.story[0].text, "Sent to codex:A; it answered after 1.0 s");
  const stream = await fetch(`${rig.app.url}/status/events`, { headers: session });
  const reading = stream.text();
  await ask(rig, "POST", "/status/logout", { ...session, origin: rig.app.url });
  const frames = (await rig.until(reading)).split("\n\n");
  const [line] = frames.filter((frame) => frame.startsWith("event: requests\n"));
  assertEquals(JSON.parse(line!.split("\ndata: ")[1]!).requests[0].model, model);
});

Deno.test("a request that is no longer kept is 404", async () => {
  await using rig = await startRig({ accounts: ["A"] });
  const session = await openSession(rig);
  assertEquals((await ask(rig, "GET", "/status/requests/req_none", session)).status, 404);
});
