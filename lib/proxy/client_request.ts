/** A client's request as the listener hands it in. */
import { HeaderFields, type HeaderList } from "../core/header_fields.ts";
import type { ByteSource } from "../ports.ts";
import type { ClientSocket } from "./client_socket.ts";

export interface ClientRequest {
  readonly method: string;
  /** As it came: a path with its query, or a whole URL. */
  readonly target: string;
  readonly headers: HeaderFields;
  /** Of the other end of the connection; null once it is gone. */
  readonly address: string | null;
  /** Null when the client sends none. */
  readonly body: RequestSource | null;
  /** For a WebSocket handshake, else null. */
  readonly upgrade: Upgrade | null;
  /** Calls back once when the client leaves before it has the whole of its answer; at once if it has. */
  whenLeft(callback: () => void): void;
}

/** Whoever wants to know of each piece of a body, in bytes. */
export interface Progress {
  count(bytes: number): void;
}

/** The body of a request. Either `read` or `whole` is used; what is read belongs to the reader. */
export interface RequestSource extends ByteSource {
  /**
   * All of it, for a body whose length was declared.
   *
   * @param into  of that length; filled as it comes, also after the reader has lost interest.
   * @returns how many bytes came. Throws when the client went before the end.
   */
  whole(into: Uint8Array<ArrayBuffer>, progress: Progress): Promise<number>;
}

/** A connection whose client wants it for a WebSocket. */
export interface Upgrade {
  /**
   * Answers the handshake with 101.
   *
   * @param protocol  the subprotocol chosen upstream, or "".
   * @param silenceMs  a silent client is pinged after half of it, and gone after all of it.
   * @returns `null` when the client has gone meanwhile.
   */
  accept(headers: HeaderList, protocol: string, silenceMs: number): ClientSocket | null;
}

/** A request of our own, which comes from no client and never leaves. */
export function ownRequest(
  method: string,
  target: string,
  body: string | Uint8Array<ArrayBuffer> | null = null,
  headers: Readonly<Record<string, string>> = {},
): ClientRequest {
  return {
    method,
    target,
    headers: HeaderFields.from(headers),
    address: null,
    body: body === null
      ? null
      : wholeSource(typeof body === "string" ? new TextEncoder().encode(body) : body),
    upgrade: null,
    whenLeft: () => {},
  };
}

function wholeSource(bytes: Uint8Array<ArrayBuffer>): RequestSource {
  let rest: Uint8Array<ArrayBuffer> | null = bytes.length === 0 ? null : bytes;
  const take = (): Uint8Array<ArrayBuffer> | null => {
    const taken = rest;
    rest = null;
    return taken;
  };
  return {
    read: () => Promise.resolve(take()),
    whole: (into) => {
      into.set(take() ?? bytes);
      return Promise.resolve(bytes.length);
    },
    cancel: () => void take(),
  };
}
