/**
 * Whether a browser may speak to the status page: under which name it came, and from which page.
 *
 * A foreign name that resolves to this machine (DNS rebinding) is refused, and so is every request another web page
 * started. Neither can be faked by a page: browsers set `Host`, `Origin` and `Sec-Fetch-Site` themselves.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import { isLoopbackHost, parseIpv4, parseIpv6 } from "../core/ip_address.ts";

/**
 * True for loopback names, the configured name, and where others may reach the listener any address: a rebinding
 * attack needs a name.
 *
 * @param host  the `Host` header.
 * @param configured  `host` of the configuration.
 */
export function isOwnHost(host: string | null, configured: string): boolean {
  const name = host === null ? null : hostnameOf(`http://${host}`);
  if (name === null) return false;
  if (isLoopbackHost(name) || name === plain(configured)) return true;
  return !isLoopbackHost(configured) && (parseIpv4(name) !== null || parseIpv6(name) !== null);
}

/**
 * True when the request was started by the page itself, or by the person (typed, bookmark), never by another site.
 *
 * @param changes  whether the request changes anything: then the browser must have said where it comes from.
 * Source: Fetch Metadata (W3C), section 2.4; a reverse proxy may have changed `Host`, so the browser's own verdict
 * counts before the comparison of names.
 */
export function isOwnPage(headers: HeaderLookup, changes: boolean): boolean {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  if (site !== null) {
    if (site === "same-origin") return true;
    // Following a link from elsewhere to the page is fine, as long as it is the whole page that opens.
    const opens = headers.get("sec-fetch-mode") === "navigate" &&
      headers.get("sec-fetch-dest") === "document";
    return !changes && (site === "none" || opens);
  }
  if (origin === null) return !changes;
  const host = headers.get("host");
  return host !== null && originHost(origin) === originHost(`${origin.split(":")[0]}://${host}`);
}

/** Name or address without brackets and port, lower case; `null` when it is none. */
function hostnameOf(url: string): string | null {
  const parsed = URL.parse(url);
  return parsed === null || parsed.username !== "" || parsed.pathname !== "/" ? null : plain(parsed.hostname);
}

function originHost(origin: string): string | null {
  return URL.parse(origin)?.host ?? null;
}

function plain(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}
