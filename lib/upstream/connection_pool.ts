/** Idle connections to one origin, the one used last taken first. */
import type { HttpConnection } from "./http_connection.ts";

/** Below the 60 or 75 s after which common servers close an idle connection, so that we close first. */
export const POOL_IDLE_MS = 55_000;
const POOL_MAX_IDLE = 512;

export class ConnectionPool {
  /** By the moment they fell idle, oldest first. */
  readonly #idle: HttpConnection[] = [];
  #closed = false;

  /** @returns `null` when none is left that may be trusted. */
  take(nowMs: number): HttpConnection | null {
    this.#dropOld(nowMs);
    return this.#idle.pop() ?? null;
  }

  /** Takes back a connection whose answer is over. */
  put(connection: HttpConnection, nowMs: number): void {
    if (connection.closed) return;
    if (this.#closed || this.#idle.length >= POOL_MAX_IDLE) return connection.close();
    connection.idleSinceMs = nowMs;
    this.#idle.push(connection);
    connection.watchIdle(() => this.#drop(connection));
    this.#dropOld(nowMs);
  }

  /** Closes what lies idle: its host cannot be reached, and it would only be found out one by one. */
  clear(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  /** Connections in use are closed when they come back. */
  close(): void {
    this.#closed = true;
    this.clear();
  }

  #dropOld(nowMs: number): void {
    while (this.#idle.length > 0 && this.#idle[0]!.idleSinceMs + POOL_IDLE_MS <= nowMs) {
      this.#idle.shift()!.close();
    }
  }

  /** The peer closed it, or said something unasked. One that was taken meanwhile is its user's. */
  #drop(connection: HttpConnection): void {
    const at = this.#idle.lastIndexOf(connection);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    connection.close();
  }
}
