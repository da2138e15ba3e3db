import { assert, assertEquals, assertRejects } from "@std/assert";
import { type RefreshCall, type RefreshResult, StoreFailure } from "../../lib/ports.ts";
import type { FreshResult } from "../../lib/proxy/token_refresher.ts";
import { validityOnReceipt } from "../../lib/core/token_lifetime.ts";
import {
  type AccountHarness,
  accountHarness,
  AUTH_DIR,
  claudeProvider,
  deadGrant,
  passing,
  refreshed,
  TOKEN_URL,
} from "../support/account_harness.ts";
import { claudeCodeText, codexAuthText, codexFlatText, fakeJwt } from "../support/credential_texts.ts";
import { FAKE_START_MS, FakeClock } from "../support/fake_clock.ts";
import { MemoryDisk } from "../support/memory_disk.ts";

const PATH = `${AUTH_DIR}/auth.json`;
const ID = "codex:w1:alice";
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const ALICE = { account: "w1", user: "alice" };
const SPENT = {
  ...ALICE,
  serial: "spent",
  expiresAtMs: FAKE_START_MS - MINUTE_MS,
  refreshToken: "rt_SENT-1",
};
const LIVE = {
  ...ALICE,
  serial: "live",
  expiresAtMs: FAKE_START_MS + 8 * HOUR_MS,
  refreshToken: "rt_SENT-1",
};
const NEXT = fakeJwt({ ...ALICE, serial: "next", expiresAtMs: FAKE_START_MS + 8 * HOUR_MS });
const GOOD = refreshed(NEXT, "rt_SENT-2", FAKE_START_MS + 8 * HOUR_MS);

function withFile(text: string): Promise<AccountHarness> {
  return accountHarness({ files: { [PATH]: text } });
}

function tokensOnDisk(h: AccountHarness) {
  const { tokens } = JSON.parse(h.disk.text(PATH)!);
  return [tokens.access_token, tokens.refresh_token];
}

function accessToken(result: FreshResult): string {
  assertEquals(result.kind, "ready");
  const credential = (result as Extract<FreshResult, { kind: "ready" }>).entry.credential;
  return credential.kind === "oauth" ? credential.tokens.accessToken : "";
}

const due = [
  { name: "one ms before the last 5 min", expiresAtMs: FAKE_START_MS + 300_001, want: false },
  { name: "5 min before its end", expiresAtMs: FAKE_START_MS + 300_000, want: true },
  { name: "after its end", expiresAtMs: FAKE_START_MS - 1_000, want: true },
  {
    name: "with a stale stored expiry but a live token",
    expiresAtMs: FAKE_START_MS + 8 * HOUR_MS,
    stored: -HOUR_MS,
    want: false,
  },
  {
    name: "with a hopeful stored expiry but a spent token",
    expiresAtMs: FAKE_START_MS - MINUTE_MS,
    stored: 8 * HOUR_MS,
    want: true,
  },
] as const;
for (const c of due) {
  Deno.test(`isDue() is ${c.want} ${c.name}`, async () => {
    const stored = "stored" in c ? { expired: new Date(FAKE_START_MS + c.stored).toISOString() } : {};
    await using h = await accountHarness({
      // exp has whole seconds, so the border of a ms is tried with an opaque token and a stored expiry.
      files: {
        [PATH]: c.expiresAtMs % 1_000 === 0
          ? codexFlatText({ ...ALICE, expiresAtMs: c.expiresAtMs }, stored)
          : codexFlatText({ ...ALICE, opaqueAccess: "SENT-OPAQUE" }, { expired: c.expiresAtMs }),
      },
    });
    assertEquals(h.refresher.isDue(ID, h.clock.now()), c.want);
  });
}

Deno.test("isDue() is false for keys, for logins without refresh token, and for nobody", async () => {
  await using h = await accountHarness({
    files: { [PATH]: '{"type":"codex","access_token":"SENT-A","expired":1}' },
    providers: [claudeProvider([{ id: "k", apiKey: "sk-SENT-K", credentialsPath: null }])],
  });
  for (const { id } of h.directory.accounts()) assertEquals(h.refresher.isDue(id, h.clock.now()), false);
  assertEquals(h.refresher.isDue("none", h.clock.now()), false);
  assertEquals((await h.refresher.ensureFresh("none", null)).kind, "gone");
});

