import { assert, assertEquals } from "@std/assert";
import { DecisionLog } from "../../lib/proxy/decision_log.ts";
import { EventFeed, type FeedOptions, MAX_READERS, STATE_SPACING_MS } from "../../lib/proxy/event_feed.ts";
import { HourStats } from "../../lib/proxy/hour_stats.ts";
import { StateView } from "../../lib/proxy/state_view.ts";
import { decision } from "../support/decisions.ts";
import { FakeClock, settle } from "../support/fake_clock.ts";
import { Driver, START_MS } from "../support/pool_driver.ts";
import type { Answer } from "../../lib/proxy/answer.ts";
import { readJson, sourceOf } from "../support/answers.ts";

const MINUTE_MS = 60_000;

interface Told {
  readonly event: string;
  // deno-lint-ignore no-explicit-any -- JSON as a browser would read it
  readonly data: any;
}

function setUp(names: readonly string[] = ["A", "B"]) {
  const clock = new FakeClock(START_MS);
  const { pool } = new Driver(names);
  const providers = () => [{ id: "codex", kind: "codex" }] as const;
  const state = new StateView({ pool, details: () => null, isEmailOf: () => false, providers });
  const decisions = new DecisionLog();
  const hour = new HourStats();
  decisions.subscribe((record) => hour.add(record));
  return { clock, pool, decisions, feed: new EventFeed({ clock, pool, state, decisions, hour }) };
}

/** A reader that reads whatever there is. */
function listen(answer: Answer) {
  const told: Told[] = [];
  let ended = false;
  const source = sourceOf(answer);
  const reading = (async () => {
    let text = "";
    const decoder = new TextDecoder();
    for (;;) {
      const piece = await source.read();
      if (piece === null) break;
      text += decoder.decode(piece, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end));
        if (event !== null) told.push({ event: event[1]!, data: JSON.parse(event[2]!) });
        text = text.slice(end + 2);
      }
    }
    ended = true;
  })();
  return {
    told,
    get ended() {
      return ended;
    },
    /** Events since the last call. */
    take: () => told.splice(0),
    async leave() {
      source.cancel();
      await reading;
    },
  };
}

const open = (feed: EventFeed, detail: FeedOptions["detail"] = "page") =>
  listen(feed.open({ detail, isAllowed: () => true }));

const names = (told: readonly Told[]) => told.map(({ event }) => event);

Deno.test("EventFeed tells a new reader the whole state first, for the page with the hour and its requests", async () => {
  const { clock, decisions, feed } = setUp();
  decisions.add(decision({ endedAtMs: START_MS }));
  const page = open(feed);
  const management = open(feed, "full");
  await settle();
  assertEquals(names(management.take()), ["state"]);
  const [state, minutes, requests] = page.take();
  assertEquals([state!.event, state!.data.full, state!.data.accounts.length], ["state", true, 2]);
  assertEquals(state!.data.providers[0].id, "codex");
  assertEquals([minutes!.event, minutes!.data.minutes.length], ["minutes", 60]);
  assertEquals([requests!.event, requests!.data.requests.length], ["requests", 1]);
  await page.leave();
  await management.leave();
  assertEquals([feed.readerCount, clock.pendingCount], [0, 0]);
});

Deno.test("EventFeed tells each request at once: in full to management, in one line to the page", async () => {
  const { decisions, feed } = setUp();
  const [page, management] = [open(feed), open(feed, "full")];
  await settle();
  page.take();
  management.take();
  decisions.add(decision({ model: "m".repeat(500) }));
  await settle();
  const [line] = page.take();
  assertEquals([line!.event, line!.data.attempts, line!.data.result], ["request", 1, "served"]);
  assertEquals(line!.data.model.length, 120);
  const [whole] = management.take();
  assertEquals([whole!.event, whole!.data.attempts[0].account], ["request", "codex:A"]);
  await page.leave();
  await management.leave();
});

Deno.test("EventFeed tells changes of accounts together, at most every 250 ms, and only what changed", async () => {
  const { clock, pool, feed } = setUp(["A", "B", "C"]);
  const reader = open(feed, "full");
  await clock.advance(STATE_SPACING_MS * 4);
  assertEquals(names(reader.take()), ["state"]);
  for (let nth = 0; nth < 20; nth++) pool.setEnabled("A", nth % 2 === 1, clock.now());
  pool.setEnabled("B", false, clock.now());
  await clock.advance(STATE_SPACING_MS - 1);
  assertEquals(reader.take(), []);
  await clock.advance(1);
  const [change, ...rest] = reader.take();
  assertEquals(rest, []);
  assertEquals(change!.data.full, false);
  assertEquals(change!.data.accounts.map(({ id, state }: { id: string; state: string }) => [id, state]), [
    ["A", "healthy"],
    ["B", "disabled"],
  ]);
  await reader.leave();
});

