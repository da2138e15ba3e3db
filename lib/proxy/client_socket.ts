/** The client's side of an upgraded connection, and what its handshake must be like. */
import type { HeaderLookup } from "../core/evidence.ts";

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

export interface UpgradeOffer {
  /** Subprotocols in the client's order, without those that carry a key of the client's. */
  readonly protocols: readonly string[];
}

/** Browsers cannot set headers, so OpenAI's SDKs put the key and its organisation here. */
const CREDENTIAL_PROTOCOL = /^openai-(?:insecure-api-key|organization|project)\./i;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** 16 bytes in base64. */
const KEY = /^[+/0-9A-Za-z]{22}==$/;
const VERSION = "13";

/** @returns `null` when the handshake is not one of RFC 6455. */
export function readUpgradeOffer(headers: HeaderLookup): UpgradeOffer | null {
  const key = headers.get("sec-websocket-key");
  const connection = (headers.get("connection") ?? "").toLowerCase().split(",");
  if (key === null || !KEY.test(key.trim()) || headers.get("sec-websocket-version")?.trim() !== VERSION) {
    return null;
  }
  if (!connection.some((token) => token.trim() === "upgrade")) return null;
  // Named twice, the upstream's handshake could not be made: a client may not, and means nothing by it.
  const protocols = new Set(
    (headers.get("sec-websocket-protocol") ?? "").split(",").map((word) => word.trim())
      .filter((word) => TOKEN.test(word) && !CREDENTIAL_PROTOCOL.test(word)),
  );
  return { protocols: [...protocols] };
}

/** Codes an endpoint may put into a close frame; the others are words for having got none (RFC 6455 section 7.4). */
export function isSendableCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
    (code >= 3000 && code <= 4999);
}
