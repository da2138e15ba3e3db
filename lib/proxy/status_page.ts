/**
 * The two pages as bytes, with the policy that lets nothing but their own style and script run.
 *
 * The parts are plain files; they are put together once. Scripts are modules, which tests can load, and become one
 * script in the page, because a page that loads nothing else needs no further request and no further permission.
 */
import type { Digest } from "../ports.ts";
import login from "./status_login.html" with { type: "text" };
import page from "./status_page.html" with { type: "text" };
import style from "./status_page/page.css" with { type: "text" };
import accounts from "./status_page/accounts.js" with { type: "text" };
import charts from "./status_page/charts.js" with { type: "text" };
import dom from "./status_page/dom.js" with { type: "text" };
import drawer from "./status_page/drawer.js" with { type: "text" };
import format from "./status_page/format.js" with { type: "text" };
import main from "./status_page/main.js" with { type: "text" };
import providers from "./status_page/providers.js" with { type: "text" };
import requests from "./status_page/requests.js" with { type: "text" };

/** Each after those it needs. */
const SCRIPTS: readonly (readonly [string, string])[] = [
  ["format", format],
  ["dom", dom],
  ["charts", charts],
  ["accounts", accounts],
  ["providers", providers],
  ["drawer", drawer],
  ["requests", requests],
  ["main", main],
];

export interface StatusPages {
  readonly page: string;
  /** @param problem  one of our sentences, or null. */
  login(problem: string | null): string;
  readonly pagePolicy: string;
  readonly loginPolicy: string;
}

export function composePages(digest: Digest, version: string): StatusPages {
  const script = joinScripts(SCRIPTS);
  const styleHash = hashSource(digest, style);
  const policy = [
    "default-src 'none'",
    `style-src ${styleHash}`,
    "img-src data:",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    page: fillPage(page, style, script, { version }),
    login: (problem) =>
      fillPage(login, style, "", {
        problem: problem === null ? "" : `<p id="problem" class="problem" role="alert">${problem}</p>`,
        described: problem === null ? "" : "problem ",
      }),
    pagePolicy: [
      ...policy,
      `script-src ${hashSource(digest, script)}`,
      "connect-src 'self'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join("; "),
    loginPolicy: policy.join("; "),
  };
}

/** One script of all modules: each keeps its own scope and hands out what it exports. */
function joinScripts(modules: readonly (readonly [string, string])[]): string {
  return `"use strict";\n${modules.map(([name, text]) => wrapModule(name, text)).join("\n")}\n`;
}

function wrapModule(name: string, text: string): string {
  const exported = [...text.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map((match) =>
    match[1]!
  );
  const body = text
    .replaceAll(/^import (\{[^}]*\}) from "\.\/(\w+)\.js";$/gm, "const $1 = $$$2;")
    .replaceAll(/^export /gm, "");
  return `const $${name} = (() => {\n${body}\nreturn { ${exported.join(", ")} };\n})();`;
}

/** Puts values into a page: into its empty style and script, and where it names them. */
function fillPage(template: string, style: string, script: string, values: Record<string, string>): string {
  return template
    .replaceAll(/\{\{ (\w+) \}\}/g, (_, name: string) => values[name] ?? "")
    .replace("<style></style>", () => `<style>${style}</style>`)
    .replace("<script></script>", () => `<script>${script}</script>`);
}

/** CSP level 3, section 2.3.1: the digest of the exact text between the tags. */
function hashSource(digest: Digest, text: string): string {
  return `'sha256-${Uint8Array.fromHex(digest.sha256(text)).toBase64()}'`;
}
