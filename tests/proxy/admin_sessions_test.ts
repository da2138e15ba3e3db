import { assertEquals } from "@std/assert";
import { AdminSessions, MAX_SESSIONS, SESSION_MS } from "../../lib/proxy/admin_sessions.ts";
import { createIds } from "../../lib/runtime/chance.ts";
import { createDigest } from "../../lib/runtime/digest.ts";

const START_MS = 1_800_000_000_000;
const make = () => new AdminSessions(createIds(), createDigest());

const ages: readonly { name: string; ageMs: number; want: boolean }[] = [
  { name: "just opened", ageMs: 0, want: true },
  { name: "in its last ms", ageMs: SESSION_MS - 1, want: true },
  { name: "at its end", ageMs: SESSION_MS, want: false },
];
for (const c of ages) {
  Deno.test(`AdminSessions.isOpen() is ${c.want} ${c.name}`, () => {
    const sessions = make();
    const id = sessions.open("hash", START_MS);
    assertEquals(sessions.isOpen(id, "hash", START_MS + c.ageMs), c.want);
  });
}

Deno.test("AdminSessions.isOpen() is false for nobody, strangers, another key, and after the end", () => {
  const sessions = make();
  const id = sessions.open("hash", START_MS);
  assertEquals(sessions.isOpen(null, "hash", START_MS), false);
  assertEquals(sessions.isOpen("guessed", "hash", START_MS), false);
  assertEquals(sessions.isOpen(id, "other", START_MS), false);
  assertEquals(sessions.isOpen(id, null, START_MS), false);
  sessions.end(id);
  assertEquals(sessions.isOpen(id, "hash", START_MS), false);
});

Deno.test("AdminSessions.open() gives ids of 256 bits, none twice", () => {
  const sessions = make();
  const ids = Array.from({ length: 50 }, () => sessions.open("hash", START_MS));
  assertEquals(new Set(ids).size, 50);
  assertEquals(ids.every((id) => /^[A-Za-z0-9_-]{43}$/.test(id)), true);
});

Deno.test("AdminSessions.open() drops the oldest when full, and whatever has expired", () => {
  const sessions = make();
  const first = sessions.open("hash", START_MS);
  const second = sessions.open("hash", START_MS);
  for (let more = 2; more <= MAX_SESSIONS; more++) sessions.open("hash", START_MS + 1);
  assertEquals(sessions.count, MAX_SESSIONS);
  assertEquals(sessions.isOpen(first, "hash", START_MS + 1), false);
  assertEquals(sessions.isOpen(second, "hash", START_MS + 1), true);
  sessions.open("hash", START_MS + 1 + SESSION_MS);
  assertEquals(sessions.count, 1);
});