Deno.test("ensureFresh() asks the issuer, saves, then publishes", async () => {
  await using h = await withFile(codexAuthText(SPENT, { kept: 1 }));
  h.issuer.script((call: RefreshCall) => {
    assertEquals(call, { kind: "codex", url: TOKEN_URL, refreshToken: "rt_SENT-1", nowMs: FAKE_START_MS });
    assertEquals(h.changes, []);
    return GOOD;
  });
  const order: string[] = [];
  h.disk.before = (operation, path) => {
    if (operation === "rename" && path.endsWith(".pending")) order.push("saved");
  };
  h.directory.subscribe(() => order.push("published"));
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
  assertEquals(order, ["saved", "published"]);
  assertEquals(tokensOnDisk(h), [NEXT, "rt_SENT-2"]);
  const root = JSON.parse(h.disk.text(PATH)!);
  assertEquals([root.kept, root.last_refresh], [1, "2027-01-15T08:00:00.000Z"]);
  assertEquals(h.changes.map((change) => change.updated.map((one) => one.cause)), [["refreshed"]]);
  // The next look at the file finds what we wrote and changes nothing.
  await h.clock.advance(10_000);
  assertEquals(h.changes.length, 1);
});

for (const count of [12, 200]) {
  Deno.test(`${count} callers with an expired token make one refresh, and so do ${count} 401s`, async () => {
    await using h = await withFile(codexAuthText(SPENT));
    h.issuer.script(GOOD);
    const fresh = await Promise.all(Array.from({ length: count }, () => h.refresher.ensureFresh(ID, null)));
    assertEquals(new Set(fresh.map(accessToken)), new Set([NEXT]));
    assertEquals(h.issuer.calls.length, 1);

    const failed = h.directory.get(ID)!.account.fingerprint;
    const third = fakeJwt({ ...ALICE, serial: "third", expiresAtMs: FAKE_START_MS + 9 * HOUR_MS });
    h.issuer.script(refreshed(third, "rt_SENT-3", FAKE_START_MS + 9 * HOUR_MS));
    const repaired = await Promise.all(
      Array.from({ length: count }, () => h.refresher.repair(ID, failed, null)),
    );
    assertEquals(new Set(repaired.map(accessToken)), new Set([third]));
    // A 401 that comes back late is answered without a call.
    assertEquals(accessToken(await h.refresher.repair(ID, failed, null)), third);
    assertEquals(h.issuer.calls.map((call) => call.refreshToken), ["rt_SENT-1", "rt_SENT-2"]);
  });
}

Deno.test("a waiter that leaves costs the others nothing", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const answer = Promise.withResolvers<RefreshResult>();
  h.issuer.script(() => answer.promise);
  const leaver = new AbortController();
  const left = h.refresher.ensureFresh(ID, leaver.signal);
  const stays = h.refresher.ensureFresh(ID, null);
  await h.clock.advance(0);
  leaver.abort();
  assertEquals((await left).kind, "cancelled");
  answer.resolve(GOOD);
  assertEquals(accessToken(await stays), NEXT);
  assertEquals(h.issuer.calls.length, 1);
});

Deno.test("a refresh goes on when its only waiter has left, and is saved", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const answer = Promise.withResolvers<RefreshResult>();
  h.issuer.script(() => answer.promise);
  const leaver = new AbortController();
  const left = h.refresher.ensureFresh(ID, leaver.signal);
  await h.clock.advance(0);
  leaver.abort();
  await left;
  answer.resolve(GOOD);
  await h.clock.advance(0);
  assertEquals(tokensOnDisk(h), [NEXT, "rt_SENT-2"]);
});

Deno.test("ensureFresh() makes no call when another program has refreshed the file already", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.disk.put(PATH, codexAuthText({ ...LIVE, refreshToken: "rt_SENT-9" }));
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), fakeJwt(LIVE));
  assertEquals(h.issuer.calls, []);
});

