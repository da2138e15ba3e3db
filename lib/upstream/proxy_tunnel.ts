/**
 * Asks an egress proxy for a tunnel over a connected socket: HTTP CONNECT (RFC 9110 section 9.3.6) or SOCKS 5
 * (RFC 1928, RFC 1929).
 *
 * Sixty lines here instead of two packages, because a tunnel that fails must be told from an upstream that fails.
 */
import { isIP, type Socket } from "node:net";
import { basicAuthorization, type EgressProxy, type Endpoint } from "./egress_proxy.ts";
import { SocketReader } from "./socket_reader.ts";

/** @returns true when bytes written from now on reach the target. Ends early, with false, when the socket ends. */
export async function openTunnel(socket: Socket, proxy: EgressProxy, target: Endpoint): Promise<boolean> {
  const reader = new SocketReader(socket);
  try {
    return proxy.scheme === "socks5"
      ? await tunnelBySocks(socket, reader, proxy, target)
      : await tunnelByConnect(socket, reader, proxy, target);
  } finally {
    reader.release();
  }
}

async function tunnelByConnect(
  socket: Socket,
  reader: SocketReader,
  proxy: EgressProxy,
  target: Endpoint,
): Promise<boolean> {
  const authority = `${
    target.hostname.includes(":") ? `[${target.hostname}]` : target.hostname
  }:${target.port}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `host: ${authority}`];
  const authorization = basicAuthorization(proxy);
  if (authorization !== null) lines.push(`proxy-authorization: ${authorization}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  const head = await reader.read(headLength, MAX_HEAD_BYTES);
  if (head === null) return false;
  return /^HTTP\/1\.[01] 2\d\d[ \r]/.test(new TextDecoder().decode(head));
}

/** A proxy's answer to CONNECT is a few lines; more is no proxy. */
const MAX_HEAD_BYTES = 16_384;

function headLength(seen: Uint8Array): number {
  const at = new TextDecoder("latin1").decode(seen).indexOf("\r\n\r\n");
  return at < 0 ? -1 : at + 4;
}

async function tunnelBySocks(
  socket: Socket,
  reader: SocketReader,
  proxy: EgressProxy,
  target: Endpoint,
): Promise<boolean> {
  const methods = proxy.credentials === null ? [NO_AUTHENTICATION] : [NO_AUTHENTICATION, USER_AND_PASSWORD];
  socket.write(Uint8Array.of(SOCKS_VERSION, methods.length, ...methods));
  const choice = await reader.read(fixed(2), MAX_SOCKS_BYTES);
  if (choice === null || choice[0] !== SOCKS_VERSION) return false;
  if (choice[1] === USER_AND_PASSWORD && proxy.credentials !== null) {
    const { username, password } = proxy.credentials;
    socket.write(Uint8Array.of(1, ...counted(username), ...counted(password)));
    const verdict = await reader.read(fixed(2), MAX_SOCKS_BYTES);
    if (verdict === null || verdict[1] !== 0) return false;
  } else if (choice[1] !== NO_AUTHENTICATION) return false;
  const port = [target.port >> 8, target.port & 0xff];
  socket.write(Uint8Array.of(SOCKS_VERSION, CONNECT, 0, ...socksAddress(target.hostname), ...port));
  const answer = await reader.read(socksAnswerLength, MAX_SOCKS_BYTES);
  return answer !== null && answer[0] === SOCKS_VERSION && answer[1] === 0;
}

const SOCKS_VERSION = 5;
const CONNECT = 1;
const NO_AUTHENTICATION = 0;
const USER_AND_PASSWORD = 2;
/** The longest answer carries a name of 255 bytes. */
const MAX_SOCKS_BYTES = 262;

function fixed(length: number): (seen: Uint8Array) => number {
  return (seen) => seen.length >= length ? length : -1;
}

/** Version, result, reserved, then the bound address: type, address, port. */
function socksAnswerLength(seen: Uint8Array): number {
  if (seen.length < 5) return -1;
  const addressBytes = seen[3] === 1 ? 4 : seen[3] === 4 ? 16 : 1 + seen[4]!;
  const length = 4 + addressBytes + 2;
  return seen.length >= length ? length : -1;
}

/** Names go as names: the proxy resolves them. */
function socksAddress(hostname: string): readonly number[] {
  if (isIP(hostname) === 4) return [1, ...hostname.split(".").map(Number)];
  if (isIP(hostname) === 6) return [4, ...ipv6Bytes(hostname)];
  return [3, ...counted(hostname)];
}

function ipv6Bytes(address: string): readonly number[] {
  const [head = "", tail] = address.split("::");
  const groups = (text: string) => text === "" ? [] : text.split(":").map((group) => parseInt(group, 16));
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const middle = new Array<number>(8 - left.length - right.length).fill(0);
  return [...left, ...middle, ...right].flatMap((group) => [group >> 8, group & 0xff]);
}

/** One length byte, then at most 255 bytes. */
function counted(text: string): readonly number[] {
  const bytes = new TextEncoder().encode(text).subarray(0, 255);
  return [bytes.length, ...bytes];
}
