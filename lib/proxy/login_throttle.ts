/**
 * Slows guessing down: after each wrong key the same caller must wait twice as long, up to half a minute.
 *
 * A caller is an IPv4 address or an IPv6 /64, which is what one household or server commands.
 */
import { parseIpv6 } from "../core/ip_address.ts";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Mistypes cost nothing: the third wrong key is the first that makes wait. */
const FREE_FAILURES = 2;
const FORGET_MS = 15 * 60_000;
export const MAX_CALLERS = 1_024;

interface Failures {
  readonly count: number;
  readonly lastAtMs: number;
}

export class LoginThrottle {
  /** The one that failed longest ago first. */
  readonly #failures = new Map<string, Failures>();

  get callerCount(): number {
    return this.#failures.size;
  }

  /** How long this caller has to wait before its next try, ms; 0 when it may try now. */
  waitMs(address: string, nowMs: number): number {
    const failures = this.#failures.get(callerOf(address));
    if (failures === undefined || failures.count <= FREE_FAILURES) return 0;
    if (failures.lastAtMs + FORGET_MS <= nowMs) return 0;
    const doublings = Math.min(failures.count - FREE_FAILURES - 1, 30);
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** doublings, LONGEST_WAIT_MS);
    return Math.max(0, failures.lastAtMs + waitMs - nowMs);
  }

  failed(address: string, nowMs: number): void {
    const caller = callerOf(address);
    const known = this.#failures.get(caller);
    const count = known === undefined || known.lastAtMs + FORGET_MS <= nowMs ? 1 : known.count + 1;
    this.#failures.delete(caller);
    for (const [oldest, { lastAtMs }] of this.#failures) {
      if (lastAtMs + FORGET_MS > nowMs && this.#failures.size < MAX_CALLERS) break;
      this.#failures.delete(oldest);
    }
    this.#failures.set(caller, { count, lastAtMs: nowMs });
  }

  succeeded(address: string): void {
    this.#failures.delete(callerOf(address));
  }
}

function callerOf(address: string): string {
  const groups = parseIpv6(address);
  if (groups === null) return address;
  // An IPv4 address in IPv6 clothes (::ffff:a.b.c.d) is one caller, not one of a /64 that holds them all.
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return (isMapped ? groups : groups.slice(0, 4)).map((group) => group.toString(16)).join(":");
}