/** Wire-facts 4.3: permanent unless another process just rotated it. */
const reused = [
  { name: "the file already holds the new token", writtenAfterMs: 0 },
  { name: "the new token arrives in the file within a second", writtenAfterMs: 800 },
] as const;
for (const c of reused) {
  Deno.test(`refresh_token_reused is no death when ${c.name}`, async () => {
    await using h = await withFile(codexAuthText(SPENT));
    const theirs = codexAuthText({ ...LIVE, refreshToken: "rt_SENT-9" });
    h.issuer.script(() => {
      if (c.writtenAfterMs === 0) h.disk.put(PATH, theirs);
      else h.clock.schedule(h.clock.now() + c.writtenAfterMs, () => h.disk.put(PATH, theirs));
      return deadGrant("refresh_token_reused");
    });
    assertEquals(accessToken(await h.clock.runUntil(h.refresher.ensureFresh(ID, null))), fakeJwt(LIVE));
    assertEquals(h.issuer.calls.length, 1);
    assertEquals(h.issuer.unusedCount, 0);
  });
}

Deno.test("after a refusal the file's other refresh token is tried, when its access token is spent as well", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(() => {
    h.disk.put(PATH, codexAuthText({ ...SPENT, serial: "other", refreshToken: "rt_SENT-9" }));
    return deadGrant();
  }, GOOD);
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
  assertEquals(h.issuer.calls.map((call) => call.refreshToken), ["rt_SENT-1", "rt_SENT-9"]);
});

/** Field case B053. */
Deno.test("a dead login is asked for once, stays dead over ticks and restart, and lives again with new tokens", async () => {
  const disk = new MemoryDisk();
  disk.put(PATH, codexAuthText(SPENT));
  const clock = new FakeClock();
  let fingerprint: string;
  {
    await using h = await accountHarness({ disk, clock });
    h.issuer.script(deadGrant());
    for (let i = 0; i < 20; i++) {
      const result = await h.clock.runUntil(h.refresher.ensureFresh(ID, null));
      assertEquals(result, {
        kind: "failed",
        evidence: {
          kind: "refresh_failed",
          terminal: true,
          reason: "invalid_grant",
          code: "invalid_grant",
          retryAtMs: null,
        },
      });
      await h.clock.advance(MINUTE_MS);
    }
    assertEquals(h.issuer.calls.length, 1);
    // B049, run 2: the stored tokens are untouched.
    assertEquals(disk.text(PATH), codexAuthText(SPENT));
    fingerprint = h.directory.get(ID)!.account.fingerprint;
  }
  await using h = await accountHarness({ disk, clock });
  h.refresher.markDead(ID, fingerprint, "invalid_grant", "invalid_grant");
  for (let i = 0; i < 5; i++) assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "failed");
  assertEquals(h.issuer.calls, []);
  disk.put(PATH, codexAuthText({ ...SPENT, serial: "import", refreshToken: "rt_SENT-NEW" }));
  await h.clock.advance(2_000);
  h.issuer.script(GOOD);
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
});

/** Field cases B054, B055, B147, B149: what passes is never dead, and is asked again as soon as it pays. */
const passingCases = [
  {
    name: "503 twice, then well",
    steps: [
      passing("token_endpoint_503", { repeatable: true }),
      passing("token_endpoint_503", { repeatable: true }),
      GOOD,
    ],
    calls: 3,
    ready: true,
  },
  {
    name: "503 for good",
    steps: Array(3).fill(passing("token_endpoint_503", { repeatable: true })),
    calls: 3,
    ready: false,
  },
  {
    name: "DNS failure, then well",
    steps: [passing("token_endpoint_dns", { sent: false, repeatable: true }), GOOD],
    calls: 2,
    ready: true,
  },
  { name: "a lost answer", steps: [passing("token_endpoint_reset_before_head")], calls: 1, ready: false },
  { name: "a portal's page", steps: [passing("token_endpoint_unreadable")], calls: 1, ready: false },
  { name: "a 400 that is no JSON", steps: [passing("token_endpoint_400")], calls: 1, ready: false },
  { name: "a region refusal", steps: [passing("token_endpoint_region")], calls: 1, ready: false },
  {
    name: "429 with 1 s",
    steps: [passing("token_endpoint_429", { repeatable: true, retryAtMs: FAKE_START_MS + 1_000 }), GOOD],
    calls: 2,
    ready: true,
  },
] as const;
for (const c of passingCases) {
  Deno.test(`ensureFresh() with an expired token and ${c.name}: ${c.calls} calls, ${c.ready ? "ready" : "failed"}`, async () => {
    await using h = await withFile(codexAuthText(SPENT));
    h.issuer.script(...c.steps);
    const result = await h.clock.runUntil(h.refresher.ensureFresh(ID, null), 5_000);
    assertEquals(h.issuer.calls.length, c.calls);
    assertEquals(result.kind, c.ready ? "ready" : "failed");
    if (result.kind === "failed") {
      assertEquals([result.evidence.terminal, result.evidence.retryAtMs], [false, null]);
      assert(result.evidence.code.startsWith("token_endpoint_"));
      // The refresh token is kept and works as soon as the endpoint does.
      assertEquals(tokensOnDisk(h)[1], "rt_SENT-1");
      h.issuer.script(GOOD);
      assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
    }
  });
}