Deno.test("EventFeed tells of a block that ran out although nothing happened", async () => {
  const { clock, pool, feed } = setUp(["A"]);
  pool.observeQuota("A", {
    observedAtMs: clock.now(),
    source: "usage_page",
    windows: [{ name: "5h", usedPercent: 100, resetAtMs: clock.now() + MINUTE_MS, modelFamily: null }],
    limitReached: true,
    servesBeyondWindows: false,
    creditsAvailable: null,
    plan: null,
  }, clock.now());
  const reader = open(feed);
  await settle();
  const [state] = reader.take();
  assertEquals(state!.data.accounts[0].state, "parked");
  assertEquals(
    state!.data.accounts[0].words,
    "Out of quota, as seen in its usage page; tried again after the park",
  );
  await clock.advance(MINUTE_MS);
  const states = reader.take().filter(({ event }) => event === "state");
  assertEquals(states.at(-1)!.data.accounts[0].state, "healthy");
  await reader.leave();
});

Deno.test("EventFeed tells its clock every fifteen seconds, also when nothing happens", async () => {
  const { clock, feed } = setUp();
  const reader = open(feed);
  await clock.advance(14_999);
  reader.take();
  await clock.advance(15_001);
  assertEquals(reader.take(), [
    { event: "clock", data: { at: new Date(START_MS + 15_000).toISOString() } },
    { event: "clock", data: { at: new Date(START_MS + 30_000).toISOString() } },
  ]);
  await reader.leave();
});

Deno.test("EventFeed tells the page's counters at most once a second, with the minute before", async () => {
  const { clock, decisions, feed } = setUp();
  const reader = open(feed);
  await clock.advance(2_000);
  reader.take();
  for (let nth = 0; nth < 8; nth++) {
    decisions.add(decision({ endedAtMs: clock.now() }));
    await clock.advance(250);
  }
  const counters = reader.take().filter(({ event }) => event === "minutes");
  assertEquals(counters.length, 2);
  assertEquals(counters.at(-1)!.data.minutes.length, 2);
  await reader.leave();
});

Deno.test("EventFeed makes a slow reader lose events, not the proxy keep them, and tells it the whole state again", async () => {
  const { clock, pool, decisions, feed } = setUp();
  const response = feed.open({ detail: "full", isAllowed: () => true });
  await settle();
  const notes = ["n".repeat(10_000)];
  for (let nth = 0; nth < 200; nth++) decisions.add(decision({ requestId: `req_${nth}`, notes }));
  pool.setEnabled("A", false, clock.now());
  await clock.advance(STATE_SPACING_MS);
  const reader = listen(response);
  await settle(40);
  const told = reader.take();
  const requests = told.filter(({ event }) => event === "request");
  assert(requests.length > 20 && requests.length < 30, `${requests.length} of 200 events were kept`);
  const last = told.at(-1)!;
  assertEquals([last.event, last.data.full], ["state", true]);
  assertEquals(last.data.accounts[0].state, "disabled");
  decisions.add(decision({ requestId: "req_after" }));
  await settle();
  assertEquals(reader.take().map(({ data }) => data.request_id), ["req_after"]);
  await reader.leave();
});

Deno.test("EventFeed ends a stream before the next event, or with the next ping, once it is not allowed any more", async () => {
  const { clock, decisions, feed } = setUp();
  let allowed = true;
  const [busy, quiet] = [1, 2].map(() => listen(feed.open({ detail: "page", isAllowed: () => allowed })));
  await settle();
  busy!.take();
  quiet!.take();
  allowed = false;
  decisions.add(decision());
  await settle();
  assertEquals([busy!.ended, busy!.take()], [true, []]);
  assertEquals(quiet!.ended, true);
  allowed = true;
  const silent = listen(feed.open({ detail: "page", isAllowed: () => allowed }));
  await settle();
  allowed = false;
  await clock.advance(15_250);
  assertEquals([silent.ended, feed.readerCount, clock.pendingCount], [true, 0, 0]);
});

Deno.test("EventFeed refuses one reader too many, ends all when closed, and opens none afterwards", async () => {
  const { clock, feed } = setUp();
  const readers = Array.from({ length: MAX_READERS }, () => open(feed));
  await settle();
  const refused = feed.open({ detail: "page", isAllowed: () => true });
  assertEquals([refused.status, (await readJson(refused)).error.code], [503, "too_many_feeds"]);
  feed.close();
  await settle();
  assertEquals(readers.every(({ ended }) => ended), true);
  const late = feed.open({ detail: "page", isAllowed: () => true });
  assertEquals([late.status, (await readJson(late)).error.code], [503, "shutting_down"]);
  assertEquals(clock.pendingCount, 0);
});
