import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  DEFAULT_LIFETIME_MS,
  readLifetimeMs,
  validityFromFile,
  validityOnReceipt,
  validityUntil,
} from "../../lib/core/token_lifetime.ts";
import { fakeJwt } from "../support/credential_texts.ts";

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Field case B058: every strange `expires_in`, with an opaque token. */
const lifetimes = [
  { given: "abc", want: null },
  { given: null, want: null },
  { given: undefined, want: null },
  { given: -5, want: null },
  { given: 0, want: null },
  { given: 0.9, want: null },
  { given: 1, want: 1_000 },
  { given: 1e308, want: null },
  { given: Infinity, want: null },
  { given: NaN, want: null },
  { given: "3600", want: HOUR_MS },
  { given: " 3600 ", want: HOUR_MS },
  { given: "-3600", want: null },
  { given: "3600.9", want: HOUR_MS },
  { given: 3600.9, want: HOUR_MS },
  { given: 365 * 86_400, want: 365 * DAY_MS },
  { given: 365 * 86_400 + 1, want: null },
  { given: {}, want: null },
  { given: true, want: null },
] as const;
for (const c of lifetimes) {
  Deno.test(`readLifetimeMs() of ${typeof c.given} ${JSON.stringify(c.given) ?? "absent"}`, () => {
    assertEquals(readLifetimeMs(c.given), c.want);
  });
  Deno.test(`validityOnReceipt() of an opaque token with expires_in ${String(c.given)} is a sane time`, () => {
    const validity = validityOnReceipt("SENT-OPAQUE", c.given, NOW_MS);
    assertEquals(validity.expiresAtMs, NOW_MS + (c.want ?? DEFAULT_LIFETIME_MS));
    assert(validity.refreshAtMs! > NOW_MS, "the first request must not refresh again");
  });
}

Deno.test("validityOnReceipt() believes exp of the token before expires_in", () => {
  const token = fakeJwt({ issuedAtMs: NOW_MS, expiresAtMs: NOW_MS + HOUR_MS });
  for (const c of lifetimes) {
    assertEquals(validityOnReceipt(token, c.given, NOW_MS).expiresAtMs, NOW_MS + HOUR_MS);
  }
});

/** Field case B060: tokens of 300 s, our clock ten minutes off to either side. */
for (const skewMs of [-10 * MINUTE_MS, -MINUTE_MS, 0, MINUTE_MS, 10 * MINUTE_MS, HOUR_MS]) {
  Deno.test(`validityOnReceipt() measures from receipt when our clock is ${skewMs / MINUTE_MS} min ahead`, () => {
    const serverMs = NOW_MS - skewMs;
    const token = fakeJwt({ issuedAtMs: serverMs, expiresAtMs: serverMs + 300_000 });
    const validity = validityOnReceipt(token, 300, NOW_MS);
    const lifeMs = validity.expiresAtMs! - NOW_MS;
    assert(lifeMs > 0 && lifeMs <= 300_000, `${lifeMs}`);
    // One refresh in at least 180 s, though requests come every 10 s.
    assert(validity.refreshAtMs! - NOW_MS >= 180_000, `${validity.refreshAtMs! - NOW_MS}`);
  });
}

Deno.test("validityOnReceipt() believes an earlier exp: the issuer may hand out a token again", () => {
  const token = fakeJwt({ issuedAtMs: NOW_MS - 4 * HOUR_MS, expiresAtMs: NOW_MS + 4 * HOUR_MS });
  assertEquals(validityOnReceipt(token, 28_800, NOW_MS), {
    expiresAtMs: NOW_MS + 4 * HOUR_MS,
    refreshAtMs: NOW_MS + 4 * HOUR_MS - 5 * MINUTE_MS,
  });
});

Deno.test("validityOnReceipt() without iat takes expires_in, else exp, and survives an exp in the past", () => {
  const future = fakeJwt({ expiresAtMs: NOW_MS + 2 * HOUR_MS });
  assertEquals(validityOnReceipt(future, null, NOW_MS).expiresAtMs, NOW_MS + 2 * HOUR_MS);
  const past = fakeJwt({ expiresAtMs: NOW_MS - HOUR_MS });
  assertEquals(validityOnReceipt(past, null, NOW_MS).expiresAtMs, NOW_MS + DEFAULT_LIFETIME_MS);
  assertEquals(validityOnReceipt(past, 600, NOW_MS).expiresAtMs, NOW_MS + 600_000);
});

const margins = [
  { name: "unknown life", lifetimeMs: null, want: 300_000 },
  { name: "8 h", lifetimeMs: 8 * HOUR_MS, want: 300_000 },
  { name: "25 min, the border", lifetimeMs: 1_500_000, want: 300_000 },
  { name: "1 ms less", lifetimeMs: 1_499_999, want: 299_999 },
  { name: "5 min", lifetimeMs: 300_000, want: 60_000 },
] as const;
for (const c of margins) {
  Deno.test(`validityUntil() refreshes ${c.want} ms before the end: ${c.name}`, () => {
    assertEquals(validityUntil(NOW_MS, c.lifetimeMs), { expiresAtMs: NOW_MS, refreshAtMs: NOW_MS - c.want });
  });
}

/** Field case B059: file and token disagree. */
const files = [
  {
    name: "stale stored expiry, live token",
    exp: NOW_MS + 8 * HOUR_MS,
    stored: NOW_MS - HOUR_MS,
    want: NOW_MS + 8 * HOUR_MS,
  },
  {
    name: "hopeful stored expiry, spent token",
    exp: NOW_MS - MINUTE_MS,
    stored: NOW_MS + 8 * HOUR_MS,
    want: NOW_MS - MINUTE_MS,
  },
  { name: "opaque token", exp: null, stored: NOW_MS + HOUR_MS, want: NOW_MS + HOUR_MS },
  { name: "opaque token, nothing stored", exp: null, stored: null, want: null },
] as const;
for (const c of files) {
  Deno.test(`validityFromFile() with ${c.name}`, () => {
    const token = c.exp === null ? "SENT-OPAQUE" : fakeJwt({ expiresAtMs: c.exp });
    assertEquals(validityFromFile(token, c.stored, null).expiresAtMs, c.want);
  });
}

Deno.test("validityFromFile() without any end refreshes 8 days after the last refresh, or never", () => {
  assertEquals(validityFromFile("SENT-X", null, NOW_MS), {
    expiresAtMs: null,
    refreshAtMs: NOW_MS + 8 * DAY_MS,
  });
  assertEquals(validityFromFile("SENT-X", null, null), { expiresAtMs: null, refreshAtMs: null });
});

Deno.test("no answer of any issuer stores a time that is not a number or due at once", () => {
  fc.assert(fc.property(
    fc.anything(),
    fc.option(
      fc.record({
        issuedAtMs: fc.integer({ min: 1, max: 4e12 }),
        expiresAtMs: fc.integer({ min: 1, max: 4e12 }),
      }),
    ),
    (expiresIn, claims) => {
      const token = claims === null ? "SENT-OPAQUE" : fakeJwt(claims);
      const validity = validityOnReceipt(token, expiresIn, NOW_MS);
      assert(Number.isSafeInteger(validity.expiresAtMs) && Number.isSafeInteger(validity.refreshAtMs));
      assert(validity.refreshAtMs! >= NOW_MS && validity.expiresAtMs! > NOW_MS);
    },
  ));
});