Deno.test("pauses between calls are 250 ms and 1 s, and an issuer's own time up to 2 s is honoured", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const at: number[] = [];
  const step = (retryAtMs: number | null) => () => {
    at.push(h.clock.now() - FAKE_START_MS);
    return passing("token_endpoint_503", { repeatable: true, retryAtMs });
  };
  h.issuer.script(step(null), step(null), step(null));
  await h.clock.runUntil(h.refresher.ensureFresh(ID, null));
  assertEquals(at, [0, 250, 1_250]);
  h.issuer.script(step(h.clock.now() + 2_000), step(null), step(null));
  await h.clock.runUntil(h.refresher.ensureFresh(ID, null));
  assertEquals(at.slice(3), [1_250, 3_250, 4_250]);
});

Deno.test("429 with Retry-After 20: the account rests for 20 s without a call, then works", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const retryAtMs = FAKE_START_MS + 20_000;
  h.issuer.script(passing("token_endpoint_429", { repeatable: true, retryAtMs }));
  for (const waitMs of [0, 5_000, 14_999]) {
    await h.clock.advance(waitMs);
    const result = await h.refresher.ensureFresh(ID, null);
    assertEquals(result.kind === "failed" && result.evidence.retryAtMs, retryAtMs);
  }
  assertEquals(h.issuer.calls.length, 1);
  await h.clock.advance(1);
  h.issuer.script(GOOD);
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
});

Deno.test("a call that hangs is given up after 30 s and not repeated", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.refresh = (_call, signal) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(passing("token_endpoint_no_answer")), { once: true });
    });
  const result = h.refresher.ensureFresh(ID, null);
  await h.clock.advance(29_999);
  let settled = false;
  result.then(() => settled = true);
  await h.clock.advance(0);
  assertEquals(settled, false);
  await h.clock.advance(1);
  assertEquals((await result).kind, "failed");
});

Deno.test("a failed refresh of a token that is still good is no failure, and is tried again after 30 s", async () => {
  for (const step of [passing("token_endpoint_400"), deadGrant()]) {
    await using h = await withFile(codexAuthText({ ...LIVE, expiresAtMs: FAKE_START_MS + 4 * MINUTE_MS }));
    h.issuer.script(step);
    for (let i = 0; i < 10; i++) assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "ready");
    assertEquals(h.issuer.calls.length, 1);
    await h.clock.advance(29_999);
    assertEquals(h.refresher.isDue(ID, h.clock.now()), false);
    await h.clock.advance(1);
    assertEquals(h.refresher.isDue(ID, h.clock.now()), step.kind !== "dead");
    await h.clock.advance(4 * MINUTE_MS);
    assertEquals(h.refresher.isDue(ID, h.clock.now()), true);
  }
});

Deno.test("repair() fails when the issuer fails, though the old token looks unexpired: it was just refused", async () => {
  await using h = await withFile(codexAuthText(LIVE));
  h.issuer.script(passing("token_endpoint_400"));
  const { fingerprint } = h.directory.get(ID)!.account;
  assertEquals((await h.refresher.repair(ID, fingerprint, null)).kind, "failed");
});

Deno.test("repair() of a login that cannot be refreshed says so without a call", async () => {
  await using h = await withFile(
    codexAuthText(LIVE, { tokens: { access_token: fakeJwt(LIVE), account_id: "w1" } }),
  );
  const { fingerprint } = h.directory.get(ID)!.account;
  const result = await h.refresher.repair(ID, fingerprint, null);
  assertEquals(result.kind === "failed" && result.evidence.code, "no_refresh_token");
});

