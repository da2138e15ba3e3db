/**
 * Rules over the address of an upstream.
 */
import { DEFAULT_CONFIG_VALUES as DEFAULTS } from "./config_defaults.ts";
import type { Findings, PartialFile } from "./config_findings.ts";
import type { KeyPath } from "./config_keys.ts";
import { readBaseUrl, readListenHost } from "./config_values.ts";
import { isLoopbackHost } from "./core/ip_address.ts";

/** @returns the normalised URL, or `null` with the mistake noted. */
export function checkBaseUrl(path: KeyPath, text: string, file: PartialFile, findings: Findings): URL | null {
  const href = findings.take(path, text, readBaseUrl);
  if (href === null) return null;
  const url = new URL(href);
  if (!isOwnListener(url, file, findings)) return url;
  findings.refuse(path, "must not be this proxy's own address", text);
  return null;
}

/** A proxy that is its own upstream calls itself without end (field case B142). */
function isOwnListener(url: URL, file: PartialFile, findings: Findings): boolean {
  if (!findings.isSound(["port"]) || !findings.isSound(["host"])) return false;
  const port = file.port ?? DEFAULTS.port;
  const target = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const host = readListenHost(file.host ?? DEFAULTS.host);
  if (port === 0 || port !== target || !host.ok) return false;
  const name = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (name === host.value) return true;
  const isWildcard = host.value === "0.0.0.0" || host.value === "::";
  return isLoopbackHost(name) && (isWildcard || isLoopbackHost(host.value));
}
