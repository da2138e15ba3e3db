import { assertEquals } from "@std/assert";
import { namesOtherHost, splitTarget } from "../../lib/proxy/handler.ts";

const cases: { target: string; host: string; want: boolean; why: string }[] = [
  { target: "/x", host: "a", want: false, why: "a path alone" },
  { target: "//b/x", host: "a", want: false, why: "a path that begins like an authority" },
  { target: "http://a/x", host: "a", want: false, why: "the same name" },
  { target: "http://a:8317/x", host: "a:8317", want: false, why: "the same name and port" },
  { target: "http://A:8317/x", host: "a:8317", want: false, why: "a name in another case" },
  { target: "http://a:80/x", host: "a", want: false, why: "the port of http said once" },
  { target: "http://a?x", host: "a", want: false, why: "a target without a path" },
  { target: "https://a/x", host: "a", want: false, why: "a target behind something that speaks TLS" },
  { target: "http://[::1]:8317/x", host: "[::1]:8317", want: false, why: "an IPv6 address" },
  { target: "http://anything/x", host: "", want: false, why: "no Host header" },
  { target: "http://ab/x", host: "a", want: true, why: "a longer name" },
  { target: "http://a.b/x", host: "a", want: true, why: "a name below it" },
  { target: "http://a:81/x", host: "a", want: true, why: "another port" },
  { target: "http://a@b/x", host: "a", want: true, why: "the name as a user" },
  { target: "http://a@b/x", host: "b", want: true, why: "a user before the name" },
  { target: "ftp://a/x", host: "a", want: true, why: "another protocol" },
  { target: "file:///x", host: "a", want: true, why: "no host at all" },
];
for (const { target, host, want, why } of cases) {
  Deno.test(`namesOtherHost() is ${want}: ${why}`, () => assertEquals(namesOtherHost(target, host), want));
}

const targets: { target: string; want: ReturnType<typeof splitTarget> }[] = [
  { target: "/v1/responses?a=b?c", want: { path: "/v1/responses", search: "?a=b?c" } },
  { target: "//v1/%2e%2e/x", want: { path: "//v1/%2e%2e/x", search: "" } },
  { target: "http://a", want: { path: "/", search: "" } },
  { target: "http://a?x", want: { path: "/", search: "?x" } },
  { target: "HTTP://a/x?y", want: { path: "/x", search: "?y" } },
  { target: "http://a#x", want: null },
  { target: "*", want: null },
  { target: "a:443", want: null },
  { target: "ftp://a/x", want: null },
  { target: "", want: null },
];
for (const { target, want } of targets) {
  Deno.test(`splitTarget() ${want === null ? "finds no path in" : "reads"} ${target || "nothing"}`, () => {
    assertEquals(splitTarget(target), want);
  });
}