/** Field case B049. */
Deno.test("a rotated token that cannot be written ends the process: nobody is told of success", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(() => {
    h.disk.before = (operation) => {
      if (operation === "writeNew") throw Object.assign(new Error("read-only"), { code: "EROFS" });
    };
    return GOOD;
  });
  await assertRejects(() => h.refresher.ensureFresh(ID, null), StoreFailure, "EROFS");
  assertEquals(h.fatal.length, 1);
  assertEquals(h.changes, []);
  assertEquals(h.directory.isOwnAccountToken(NEXT), false);
});

for (const code of ["EROFS", "EACCES", "EPERM"]) {
  Deno.test(`a file that cannot be written (${code}) is not refreshed: the token is used to its end, then the account rests`, async () => {
    const soon = { ...LIVE, expiresAtMs: FAKE_START_MS + 4 * MINUTE_MS };
    await using h = await withFile(codexAuthText(soon));
    h.disk.before = (operation) => {
      if (operation === "writeNew") throw Object.assign(new Error("read-only"), { code });
    };
    assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "ready");
    await h.clock.advance(5 * MINUTE_MS);
    assertEquals(await h.refresher.ensureFresh(ID, null), {
      kind: "failed",
      evidence: {
        kind: "refresh_failed",
        terminal: true,
        code: "credential_file_read_only",
        reason: "credential_invalid",
        retryAtMs: null,
      },
    });
    assertEquals([h.issuer.calls.length, h.fatal.length], [0, 0]);
    assertEquals([...h.disk.files.keys()], [PATH]);
  });
}

Deno.test("a full disk ends the process before the issuer is asked: the refresh token stays unused", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.disk.before = (operation) => {
    if (operation === "writeNew") throw Object.assign(new Error("full"), { code: "ENOSPC" });
  };
  await assertRejects(() => h.refresher.ensureFresh(ID, null), StoreFailure, "ENOSPC");
  assertEquals([h.issuer.calls.length, h.fatal.length], [0, 1]);
});

Deno.test("a copy that cannot be written stays as it is when the file in use is refreshed", async () => {
  const copy = `${AUTH_DIR}/copy.json`;
  const older = codexAuthText({ ...SPENT, lastRefresh: "2027-01-01T00:00:00Z" });
  await using h = await accountHarness({ files: { [PATH]: codexAuthText(SPENT), [copy]: older } });
  h.issuer.script(GOOD);
  h.disk.before = (operation, path) => {
    if (operation === "writeNew" && path.includes("copy")) {
      throw Object.assign(new Error("read-only"), { code: "EROFS" });
    }
  };
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
  assertEquals([h.disk.text(copy) === older, h.fatal.length], [true, 0]);
});

Deno.test("the failure to write reaches the process also when no waiter is left", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(GOOD);
  h.disk.before = (operation) => {
    if (operation === "writeNew") throw Object.assign(new Error("full"), { code: "ENOSPC" });
  };
  const leaver = new AbortController();
  const left = h.refresher.ensureFresh(ID, leaver.signal);
  leaver.abort();
  assertEquals((await left).kind, "cancelled");
  await h.clock.advance(0);
  assert(h.fatal[0] instanceof StoreFailure);
});

Deno.test("an answer without a refresh token keeps the old one", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(refreshed(NEXT, null, FAKE_START_MS + HOUR_MS));
  await h.refresher.ensureFresh(ID, null);
  assertEquals(tokensOnDisk(h), [NEXT, "rt_SENT-1"]);
});

Deno.test("an answer with only a new refresh token is no success, but that token is kept", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(passing("token_endpoint_unreadable", { refreshToken: "rt_SENT-2" }), GOOD);
  assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "failed");
  assertEquals(tokensOnDisk(h), [fakeJwt(SPENT), "rt_SENT-2"]);
  assertEquals(accessToken(await h.refresher.ensureFresh(ID, null)), NEXT);
  assertEquals(h.issuer.calls[1]!.refreshToken, "rt_SENT-2");
});

/** Field case B052. */
Deno.test("edits made while the refresh is under way are kept, and a disabling stays", async () => {
  await using h = await withFile(codexFlatText(SPENT));
  h.issuer.script(() => {
    h.disk.put(PATH, codexFlatText(SPENT, { label: "mine", priority: 9, disabled: true }));
    return GOOD;
  });
  await h.refresher.ensureFresh(ID, null);
  const root = JSON.parse(h.disk.text(PATH)!);
  assertEquals([root.label, root.priority, root.disabled, root.refresh_token], [
    "mine",
    9,
    true,
    "rt_SENT-2",
  ]);
  assertEquals(h.directory.accounts()[0]?.enabled, false);
});

