import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  isInside,
  readBaseUrl,
  type Reading,
  readListenHost,
  readPath,
  readProxyUrl,
  readSecret,
  resolveDatabasePath,
} from "../../lib/config_values.ts";
import { environmentWith, PLAIN_ENVIRONMENT } from "./support.ts";

/** The value, or the problem behind `!`. */
function said(reading: Reading<string>): string {
  return reading.ok ? reading.value : `! ${reading.problem}`;
}

const ON_WINDOWS = environmentWith({}, "C:\\Users\\ann");
const HOMELESS = environmentWith({}, null);
const RELATIVE = "! must be an absolute path or start with ~/";

const paths = [
  { name: "an absolute path", text: "/srv/auth", want: "/srv/auth" },
  { name: "the root", text: "/", want: "/" },
  { name: "dots and doubled slashes", text: "//srv/./a/../auth//", want: "/srv/auth" },
  { name: "more steps up than there are", text: "/../../etc", want: "/etc" },
  { name: "the home folder", text: "~", want: "/home/ann" },
  { name: "a path below home", text: "~/.codex/", want: "/home/ann/.codex" },
  { name: "a way out of home", text: "~/../bob", want: "/home/bob" },
  { name: "spaces and letters of any script", text: "/srv/my auth/账户", want: "/srv/my auth/账户" },
  { name: "another user's home", text: "~bob/auth", want: RELATIVE },
  { name: "a relative path", text: "auth", want: RELATIVE },
  { name: "a relative path with a dot", text: "./auth", want: RELATIVE },
  { name: "nothing", text: "", want: RELATIVE },
  { name: "a NUL character", text: "/srv/\0", want: "! must not hold a NUL character" },
  { name: "a Windows path elsewhere", text: "C:\\auth", want: RELATIVE },
  { name: "a tilde in the middle", text: "/srv/~/a", want: "/srv/~/a" },
] as const;
for (const c of paths) {
  Deno.test(`readPath() reads ${c.name}`, () =>
    assertEquals(said(readPath(c.text, PLAIN_ENVIRONMENT)), c.want));
}

const windowsPaths = [
  { text: "~/.codex", want: "C:\\Users\\ann\\.codex" },
  { text: "~\\.codex\\", want: "C:\\Users\\ann\\.codex" },
  { text: "D:/auth/./x/..", want: "D:\\auth" },
  { text: "D:\\", want: "D:\\" },
  { text: "\\\\server\\share\\auth", want: "\\\\server\\share\\auth" },
  { text: "\\auth", want: RELATIVE },
  { text: "D:auth", want: RELATIVE },
] as const;
for (const c of windowsPaths) {
  Deno.test(`readPath() reads ${c.text} on Windows`, () =>
    assertEquals(said(readPath(c.text, ON_WINDOWS)), c.want));
}

Deno.test("readPath() refuses ~ where no home folder is known", () => {
  assertEquals(said(readPath("~/.codex", HOMELESS)), "! starts with ~, but no home folder is known");
  assertEquals(said(readPath("/srv", HOMELESS)), "/srv");
});

const insides = [
  { path: "/a/b", folder: "/a", want: true },
  { path: "/a", folder: "/a", want: true },
  { path: "/ab", folder: "/a", want: false },
  { path: "/", folder: "/a", want: false },
  { path: "/a", folder: "/", want: true },
  { path: "C:\\a\\b", folder: "C:\\a", want: true },
  { path: "C:\\ab", folder: "C:\\a", want: false },
] as const;
for (const c of insides) {
  Deno.test(`isInside() is ${c.want} for ${c.path} and ${c.folder}`, () => {
    assertEquals(isInside(c.path, c.folder), c.want);
  });
}

const databases = [
  { name: "~/.local/state", variables: {}, want: "/home/ann/.local/state/holdfast/holdfast.db" },
  {
    name: "XDG_STATE_HOME",
    variables: { XDG_STATE_HOME: "/var/state/" },
    want: "/var/state/holdfast/holdfast.db",
  },
  {
    name: "the default for an empty XDG_STATE_HOME",
    variables: { XDG_STATE_HOME: "" },
    want: "/home/ann/.local/state/holdfast/holdfast.db",
  },
  {
    name: "the default for a relative XDG_STATE_HOME",
    variables: { XDG_STATE_HOME: "state" },
    want: "/home/ann/.local/state/holdfast/holdfast.db",
  },
  {
    name: "the default for a tilde in XDG_STATE_HOME, which no shell has replaced",
    variables: { XDG_STATE_HOME: "~/state" },
    want: "/home/ann/.local/state/holdfast/holdfast.db",
  },
];
for (const c of databases) {
  Deno.test(`resolveDatabasePath() uses ${c.name}`, () => {
    assertEquals(said(resolveDatabasePath("", environmentWith(c.variables))), c.want);
  });
}

