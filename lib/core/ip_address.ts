/**
 * Which hosts are this machine, and which must never be an upstream.
 *
 * Knows text and numbers only. A name that resolves to a forbidden address is caught by whoever resolves it:
 * the same functions answer for the resolved address.
 */

/** Cloud metadata services that live at ordinary names or outside the link-local range. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.tencentyun.com",
  "instance-data",
  "instance-data.ec2.internal",
]);
const METADATA_IPV4: ReadonlySet<string> = new Set(["100.100.100.200", "192.0.0.192", "168.63.129.16"]);
/** fd00:ec2::254, the metadata service of EC2 over IPv6. */
const METADATA_IPV6 = [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254];

/**
 * True when the host is this machine itself: `localhost` and names below it, 127.0.0.0/8, ::1, also mapped.
 *
 * @param host  a name or address, IPv6 with or without brackets; numbers in one of the odd IPv4 spellings
 *              (`2130706433`, `127.1`) must have been through a URL parser first.
 */
export function isLoopbackHost(host: string): boolean {
  const name = plainHost(host);
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  const ipv4 = parseIpv4(name) ?? embeddedIpv4(parseIpv6(name));
  if (ipv4 !== null) return ipv4[0] === 127;
  const ipv6 = parseIpv6(name);
  return ipv6 !== null && ipv6.every((group, at) => group === (at === 7 ? 1 : 0));
}

/**
 * True for hosts no request of ours may go to: link-local, metadata services, unspecified, multicast, reserved.
 *
 * Private ranges are allowed: people run model servers there. Source: field case B141; RFC 6890.
 */
export function isForbiddenHost(host: string): boolean {
  const name = plainHost(host);
  if (METADATA_NAMES.has(name)) return true;
  const ipv6 = parseIpv6(name);
  const ipv4 = parseIpv4(name) ?? embeddedIpv4(ipv6);
  if (ipv4 !== null) return isForbiddenIpv4(ipv4);
  if (ipv6 === null) return false;
  const first = ipv6[0]!;
  if ((first & 0xffc0) === 0xfe80 || (first & 0xff00) === 0xff00) return true;
  if (ipv6.every((group) => group === 0)) return true;
  return ipv6.every((group, at) => group === METADATA_IPV6[at]);
}

function isForbiddenIpv4(parts: readonly number[]): boolean {
  const [a, b] = [parts[0]!, parts[1]!];
  if (a === 0 || a >= 224) return true;
  if (a === 169 && b === 254) return true;
  return METADATA_IPV4.has(parts.join("."));
}

/** Lower case, without brackets and without the dot that ends a fully qualified name. */
function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** @returns four numbers, or `null` when the text is not dotted decimal. */
export function parseIpv4(text: string): number[] | null {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return null;
  const parts = text.split(".").map(Number);
  return parts.every((part) => part <= 255) ? parts : null;
}

/** @returns eight groups, or `null` when the text is not IPv6. A zone (`%eth0`) is ignored. */
export function parseIpv6(text: string): number[] | null {
  let address = text.replace(/%.*$/, "");
  if (!address.includes(":")) return null;
  const lastColon = address.lastIndexOf(":");
  const tail = parseIpv4(address.slice(lastColon + 1));
  if (tail !== null) {
    const groups = [tail[0]! * 256 + tail[1]!, tail[2]! * 256 + tail[3]!];
    address = address.slice(0, lastColon + 1) + groups.map((group) => group.toString(16)).join(":");
  }
  const halves = address.split("::");
  if (halves.length > 2) return null;
  const [head, rest] = halves.map((half) => half === "" ? [] : half.split(":"));
  const written = [...head!, ...(rest ?? [])];
  if (!written.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return null;
  // "::" stands for at least one group; without it all eight must be there.
  const missing = 8 - written.length;
  if (rest === undefined ? missing !== 0 : missing < 1) return null;
  const filled = rest === undefined ? head! : [...head!, ...Array<string>(missing).fill("0"), ...rest];
  return filled.map((group) => parseInt(group, 16));
}

/**
 * The IPv4 address that a packet to this IPv6 address ends at: mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96),
 * 6to4 (2002::/16) and the old compatible form (::a.b.c.d). ::1 and :: are IPv6's own.
 */
function embeddedIpv4(groups: readonly number[] | null): number[] | null {
  if (groups === null) return null;
  const startsWith = (...prefix: number[]) => prefix.every((group, at) => groups[at] === group);
  const split = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255];
  if (startsWith(0, 0, 0, 0, 0, 0xffff) || startsWith(0x64, 0xff9b, 0, 0, 0, 0)) {
    return split(groups[6]!, groups[7]!);
  }
  if (startsWith(0x2002)) return split(groups[1]!, groups[2]!);
  if (startsWith(0, 0, 0, 0, 0, 0) && groups[6] !== 0) return split(groups[6]!, groups[7]!);
  return null;
}