Deno.test("a login somebody made during the refresh is kept and used", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const theirs = codexAuthText({ ...LIVE, serial: "login", refreshToken: "rt_SENT-LOGIN" });
  h.issuer.script(() => {
    h.disk.put(PATH, theirs);
    return GOOD;
  });
  const result = await h.refresher.ensureFresh(ID, null);
  assertEquals(accessToken(result), fakeJwt({ ...LIVE, serial: "login" }));
  assertEquals(h.disk.text(PATH), theirs);
});

Deno.test("a file that went to another account during the refresh is left to it", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  const bob = codexAuthText({ ...LIVE, user: "bob" });
  h.issuer.script(() => {
    h.disk.put(PATH, bob);
    return GOOD;
  });
  assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "gone");
  assertEquals(h.disk.text(PATH), bob);
  assertEquals(h.directory.accounts().map((one) => one.id), ["codex:w1:bob"]);
});

Deno.test("a file removed during the refresh is not made again", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(() => {
    h.disk.files.delete(PATH);
    return GOOD;
  });
  assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "gone");
  assertEquals([...h.disk.files.keys()], []);
});

Deno.test("a file that is half-written when tokens arrive is waited for", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(() => {
    h.disk.put(PATH, codexAuthText(SPENT).slice(0, 80));
    h.clock.schedule(h.clock.now() + 1_000, () => h.disk.put(PATH, codexAuthText(SPENT, { edited: true })));
    return GOOD;
  });
  assertEquals(accessToken(await h.clock.runUntil(h.refresher.ensureFresh(ID, null))), NEXT);
  assertEquals([...tokensOnDisk(h), JSON.parse(h.disk.text(PATH)!).edited], [NEXT, "rt_SENT-2", true]);
});

Deno.test("a file that stays broken is healed from what was read before the refresh", async () => {
  await using h = await withFile(codexAuthText(SPENT, { kept: "yes" }));
  h.issuer.script(() => {
    h.disk.put(PATH, "");
    return GOOD;
  });
  assertEquals(accessToken(await h.clock.runUntil(h.refresher.ensureFresh(ID, null), 10_000)), NEXT);
  assertEquals([...tokensOnDisk(h), JSON.parse(h.disk.text(PATH)!).kept], [NEXT, "rt_SENT-2", "yes"]);
});

Deno.test("copies that share the refresh token get the new one; a separate login of the account is left alone", async () => {
  const copy = `${AUTH_DIR}/copy.json`;
  const separate = `${AUTH_DIR}/separate.json`;
  const other = codexFlatText({
    ...SPENT,
    refreshToken: "rt_SENT-OTHER",
    lastRefresh: "2027-01-01T00:00:00Z",
  });
  await using h = await accountHarness({
    files: { [PATH]: codexAuthText(SPENT), [copy]: codexFlatText(SPENT), [separate]: other },
  });
  h.issuer.script(GOOD);
  await h.refresher.ensureFresh(ID, null);
  assertEquals(tokensOnDisk(h), [NEXT, "rt_SENT-2"]);
  assertEquals(JSON.parse(h.disk.text(copy)!).refresh_token, "rt_SENT-2");
  assertEquals(h.disk.text(separate), other);
});

Deno.test("Claude Code's file is refreshed at its own issuer and keeps its other keys", async () => {
  const path = "/home/.claude/.credentials.json";
  await using h = await accountHarness({
    files: { [path]: claudeCodeText({ expiresAtMs: FAKE_START_MS - 1 }) },
    providers: [claudeProvider([{ id: "sub", apiKey: null, credentialsPath: path }])],
  });
  h.issuer.script((call: RefreshCall) => {
    assertEquals([call.kind, call.url], ["anthropic", "http://127.0.0.1:9/v1/oauth/token"]);
    return refreshed("sk-ant-oat01-SENT-2", "sk-ant-ort01-SENT-2", FAKE_START_MS + 8 * HOUR_MS);
  });
  assertEquals(accessToken(await h.refresher.ensureFresh("claude:sub", null)), "sk-ant-oat01-SENT-2");
  const root = JSON.parse(h.disk.text(path)!);
  assertEquals(root.claudeAiOauth.expiresAt, FAKE_START_MS + 8 * HOUR_MS);
  assertEquals(root.mcpOAuth, { server: { token: "SENT-MCP" } });
});

