/**
 * Tells a connection that this machine could not make from one that the peer did not take.
 *
 * Out of descriptors, ports or buffers nothing is sent, and the peer is not to blame; taken for a refusal it would
 * cool accounts and pause the network while both are well.
 */

/**
 * Errors of a connection attempt that are about this machine: ENOMEM, ENFILE, EMFILE, EADDRNOTAVAIL (no free port
 * left), ENOBUFS. Numbers as the runtime shows them; they differ between systems.
 */
const LIMIT_ERRORS: Readonly<Record<string, readonly number[]>> = {
  linux: [12, 23, 24, 99, 105],
  darwin: [12, 23, 24, 49, 55],
  freebsd: [12, 23, 24, 49, 55],
  windows: [8, 10024, 10048, 10055],
};
const LIMIT_CODES: ReadonlySet<string> = new Set(["ENOMEM", "ENFILE", "EMFILE", "EADDRNOTAVAIL", "ENOBUFS"]);

/** @param text  the runtime's words for a failed connection, e.g. `tcp connect error: … (os error 24)`. */
export function namesLocalLimit(text: string): boolean {
  const number = /\(os error (\d+)\)/.exec(text)?.[1];
  return number !== undefined && (LIMIT_ERRORS[Deno.build.os] ?? []).includes(Number(number));
}

/** @param code  of an error as `node:net` makes them. */
export function isLocalLimitCode(code: string): boolean {
  return LIMIT_CODES.has(code);
}

/**
 * True when no further file can be opened: a name that does not resolve may then be for want of a socket to ask
 * with, which the resolver does not say.
 */
export function isOutOfDescriptors(): boolean {
  if (Deno.build.os === "windows") return false;
  try {
    Deno.openSync("/dev/null").close();
    return false;
  } catch (error) {
    return error instanceof Error && isLocalLimitCode(String((error as { code?: unknown }).code ?? ""));
  }
}