Deno.test("resolveDatabasePath() takes the path that is said, and fails without any place", () => {
  const environment = environmentWith({ XDG_STATE_HOME: "/var/state" });
  assertEquals(said(resolveDatabasePath("~/h.db", environment)), "/home/ann/h.db");
  assertEquals(
    said(resolveDatabasePath("", HOMELESS)),
    "! has no default place, since no home folder is known",
  );
});

const SCHEME = "! must be an https URL (http on loopback)";
const FORBIDDEN = "! must not be a link-local, metadata or unspecified address";
const baseUrls = [
  { text: "https://api.anthropic.com", want: "https://api.anthropic.com" },
  { text: "https://API.Test:443/v1///", want: "https://api.test/v1" },
  { text: "https://api.test/a/../b/%2e%2e/c", want: "https://api.test/c" },
  { text: "https://192.168.1.5:8443/v1", want: "https://192.168.1.5:8443/v1" },
  { text: "http://localhost:11434/v1", want: "http://localhost:11434/v1" },
  { text: "http://127.0.0.1", want: "http://127.0.0.1" },
  { text: "http://2130706433/", want: "http://127.0.0.1" },
  { text: "http://[::1]:8000", want: "http://[::1]:8000" },
  { text: "http://192.168.1.5/v1", want: SCHEME },
  { text: "http://api.test", want: SCHEME },
  { text: "http://localhost.test", want: SCHEME },
  { text: "http://127.0.0.1@api.test/", want: SCHEME },
  { text: "file:///etc/passwd", want: SCHEME },
  { text: "ftp://127.0.0.1/", want: SCHEME },
  { text: "javascript:alert(1)", want: SCHEME },
  { text: "api.test", want: SCHEME },
  { text: "//api.test", want: SCHEME },
  { text: "https://", want: SCHEME },
  { text: "https://api.test/a b", want: SCHEME },
  { text: " https://api.test", want: SCHEME },
  { text: "https://api.\ntest", want: SCHEME },
  { text: "", want: SCHEME },
  { text: "https://169.254.169.254/latest", want: FORBIDDEN },
  { text: "https://2852039166/", want: FORBIDDEN },
  { text: "https://0xa9fea9fe/", want: FORBIDDEN },
  { text: "https://0251.0376.0251.0376/", want: FORBIDDEN },
  { text: "https://169.254.43518/", want: FORBIDDEN },
  { text: "https://[::ffff:169.254.169.254]/", want: FORBIDDEN },
  { text: "https://[fe80::1]/", want: FORBIDDEN },
  { text: "https://metadata.google.internal/", want: FORBIDDEN },
  { text: "https://METADATA.google.internal./", want: FORBIDDEN },
  { text: "https://１６９.254.169.254/", want: FORBIDDEN },
  { text: "https://0.0.0.0:8000/", want: FORBIDDEN },
  { text: "https://ann@api.test", want: "! must not hold a user or password" },
  { text: "https://ann:SENT-pass@api.test", want: "! must not hold a user or password" },
  { text: "https://api.test/?key=SENT-q", want: "! must not have a query or fragment" },
  { text: "https://api.test/?", want: "! must not have a query or fragment" },
  { text: "https://api.test/#part", want: "! must not have a query or fragment" },
] as const;
for (const c of baseUrls) {
  Deno.test(`readBaseUrl() reads ${JSON.stringify(c.text)}`, () =>
    assertEquals(said(readBaseUrl(c.text)), c.want));
}

Deno.test("readBaseUrl() gives what it would read again as the same", () => {
  fc.assert(fc.property(fc.webUrl({ validSchemes: ["https", "http"] }), (text) => {
    const first = readBaseUrl(text);
    if (first.ok) assertEquals(readBaseUrl(first.value), first);
  }));
});

