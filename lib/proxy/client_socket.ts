/**
 * The client's side of an upgraded connection: the runtime's own server WebSocket.
 *
 * It answers pings by itself and pings silent clients, but cannot be paused, and gives up no connection whose
 * client neither reads nor leaves: such a client keeps one descriptor and what was queued for it until it goes.
 */
import type { HeaderLookup } from "../core/evidence.ts";
import type { HeaderList } from "../core/header_fields.ts";

/** As much of a `WebSocket` as a bridge needs. */
export interface ClientSocket {
  readonly bufferedAmount: number;
  binaryType: BinaryType;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: Event) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}

/** What of an upgrade request must be known before it is answered: afterwards it cannot be read any more. */
export interface UpgradeOffer {
  /** Subprotocols in the client's order, without those that carry a key of the client's. */
  readonly protocols: readonly string[];
}

/** Browsers cannot set headers, so OpenAI's SDKs put the key and its organisation here. */
const CREDENTIAL_PROTOCOL = /^openai-(?:insecure-api-key|organization|project)\./i;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const VERSION = "13";

/** @returns `null` when the handshake is not one of RFC 6455. */
export function readUpgradeOffer(headers: HeaderLookup): UpgradeOffer | null {
  const key = headers.get("sec-websocket-key");
  const connection = (headers.get("connection") ?? "").toLowerCase().split(",");
  if (key === null || key.trim() === "" || headers.get("sec-websocket-version")?.trim() !== VERSION) {
    return null;
  }
  if (!connection.some((token) => token.trim() === "upgrade")) return null;
  const protocols = (headers.get("sec-websocket-protocol") ?? "").split(",").map((word) => word.trim())
    .filter((word) => TOKEN.test(word) && !CREDENTIAL_PROTOCOL.test(word));
  return { protocols };
}

export interface Upgraded {
  readonly socket: ClientSocket;
  readonly response: Response;
}

/**
 * Answers the handshake with 101.
 *
 * @param protocol  the subprotocol chosen upstream, or "".
 * @param silenceSeconds  a silent client is pinged after half of it, and gone after all of it.
 * @returns `null` when the client has gone meanwhile.
 */
export function acceptUpgrade(
  request: Request,
  headers: HeaderList,
  protocol: string,
  silenceSeconds: number,
): Upgraded | null {
  try {
    const { socket, response } = Deno.upgradeWebSocket(request, { idleTimeout: silenceSeconds });
    headers.forEach((value, name) => response.headers.set(name, value));
    // Not by the option of that name, which takes `a,b` for one protocol.
    if (protocol !== "") response.headers.set("sec-websocket-protocol", protocol);
    socket.binaryType = "arraybuffer";
    return { socket, response };
  } catch {
    return null;
  }
}

/** Codes an endpoint may put into a close frame; the others are words for having got none (RFC 6455 section 7.4). */
export function isSendableCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
    (code >= 3000 && code <= 4999);
}
