/**
 * Single values of the file that need more than a type: paths, secrets, URLs, the listening host.
 *
 * Each reader answers with the value as the program uses it, or with what is wrong. Pure: the environment and
 * the home folder come in as data.
 */
import { DEFAULT_DATABASE_NAME } from "./config_defaults.ts";
import { isForbiddenHost, isLoopbackHost } from "./core/ip_address.ts";

/** What the process knows beside the file. */
export interface ConfigEnvironment {
  /** Null where none is known: then nothing may start with `~`. */
  readonly homeDir: string | null;
  get(name: string): string | undefined;
}

export type Reading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

const ENVIRONMENT_PREFIX = "env:";
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** What can be sent in a header and typed on a command line. */
const KEY_PATTERN = /^[\x21-\x7e]+$/;
const PROXY_PROTOCOLS: ReadonlySet<string> = new Set(["http:", "https:", "socks5:"]);

/** A key as written or, for `env:NAME`, from the environment. Empty and blank ones let everybody in (B143). */
export function readSecret(text: string, environment: ConfigEnvironment): Reading<string> {
  const source = readReference(text, environment);
  if (!source.ok) return source;
  const key = source.value;
  const named = text.startsWith(ENVIRONMENT_PREFIX) ? ` (from ${text.slice(ENVIRONMENT_PREFIX.length)})` : "";
  if (key.trim() === "") return failed(`must not be empty or blank${named}`);
  if (!KEY_PATTERN.test(key)) return failed(`must be visible ASCII characters without spaces${named}`);
  return read(key);
}

/** The text itself, or the variable that `env:NAME` names. */
function readReference(text: string, environment: ConfigEnvironment): Reading<string> {
  if (!text.startsWith(ENVIRONMENT_PREFIX)) return read(text);
  const name = text.slice(ENVIRONMENT_PREFIX.length);
  // The name is not repeated: what cannot be a variable's name may be the key itself.
  if (!VARIABLE_NAME.test(name)) return failed("must name an environment variable after env:");
  const value = environment.get(name);
  if (value === undefined) return failed(`names the environment variable ${name}, which is not set`);
  return read(value);
}

/**
 * An upstream address: https, or http on loopback; no user, query or fragment; never link-local or metadata.
 *
 * @returns the normalised URL without trailing slash, so that nobody reads it differently later (B141).
 */
export function readBaseUrl(text: string): Reading<string> {
  const url = /\s/.test(text) || !URL.canParse(text) ? null : new URL(text);
  if (url === null || url.hostname === "") return failed("must be an https URL (http on loopback)");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopbackHost(url.hostname))) {
    return failed("must be an https URL (http on loopback)");
  }
  if (isForbiddenHost(url.hostname)) {
    return failed("must not be a link-local, metadata or unspecified address");
  }
  if (url.username !== "" || url.password !== "") return failed("must not hold a user or password");
  if (url.search !== "" || url.hash !== "" || /[?#]/.test(text)) {
    return failed("must not have a query or fragment");
  }
  return read(url.href.replace(/\/+$/, ""));
}

/** Empty (the environment's), `direct`, or a proxy URL, which may come from `env:NAME` for its password's sake. */
export function readProxyUrl(text: string, environment: ConfigEnvironment): Reading<string> {
  if (text === "" || text === "direct") return read(text);
  const source = readReference(text, environment);
  if (!source.ok) return source;
  const url = /\s/.test(source.value) || !URL.canParse(source.value) ? null : new URL(source.value);
  if (url === null || url.hostname === "" || !PROXY_PROTOCOLS.has(url.protocol)) {
    return failed("must be an http, https or socks5 URL, direct, or empty");
  }
  if ((url.pathname !== "" && url.pathname !== "/") || url.search !== "" || url.hash !== "") {
    return failed("must have nothing behind its port");
  }
  // Only http URLs are normalised: an odd spelling of an address must not pass under socks5.
  const host = readListenHost(url.hostname);
  if (!host.ok || isForbiddenHost(host.value)) {
    return failed("must not be a link-local, metadata or unspecified address");
  }
  return read(url.href.replace(/\/$/, ""));
}

/** A name or address to listen on, without port; IPv6 without brackets, IPv4 in its usual spelling. */
export function readListenHost(text: string): Reading<string> {
  const problem = "must be a name or address without port";
  const bare = text.replace(/^\[(.*)\]$/, "$1");
  const authority = bare.includes(":") ? `[${bare}]` : bare;
  if (!/^[A-Za-z0-9._:[\]-]+$/.test(authority) || !URL.canParse(`http://${authority}/`)) {
    return failed(problem);
  }
  const url = new URL(`http://${authority}/`);
  return url.port === "" ? read(url.hostname.replace(/^\[(.*)\]$/, "$1")) : failed(problem);
}

/** An absolute path, `~` replaced by the home folder, `.` and `..` resolved, without trailing separator. */
export function readPath(text: string, environment: ConfigEnvironment): Reading<string> {
  if (text.includes("\0")) return failed("must not hold a NUL character");
  const home = environment.homeDir;
  const windows = home !== null && /^[A-Za-z]:[\\/]|^\\\\/.test(home);
  let path = text;
  if (text === "~" || text.startsWith("~/") || (windows && text.startsWith("~\\"))) {
    if (home === null) return failed("starts with ~, but no home folder is known");
    path = home + text.slice(1);
  }
  const root = (windows ? /^(?:[A-Za-z]:[\\/]|\\\\[^\\/]+[\\/][^\\/]+[\\/]?)/ : /^\//).exec(path)?.[0];
  // What a relative path is relative to differs between a shell, a service and an editor.
  if (root === undefined) return failed("must be an absolute path or start with ~/");
  const parts: string[] = [];
  for (const part of path.slice(root.length).split(windows ? /[\\/]+/ : /\/+/)) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  const separator = windows ? "\\" : "/";
  const base = windows ? root.replace(/[\\/]+$/, "").replaceAll("/", "\\") : "";
  return read(base + separator + parts.join(separator));
}

/**
 * The database file: as said, else below the state folder (XDG_STATE_HOME, `~/.local/state`).
 *
 * A relative XDG_STATE_HOME is ignored, as the XDG Base Directory Specification 0.8 demands.
 */
export function resolveDatabasePath(text: string, environment: ConfigEnvironment): Reading<string> {
  if (text !== "") return readPath(text, environment);
  const state = environment.get("XDG_STATE_HOME") ?? "";
  const named = state.startsWith("~") ? null : readPath(state, environment);
  if (named?.ok !== true && environment.homeDir === null) {
    return failed("has no default place, since no home folder is known");
  }
  const base = named?.ok === true ? named.value : "~/.local/state";
  return readPath(`${base}/${DEFAULT_DATABASE_NAME}`, environment);
}

/** True when `path` is `folder` or below it; both as {@link readPath} gives them. */
export function isInside(path: string, folder: string): boolean {
  if (path === folder) return true;
  const separator = folder.includes("\\") ? "\\" : "/";
  return path.startsWith(folder.endsWith(separator) ? folder : folder + separator);
}

function read<T>(value: T): Reading<T> {
  return { ok: true, value };
}

function failed(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}