const PROXY = environmentWith({ PROXY: "http://ann:SENT-pass@proxy.test:3128", BAD: "ftp://proxy.test" });
const PROXY_RULE = "! must be an http, https or socks5 URL, direct, or empty";
const proxies = [
  { text: "", want: "" },
  { text: "direct", want: "direct" },
  { text: "http://proxy.test:3128/", want: "http://proxy.test:3128" },
  { text: "https://u:SENT-p@proxy.test", want: "https://u:SENT-p@proxy.test" },
  { text: "socks5://127.0.0.1:1080", want: "socks5://127.0.0.1:1080" },
  { text: "http://10.0.0.1:3128", want: "http://10.0.0.1:3128" },
  { text: "env:PROXY", want: "http://ann:SENT-pass@proxy.test:3128" },
  { text: "env:BAD", want: PROXY_RULE },
  { text: "env:NONE", want: "! names the environment variable NONE, which is not set" },
  { text: "socks4://proxy.test", want: PROXY_RULE },
  { text: "Direct", want: PROXY_RULE },
  { text: "proxy.test:3128", want: PROXY_RULE },
  { text: "http://", want: PROXY_RULE },
  { text: "http://proxy.test/path", want: "! must have nothing behind its port" },
  { text: "http://proxy.test?x=1", want: "! must have nothing behind its port" },
  { text: "http://169.254.169.254:80", want: FORBIDDEN },
  { text: "socks5://2852039166:1080", want: FORBIDDEN },
] as const;
for (const c of proxies) {
  Deno.test(`readProxyUrl() reads "${c.text}"`, () =>
    assertEquals(said(readProxyUrl(c.text, PROXY)), c.want));
}

const KEYS = environmentWith({ KEY: "SENT-from-environment", EMPTY: "", BLANK: " \t", LINES: "SENT-a\n" });
const EMPTY = "! must not be empty or blank";
const UNPRINTABLE = "! must be visible ASCII characters without spaces";
const secrets = [
  { text: "SENT-key", want: "SENT-key" },
  { text: "none", want: "none" },
  { text: "env:KEY", want: "SENT-from-environment" },
  { text: "", want: EMPTY },
  { text: "   ", want: EMPTY },
  { text: "\t\n", want: EMPTY },
  { text: "SENT key", want: UNPRINTABLE },
  { text: " SENT-key", want: UNPRINTABLE },
  { text: "SENT-kéy", want: UNPRINTABLE },
  { text: "env:EMPTY", want: `${EMPTY} (from EMPTY)` },
  { text: "env:BLANK", want: `${EMPTY} (from BLANK)` },
  { text: "env:LINES", want: `${UNPRINTABLE} (from LINES)` },
  { text: "env:MISSING", want: "! names the environment variable MISSING, which is not set" },
  { text: "env:", want: "! must name an environment variable after env:" },
  { text: "env: KEY", want: "! must name an environment variable after env:" },
  { text: "env:sk-SENT-key", want: "! must name an environment variable after env:" },
  { text: "env:1KEY", want: "! must name an environment variable after env:" },
] as const;
for (const c of secrets) {
  Deno.test(`readSecret() reads ${JSON.stringify(c.text)}`, () =>
    assertEquals(said(readSecret(c.text, KEYS)), c.want));
}

const HOST_RULE = "! must be a name or address without port";
const hosts = [
  { text: "127.0.0.1", want: "127.0.0.1" },
  { text: "127.1", want: "127.0.0.1" },
  { text: "0", want: "0.0.0.0" },
  { text: "::1", want: "::1" },
  { text: "[::1]", want: "::1" },
  { text: "0:0:0:0:0:0:0:1", want: "::1" },
  { text: "::", want: "::" },
  { text: "My-Server.test", want: "my-server.test" },
  { text: "", want: HOST_RULE },
  { text: "127.0.0.1:8317", want: HOST_RULE },
  { text: "[::1]:8317", want: HOST_RULE },
  { text: "http://localhost", want: HOST_RULE },
  { text: "a b", want: HOST_RULE },
  { text: "a/b", want: HOST_RULE },
  { text: "ann@host", want: HOST_RULE },
  { text: "256.0.0.1", want: HOST_RULE },
  { text: "fe80::1%eth0", want: HOST_RULE },
  { text: "*", want: HOST_RULE },
] as const;
for (const c of hosts) {
  Deno.test(`readListenHost() reads "${c.text}"`, () => assertEquals(said(readListenHost(c.text)), c.want));
}