/** Field case B058: a strange lifetime costs one call, not one a request. */
for (const expiresIn of ["abc", null, undefined, -5, 0, 1e308, "3600", 3600.9]) {
  for (const kind of ["JWT", "opaque"]) {
    Deno.test(`expires_in ${String(expiresIn)} with a token that is ${kind}: one call for 20 requests in 60 s`, async () => {
      await using h = await withFile(codexAuthText(SPENT));
      const token = kind === "JWT"
        ? fakeJwt({ ...ALICE, expiresAtMs: FAKE_START_MS + HOUR_MS })
        : "SENT-OPAQUE-2";
      h.issuer.otherwise = (call: RefreshCall) =>
        refreshed(token, "rt_SENT-2", validityOnReceipt(token, expiresIn, call.nowMs).expiresAtMs);
      for (let i = 0; i < 20; i++) {
        await h.refresher.ensureFresh(ID, null);
        await h.clock.advance(3_000);
      }
      assertEquals(h.issuer.calls.length, 1);
    });
  }
}

/** Field case B060: clocks that disagree. The step of the running clock itself is tested in runtime/clock_test.ts. */
for (const skewMs of [-10 * MINUTE_MS, 0, 10 * MINUTE_MS]) {
  Deno.test(`with our clock ${skewMs / MINUTE_MS} min off, 300 s tokens are refreshed once a lifetime and never used late`, async () => {
    await using h = await withFile(codexAuthText(SPENT));
    let serial = 0;
    const ends = new Map<string, number>();
    h.issuer.otherwise = (call: RefreshCall) => {
      const serverMs = call.nowMs - skewMs;
      const token = fakeJwt({
        ...ALICE,
        serial: `${++serial}`,
        issuedAtMs: serverMs,
        expiresAtMs: serverMs + 300_000,
      });
      ends.set(token, call.nowMs + 300_000);
      return refreshed(token, `rt_SENT-${serial}x`, validityOnReceipt(token, 300, call.nowMs).expiresAtMs);
    };
    for (let i = 0; i < 90; i++) {
      const token = accessToken(await h.refresher.ensureFresh(ID, null));
      assert(h.clock.now() < ends.get(token)!, "the server would answer 401");
      await h.clock.advance(10_000);
    }
    assert(h.issuer.calls.length <= 5, `${h.issuer.calls.length} calls in 15 min`);
  });
}

Deno.test("a crash at any disk operation of a refresh leaves a file that the next start can use", async () => {
  let crashedCount = 0;
  for (let n = 1;; n++) {
    const clock = new FakeClock();
    const disk = new MemoryDisk(() => clock.now());
    disk.put(PATH, codexAuthText(SPENT));
    let answered = false;
    {
      const h = await accountHarness({ disk, clock });
      h.issuer.script(() => {
        answered = true;
        // From the issuer's answer on, counting starts: before it nothing can be lost.
        disk.crashAt(n);
        return GOOD;
      });
      await h.refresher.ensureFresh(ID, null).catch(() => {});
      const crashed = disk.crashed;
      await h.refresher.close();
      await h.directory.close();
      if (!crashed) break;
      crashedCount += 1;
    }
    assertEquals(answered, true);
    const pendingIsWhole = disk.files.has(`${AUTH_DIR}/.auth.json.pending`);
    disk.restart();
    await using h = await accountHarness({ disk, clock: new FakeClock() });
    const found = h.directory.get(ID)?.refresh?.refreshToken;
    assert(found === "rt_SENT-1" || found === "rt_SENT-2", `crash at ${n}: ${found}`);
    if (pendingIsWhole) assertEquals(found, "rt_SENT-2", `crash at ${n}`);
    assertEquals([...disk.files.keys()], [PATH], `crash at ${n}`);
  }
  assert(crashedCount >= 8, `${crashedCount}`);
});

