import { assertEquals } from "@std/assert";
import { isOwnHost, isOwnPage } from "../../lib/proxy/status_guard.ts";

const hosts: readonly { host: string | null; configured: string; want: boolean; why: string }[] = [
  { host: "127.0.0.1:8317", configured: "127.0.0.1", want: true, why: "the listener's own address" },
  { host: "localhost:8317", configured: "127.0.0.1", want: true, why: "a loopback name" },
  { host: "LOCALHOST.", configured: "127.0.0.1", want: true, why: "the same, as DNS writes it" },
  { host: "[::1]:8317", configured: "127.0.0.1", want: true, why: "loopback of the other family" },
  { host: "localhost:9000", configured: "127.0.0.1", want: true, why: "a forwarded port" },
  { host: "box.lan:8317", configured: "box.lan", want: true, why: "the configured name" },
  { host: "192.168.1.5:8317", configured: "0.0.0.0", want: true, why: "an address of an open listener" },
  { host: "[fd00::5]:8317", configured: "::", want: true, why: "the same in IPv6" },
  { host: "evil.example:8317", configured: "127.0.0.1", want: false, why: "a rebound name" },
  {
    host: "evil.example:8317",
    configured: "0.0.0.0",
    want: false,
    why: "a rebound name on an open listener",
  },
  {
    host: "localhost.evil.example",
    configured: "127.0.0.1",
    want: false,
    why: "a name that only begins right",
  },
  { host: "127.0.0.1.evil.example", configured: "127.0.0.1", want: false, why: "an address that goes on" },
  { host: "192.168.1.5:8317", configured: "127.0.0.1", want: false, why: "an address nobody listens on" },
  { host: "0.0.0.0:8317", configured: "127.0.0.1", want: false, why: "the unspecified address" },
  {
    host: "evil.example@127.0.0.1",
    configured: "127.0.0.1",
    want: false,
    why: "a user in front of the host",
  },
  { host: "127.0.0.1/evil", configured: "127.0.0.1", want: false, why: "a path behind the host" },
  { host: "", configured: "127.0.0.1", want: false, why: "an empty one" },
  { host: null, configured: "127.0.0.1", want: false, why: "none" },
];
for (const c of hosts) {
  Deno.test(`isOwnHost() ${c.want ? "accepts" : "refuses"} ${c.why}`, () => {
    assertEquals(isOwnHost(c.host, c.configured), c.want);
  });
}

const HOST = "127.0.0.1:8317";
const pages: readonly {
  headers: Record<string, string>;
  reads: boolean;
  changes: boolean;
  why: string;
}[] = [
  { why: "the page's own script", headers: { "sec-fetch-site": "same-origin" }, reads: true, changes: true },
  { why: "a typed address", headers: { "sec-fetch-site": "none" }, reads: true, changes: false },
  {
    why: "a link followed from elsewhere",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    reads: true,
    changes: false,
  },
  {
    why: "a frame in a foreign page",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
    reads: false,
    changes: false,
  },
  {
    why: "a script of a foreign page",
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", origin: "http://evil.example" },
    reads: false,
    changes: false,
  },
  {
    why: "another port of this machine",
    headers: { "sec-fetch-site": "same-site", origin: "http://127.0.0.1:3000" },
    reads: false,
    changes: false,
  },
  { why: "a client that says nothing", headers: {}, reads: true, changes: false },
  { why: "the right origin alone", headers: { origin: `http://${HOST}` }, reads: true, changes: true },
  { why: "another origin alone", headers: { origin: "http://evil.example" }, reads: false, changes: false },
  { why: "another port alone", headers: { origin: "http://127.0.0.1:3000" }, reads: false, changes: false },
  { why: "a hidden origin", headers: { origin: "null" }, reads: false, changes: false },
];
for (const c of pages) {
  Deno.test(`isOwnPage() of ${c.why}: reading ${c.reads}, changing ${c.changes}`, () => {
    const headers = new Headers({ host: HOST, ...c.headers });
    assertEquals([isOwnPage(headers, false), isOwnPage(headers, true)], [c.reads, c.changes]);
  });
}
