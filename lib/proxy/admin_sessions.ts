/**
 * Who is logged in to the status page: random ids in memory, each for twelve hours and one admin key.
 *
 * Only digests of the ids are kept, so finding one compares nothing secret byte by byte. A restart or another
 * admin key ends every session.
 */
import type { Digest, Ids } from "../ports.ts";

export const SESSION_MS = 12 * 3_600_000;
export const MAX_SESSIONS = 64;
const ID_BYTES = 32;

interface Session {
  readonly expiresAtMs: number;
  readonly keyHash: string;
}

export class AdminSessions {
  readonly #ids: Ids;
  readonly #digest: Digest;
  /** By SHA-256 of the id, oldest first. */
  readonly #sessions = new Map<string, Session>();

  constructor(ids: Ids, digest: Digest) {
    this.#ids = ids;
    this.#digest = digest;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** @returns the id, which only the cookie holds. The oldest session goes when there are too many. */
  open(keyHash: string, nowMs: number): string {
    for (const [hash, { expiresAtMs }] of this.#sessions) {
      if (expiresAtMs <= nowMs || this.#sessions.size >= MAX_SESSIONS) this.#sessions.delete(hash);
      else break;
    }
    const id = this.#ids.secret(ID_BYTES);
    this.#sessions.set(this.#digest.sha256(id), { expiresAtMs: nowMs + SESSION_MS, keyHash });
    return id;
  }

  /** @param keyHash  of the admin key that holds now; null when there is none. */
  isOpen(id: string | null, keyHash: string | null, nowMs: number): boolean {
    if (id === null || keyHash === null) return false;
    const session = this.#sessions.get(this.#digest.sha256(id));
    return session !== undefined && session.expiresAtMs > nowMs && session.keyHash === keyHash;
  }

  end(id: string | null): void {
    if (id !== null) this.#sessions.delete(this.#digest.sha256(id));
  }
}