Deno.test("a look that read the file just before a save cannot bring the old tokens back", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(GOOD);
  const gate = Promise.withResolvers<void>();
  h.disk.afterRead = () => {
    h.disk.afterRead = () => {};
    return gate.promise;
  };
  const look = h.directory.rescan();
  await h.clock.advance(0);
  const fresh = h.refresher.ensureFresh(ID, null);
  await h.clock.advance(0);
  gate.resolve();
  await look;
  assertEquals(accessToken(await fresh), NEXT);
  await h.clock.advance(0);
  assertEquals(h.directory.get(ID)?.refresh?.refreshToken, "rt_SENT-2");
  assertEquals(h.changes.length, 1);
});

Deno.test("close() waits for the answer under way and saves it, but makes no further call", async () => {
  const h = await withFile(codexAuthText(SPENT));
  const answer = Promise.withResolvers<RefreshResult>();
  h.issuer.script(() => answer.promise);
  const asked = h.refresher.ensureFresh(ID, null);
  await h.clock.advance(0);
  let closed = false;
  const closing = h.refresher.close().then(() => closed = true);
  await h.clock.advance(0);
  assertEquals(closed, false);
  answer.resolve(GOOD);
  await closing;
  assertEquals(accessToken(await asked), NEXT);
  assertEquals(tokensOnDisk(h), [NEXT, "rt_SENT-2"]);
  await h.directory.close();

  const second = await withFile(codexAuthText(SPENT));
  second.issuer.script(passing("token_endpoint_503", { repeatable: true }));
  const waiting = second.refresher.ensureFresh(ID, null);
  await second.clock.advance(100);
  await second.refresher.close();
  assertEquals((await waiting).kind, "failed");
  await second.directory.close();
  assertEquals(second.clock.pendingCount, 0);
});

Deno.test("no token is in the log after refreshes, refusals and failures", async () => {
  await using h = await withFile(codexAuthText({ ...SPENT, email: "alice@example.com" }));
  h.issuer.script(passing("token_endpoint_400"), GOOD, deadGrant());
  await h.refresher.ensureFresh(ID, null);
  await h.refresher.ensureFresh(ID, null);
  await h.refresher.repair(ID, h.directory.get(ID)!.account.fingerprint, null);
  assert(h.log.events().includes("token_refreshed") && h.log.events().includes("token_refresh_failed"));
  assertEquals(h.log.scan(["SENT", NEXT, "alice@", NEXT.split(".")[1]!]), []);
});

Deno.test("no refresh is asked for while no descriptor is left to keep its answer with; nobody is blamed", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  let isBusy = true;
  h.disk.before = (operation) => {
    if (operation === "writeNew" && isBusy) throw NO_DESCRIPTORS;
  };
  const failed = await h.refresher.ensureFresh(ID, null);
  assertEquals(failed.kind === "failed" && failed.evidence.code, "token_endpoint_local_limit");
  assertEquals([h.issuer.calls.length, h.fatal.length], [0, 0]);
  isBusy = false;
  h.issuer.script(GOOD);
  assertEquals((await h.refresher.ensureFresh(ID, null)).kind, "ready");
});

Deno.test("a rotated token waits for a free descriptor: a busy process loses no login", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(GOOD);
  let refusals = 0;
  h.disk.before = (operation) => {
    if (operation === "writeNew" && h.issuer.calls.length > 0 && ++refusals <= 3) throw NO_DESCRIPTORS;
  };
  const result = await h.clock.runUntil(h.refresher.ensureFresh(ID, null));
  assertEquals([result.kind, refusals, h.fatal.length], ["ready", 4, 0]);
  assertEquals(h.directory.isOwnAccountToken(NEXT), true);
});

Deno.test("a rotated token that finds no descriptor for 5 s ends the process", async () => {
  await using h = await withFile(codexAuthText(SPENT));
  h.issuer.script(GOOD);
  h.disk.before = (operation) => {
    if (operation === "writeNew" && h.issuer.calls.length > 0) throw NO_DESCRIPTORS;
  };
  const began = h.clock.now();
  await assertRejects(() => h.clock.runUntil(h.refresher.ensureFresh(ID, null)), StoreFailure, "EMFILE");
  assert(h.clock.now() - began >= 5_000);
  assertEquals(h.fatal.length, 1);
});

const NO_DESCRIPTORS = Object.assign(new Error("Too many open files"), { code: "EMFILE" });
