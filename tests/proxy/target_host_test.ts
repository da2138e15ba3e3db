import { assertEquals } from "@std/assert";
import { namesOtherHost } from "../../lib/proxy/handler.ts";

const cases: { url: string; host: string; want: boolean; why: string }[] = [
  { url: "http://a/x", host: "a", want: false, why: "the same name" },
  { url: "http://a:8317/x", host: "a:8317", want: false, why: "the same name and port" },
  { url: "http://A:8317/x", host: "a:8317", want: false, why: "a name in another case" },
  { url: "http://a:80/x", host: "a", want: false, why: "the port of http said once" },
  { url: "http://a?x", host: "a", want: false, why: "a target without a path" },
  { url: "https://a/x", host: "a", want: false, why: "a target behind something that speaks TLS" },
  { url: "http://[::1]:8317/x", host: "[::1]:8317", want: false, why: "an IPv6 address" },
  { url: "http://anything/x", host: "", want: false, why: "no Host header" },
  { url: "http://ab/x", host: "a", want: true, why: "a longer name" },
  { url: "http://a.b/x", host: "a", want: true, why: "a name below it" },
  { url: "http://a:81/x", host: "a", want: true, why: "another port" },
  { url: "http://a@b/x", host: "a", want: true, why: "the name as a user" },
  { url: "http://a@b/x", host: "b", want: true, why: "a user before the name" },
  { url: "ftp://a/x", host: "a", want: true, why: "another protocol" },
  { url: "file:///x", host: "a", want: true, why: "no host at all" },
];
for (const { url, host, want, why } of cases) {
  Deno.test(`namesOtherHost() is ${want}: ${why}`, () => assertEquals(namesOtherHost(url, host), want));
}
