import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { isForbiddenHost, isLoopbackHost, parseIpv4, parseIpv6 } from "../../lib/core/ip_address.ts";

const hosts = [
  { host: "localhost", loopback: true, forbidden: false },
  { host: "LOCALHOST.", loopback: true, forbidden: false },
  { host: "app.localhost", loopback: true, forbidden: false },
  { host: "notlocalhost", loopback: false, forbidden: false },
  { host: "localhost.test", loopback: false, forbidden: false },
  { host: "126.255.255.255", loopback: false, forbidden: false },
  { host: "127.0.0.0", loopback: true, forbidden: false },
  { host: "127.255.255.255", loopback: true, forbidden: false },
  { host: "128.0.0.0", loopback: false, forbidden: false },
  { host: "127.0.0.256", loopback: false, forbidden: false },
  { host: "::1", loopback: true, forbidden: false },
  { host: "[::1]", loopback: true, forbidden: false },
  { host: "0:0:0:0:0:0:0:1", loopback: true, forbidden: false },
  { host: "::2", loopback: false, forbidden: false },
  { host: "::ffff:127.0.0.1", loopback: true, forbidden: false },
  { host: "[::ffff:7f00:1]", loopback: true, forbidden: false },
  { host: "64:ff9b::127.0.0.1", loopback: true, forbidden: false },
  { host: "169.253.255.255", loopback: false, forbidden: false },
  { host: "169.254.0.0", loopback: false, forbidden: true },
  { host: "169.254.169.254", loopback: false, forbidden: true },
  { host: "169.254.255.255", loopback: false, forbidden: true },
  { host: "169.255.0.0", loopback: false, forbidden: false },
  { host: "::ffff:169.254.169.254", loopback: false, forbidden: true },
  { host: "[::ffff:a9fe:a9fe]", loopback: false, forbidden: true },
  { host: "::169.254.169.254", loopback: false, forbidden: true },
  { host: "64:ff9b::a9fe:a9fe", loopback: false, forbidden: true },
  { host: "2002:a9fe:a9fe::", loopback: false, forbidden: true },
  { host: "2002:a00:1::", loopback: false, forbidden: false },
  { host: "0.0.0.0", loopback: false, forbidden: true },
  { host: "0.1.2.3", loopback: false, forbidden: true },
  { host: "223.255.255.255", loopback: false, forbidden: false },
  { host: "224.0.0.1", loopback: false, forbidden: true },
  { host: "255.255.255.255", loopback: false, forbidden: true },
  { host: "100.100.100.200", loopback: false, forbidden: true },
  { host: "100.100.100.201", loopback: false, forbidden: false },
  { host: "192.0.0.192", loopback: false, forbidden: true },
  { host: "168.63.129.16", loopback: false, forbidden: true },
  { host: "192.168.1.1", loopback: false, forbidden: false },
  { host: "10.0.0.1", loopback: false, forbidden: false },
  { host: "::", loopback: false, forbidden: true },
  { host: "fe7f::1", loopback: false, forbidden: false },
  { host: "fe80::1", loopback: false, forbidden: true },
  { host: "fe80::1%eth0", loopback: false, forbidden: true },
  { host: "febf::1", loopback: false, forbidden: true },
  { host: "fec0::1", loopback: false, forbidden: false },
  { host: "ff02::1", loopback: false, forbidden: true },
  { host: "fd00:ec2::254", loopback: false, forbidden: true },
  { host: "fd00:ec2::255", loopback: false, forbidden: false },
  { host: "2606:4700::1111", loopback: false, forbidden: false },
  { host: "metadata.google.internal", loopback: false, forbidden: true },
  { host: "Metadata.Google.Internal.", loopback: false, forbidden: true },
  { host: "metadata", loopback: false, forbidden: true },
  { host: "instance-data.ec2.internal", loopback: false, forbidden: true },
  { host: "metadata.test", loopback: false, forbidden: false },
  { host: "api.z.ai", loopback: false, forbidden: false },
  { host: "", loopback: false, forbidden: false },
] as const;
for (const c of hosts) {
  Deno.test(`isLoopbackHost() is ${c.loopback} and isForbiddenHost() ${c.forbidden} for "${c.host}"`, () => {
    assertEquals(isLoopbackHost(c.host), c.loopback);
    assertEquals(isForbiddenHost(c.host), c.forbidden);
  });
}

const texts = [
  { text: "1:2:3:4:5:6:7:8", want: [1, 2, 3, 4, 5, 6, 7, 8] },
  { text: "1:2:3:4:5:6:7::", want: [1, 2, 3, 4, 5, 6, 7, 0] },
  { text: "::ABCD", want: [0, 0, 0, 0, 0, 0, 0, 0xabcd] },
  { text: "1:2:3:4:5:6:1.2.3.4", want: [1, 2, 3, 4, 5, 6, 0x102, 0x304] },
  { text: "1:2:3:4:5:6:7", want: null },
  { text: "1:2:3:4:5:6:7:8:9", want: null },
  { text: "1:2:3:4:5:6:7:8::", want: null },
  { text: "1::2::3", want: null },
  { text: ":::", want: null },
  { text: "1:2:3:4:5:6:7:", want: null },
  { text: "12345::", want: null },
  { text: "g::", want: null },
  { text: "::1.2.3.256", want: null },
  { text: "1.2.3.4", want: null },
] as const;
for (const c of texts) {
  Deno.test(`parseIpv6() reads ${c.text} as ${c.want === null ? "no address" : c.want.join(" ")}`, () => {
    assertEquals(parseIpv6(c.text), c.want === null ? null : [...c.want]);
  });
}

Deno.test("parseIpv6() reads every address as the URL parser does", () => {
  const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(fc.property(groups, (groups) => {
    const written = groups.map((group) => group.toString(16)).join(":");
    const compressed = new URL(`http://[${written}]/`).hostname.slice(1, -1);
    assertEquals(parseIpv6(written), groups);
    assertEquals(parseIpv6(compressed), groups);
  }));
});

Deno.test("parseIpv4() reads dotted decimals and nothing else", () => {
  assertEquals(parseIpv4("0.10.255.1"), [0, 10, 255, 1]);
  for (const text of ["1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "a.b.c.d", " 1.2.3.4", ""]) {
    assertEquals(parseIpv4(text), null);
  }
});
