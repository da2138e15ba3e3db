/**
 * Which way out a request takes: `proxy-url`, the proxy variables of the environment, NO_PROXY.
 *
 * One decision for HTTP, WebSocket, refresh and usage alike (B152). There is no second way: a proxy that fails is
 * a failure, never a reason to go direct.
 */
/** What a connection is made to; the name without brackets. */
export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
}

export type ProxyScheme = "http" | "https" | "socks5";

export interface EgressProxy extends Endpoint {
  readonly scheme: ProxyScheme;
  /** Decoded; null when the URL names none. Never logged. */
  readonly credentials: { readonly username: string; readonly password: string } | null;
}

/** The variables that matter, as data; `readProxyEnvironment` picks them from a lookup. */
export interface ProxyEnvironment {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly allProxy: string;
  readonly noProxy: string;
}

export const NO_PROXY_ENVIRONMENT: ProxyEnvironment = {
  httpProxy: "",
  httpsProxy: "",
  allProxy: "",
  noProxy: "",
};

/** Every name under which a runtime looks for a proxy; the lower-case spelling wins, as in curl. */
const VARIABLES = {
  httpProxy: ["http_proxy", "HTTP_PROXY"],
  httpsProxy: ["https_proxy", "HTTPS_PROXY"],
  allProxy: ["all_proxy", "ALL_PROXY"],
  noProxy: ["no_proxy", "NO_PROXY"],
} as const;

export function readProxyEnvironment(lookup: (name: string) => string | undefined): ProxyEnvironment {
  const read = (names: readonly string[]) => names.map(lookup).find((value) => value) ?? "";
  return {
    httpProxy: read(VARIABLES.httpProxy),
    httpsProxy: read(VARIABLES.httpsProxy),
    allProxy: read(VARIABLES.allProxy),
    noProxy: read(VARIABLES.noProxy),
  };
}

export interface Egress {
  /** The proxy for a target, or null for a direct connection. `ws:` counts as `http:`, `wss:` as `https:`. */
  proxyFor(target: URL): EgressProxy | null;
}

/**
 * Settles the way out once, at start or reload.
 *
 * @param proxyUrl  `proxy-url` of the configuration: a URL, `direct` (ignore the environment), or empty (obey it).
 * NO_PROXY applies to a configured proxy too, as it does for curl's `--proxy`.
 * @throws SyntaxError when a proxy URL cannot be read; the message never repeats the URL, which may hold a password.
 */
export function createEgress(proxyUrl: string, environment: ProxyEnvironment): Egress {
  if (proxyUrl === "direct") return { proxyFor: () => null };
  const configured = proxyUrl === "" ? null : parseProxyUrl(proxyUrl, "proxy-url");
  const all = parseOptional(environment.allProxy, "ALL_PROXY");
  const http = configured ?? parseOptional(environment.httpProxy, "HTTP_PROXY") ?? all;
  const https = configured ?? parseOptional(environment.httpsProxy, "HTTPS_PROXY") ?? all;
  const excluded = parseNoProxy(environment.noProxy);
  return {
    proxyFor(target) {
      if (http === null && https === null) return null;
      if (excluded.some((rule) => matches(rule, target))) return null;
      return target.protocol === "https:" || target.protocol === "wss:" ? https : http;
    },
  };
}

/** @throws SyntaxError naming `source`, without the URL. */
export function parseProxyUrl(text: string, source: string): EgressProxy {
  // `host:port` without a scheme is common in environments and means http.
  const full = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : null;
  const scheme = url === null ? null : PROXY_SCHEMES.get(url.protocol) ?? null;
  if (url === null || scheme === null || url.hostname === "") {
    throw new SyntaxError(`Cannot parse ${source}: expected an http, https or socks5 URL`);
  }
  const named = url.username !== "" || url.password !== "";
  return {
    scheme,
    hostname: bareHost(url.hostname),
    port: url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port),
    credentials: named ? { username: decode(url.username), password: decode(url.password) } : null,
  };
}

/** Value of `proxy-authorization`, or null for a proxy without credentials. Source: RFC 7617. */
export function basicAuthorization(proxy: EgressProxy): string | null {
  if (proxy.credentials === null) return null;
  const { username, password } = proxy.credentials;
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${username}:${password}`)))}`;
}

/** `socks5h` (the proxy resolves names) is what both clients do for `socks5` too. */
const PROXY_SCHEMES = new Map<string, ProxyScheme>([
  ["http:", "http"],
  ["https:", "https"],
  ["socks5:", "socks5"],
  ["socks5h:", "socks5"],
]);

const DEFAULT_PORTS: Record<ProxyScheme, number> = { http: 80, https: 443, socks5: 1080 };

interface NoProxyRule {
  /** Lower case, without leading dots; `*` matches every host. */
  readonly host: string;
  /** null: every port. */
  readonly port: string | null;
}

/** Comma or space separated names; a name covers its subdomains; `name:port` covers one port. */
function parseNoProxy(text: string): readonly NoProxyRule[] {
  return text.toLowerCase().split(/[\s,]+/).filter((entry) => entry !== "").map((entry) => {
    const match = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(entry);
    const host = bareHost(match?.[1] ?? entry).replace(/^\*?\.+/, "");
    return { host, port: match?.[2] ?? null };
  });
}

function matches(rule: NoProxyRule, target: URL): boolean {
  if (rule.port !== null && rule.port !== effectivePort(target)) return false;
  const host = bareHost(target.hostname);
  return rule.host === "*" || host === rule.host || host.endsWith(`.${rule.host}`);
}

/** Host and port a direct connection goes to. */
export function endpointOf(target: URL): Endpoint {
  return { hostname: bareHost(target.hostname), port: Number(effectivePort(target)) };
}

function effectivePort(target: URL): string {
  if (target.port !== "") return target.port;
  return target.protocol === "https:" || target.protocol === "wss:" ? "443" : "80";
}

function bareHost(hostname: string): string {
  return hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
}

function parseOptional(text: string, source: string): EgressProxy | null {
  return text === "" ? null : parseProxyUrl(text, source);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
