/** The pages as text: what is in them, what must never be, and the small functions of their scripts. */
import { assert, assertEquals } from "@std/assert";
import { composePages } from "../../lib/proxy/status_page.ts";
import {
  accountLabel,
  ago,
  clockTime,
  countdown,
  distance,
  duration,
  plural,
  shorten,
} from "../../lib/proxy/status_page/format.js";
import { createDigest } from "../../lib/runtime/digest.ts";

const pages = composePages(createDigest(), "9.9.9");
const shown = {
  page: pages.page,
  login: pages.login(null),
  refused: pages.login("That is not the admin key."),
};

function between(text: string, tag: string): string[] {
  return [...text.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, "g"))].map((match) => match[1]!);
}

async function sourceOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${new Uint8Array(digest).toBase64()}'`;
}

Deno.test("composePages() lets exactly the page's own style and script run", async () => {
  for (const [html, policy] of [[shown.page, pages.pagePolicy], [shown.login, pages.loginPolicy]] as const) {
    const styles = between(html, "style");
    assertEquals(styles.length, 1);
    assert(policy.includes(`style-src ${await sourceOf(styles[0]!)};`), policy);
  }
  const scripts = between(shown.page, "script");
  assertEquals(scripts.length, 1);
  assert(pages.pagePolicy.includes(`script-src ${await sourceOf(scripts[0]!)};`), pages.pagePolicy);
  assertEquals(between(shown.login, "script"), []);
  assertEquals(pages.loginPolicy.includes("script-src"), false);
});

for (const [name, html] of Object.entries(shown)) {
  Deno.test(`composePages() makes a ${name} page that loads nothing and runs nothing inline`, () => {
    const markup = html.replaceAll(/<(style|script)>[\s\S]*?<\/\1>/g, "");
    assertEquals(/\son[a-z]+=|\sstyle=|javascript:|<iframe|<object|<base/i.exec(markup), null);
    const sources = [...markup.matchAll(/\s(?:src|href|action)="([^"]*)"/g)].map((match) => match[1]!);
    assertEquals(sources.filter((source) => !/^(#|\/status\/|data:image\/svg)/.test(source)), []);
    assertEquals(/\{\{|\}\}/.test(html), false);
    assert(markup.includes('<html lang="en">') && markup.includes('name="viewport"'));
  });
}

Deno.test("composePages() joins the scripts into one that parses and never turns text into markup", () => {
  const [script] = between(shown.page, "script");
  new Function(script!);
  assertEquals(/^\s*(import|export)\b/m.exec(script!), null);
  assertEquals(
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|cookie/.exec(
      script!,
    ),
    null,
  );
  assertEquals(script!.includes("</script"), false);
});

Deno.test("composePages() words a refused login where screen readers find it", () => {
  assert(
    shown.refused.includes('<p id="problem" class="problem" role="alert">That is not the admin key.</p>'),
  );
  assert(shown.refused.includes('aria-describedby="problem hint"'));
  assertEquals(shown.login.includes('role="alert"'), false);
  assert(shown.page.includes("9.9.9"));
});

Deno.test("composePages() has every element its scripts look for", () => {
  const [script] = between(shown.page, "script");
  const wanted = new Set([...script!.matchAll(/byId\("([\w-]+)"\)/g)].map((match) => match[1]!));
  for (const match of script!.matchAll(/id: "(chart-\w+)"/g)) wanted.add(match[1]!);
  assert(wanted.size > 20);
  const missing = [...wanted].filter((id) => !shown.page.includes(` id="${id}"`));
  assertEquals(missing, []);
});

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const countdowns: readonly [number, string][] = [
  [-5, "0:00"],
  [1, "0:01"],
  [7 * SECOND, "0:07"],
  [7 * SECOND + 1, "0:08"],
  [59 * MINUTE + 32 * SECOND, "59:32"],
  [HOUR, "1:00:00"],
  [2 * HOUR + 5 * SECOND, "2:00:05"],
  [48 * HOUR - SECOND, "47:59:59"],
  [48 * HOUR, "2 d 00 h"],
  [76 * HOUR, "3 d 04 h"],
];
for (const [ms, want] of countdowns) {
  Deno.test(`countdown() shows ${ms} ms as ${want}`, () => assertEquals(countdown(ms), want));
}

const distances: readonly [number, string][] = [
  [-1, "0 s"],
  [40 * SECOND, "40 s"],
  [12 * MINUTE, "12 min"],
  [2 * HOUR, "2 h"],
  [2 * HOUR + 10 * MINUTE, "2 h 10 min"],
  [3 * DAY + 4 * HOUR, "3 d 4 h"],
  [30 * DAY, "30 d"],
];
for (const [ms, want] of distances) {
  Deno.test(`distance() shows ${ms} ms as ${want}`, () => assertEquals(distance(ms), want));
}

Deno.test("ago() does not change every second", () => {
  assertEquals([ago(0), ago(59_999), ago(60_000)], ["just now", "just now", "1 min ago"]);
});

Deno.test("duration() and plural() write one and many", () => {
  assertEquals([duration(40), duration(2_140), duration(200_000)], ["40 ms", "2.1 s", "3 min 20 s"]);
  assertEquals([plural(1, "account"), plural(1_200, "account"), plural(0, "reply", "replies")], [
    "1 account",
    "1,200 accounts",
    "0 replies",
  ]);
});

Deno.test("clockTime() names the day only where it is another one", () => {
  const now = new Date(2027, 0, 15, 14, 0).getTime();
  assertEquals(clockTime(now + 31 * MINUTE, now), "14:31");
  assertEquals(clockTime(now + DAY, now), "Sat 14:00");
  assertEquals(clockTime(now + 40 * DAY, now), "24 Feb 14:00");
});

Deno.test("accountLabel() and shorten() name accounts", () => {
  assertEquals(accountLabel({ id: "zai:main", email: null }), "zai:main");
  assertEquals(accountLabel({ id: "codex:1", email: "a***@example.test" }), "a***@example.test");
  assertEquals(shorten("zai:main"), "zai:main");
  assertEquals(shorten(`codex:${"0".repeat(36)}:user-abcdef`), "codex:000000000000000…:user-abcdef");
});
