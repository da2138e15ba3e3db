/** WebSockets of a client with the right key to the proxy of a rig. */
import { CLIENT_KEY, type Rig } from "./rig.ts";
import { type Opened, type OpenOptions, openWs, type WsClient } from "./ws_client.ts";

export type SocketOptions = OpenOptions & { readonly path?: string };

export function tryRigSocket(rig: Rig, options: SocketOptions = {}): Promise<Opened> {
  const headers = { authorization: `Bearer ${CLIENT_KEY}`, ...options.headers };
  return rig.until(openWs(`${rig.app.url}${options.path ?? "/v1/responses"}`, { ...options, headers }));
}

/** @throws Error when the handshake is refused. */
export async function openRigSocket(rig: Rig, options: SocketOptions = {}): Promise<WsClient> {
  const opened = await tryRigSocket(rig, options);
  if (!opened.ok) throw new Error(`The handshake was refused: ${opened.status} ${opened.body}`);
  return opened.client;
}

/** @throws Error when the handshake succeeds. */
export async function refusedRigSocket(
  rig: Rig,
  options: SocketOptions = {},
): Promise<Extract<Opened, { ok: false }>> {
  const opened = await tryRigSocket(rig, options);
  if (!opened.ok) return opened;
  await opened.client.close();
  throw new Error("The handshake was not refused");
}
