/** The listener alone, with a handler of the test's own in place of the proxy. */
import type { Answer } from "../../lib/proxy/answer.ts";
import type { ClientRequest } from "../../lib/proxy/client_request.ts";
import { OpenSockets } from "../../lib/proxy/open_sockets.ts";
import { type RunningServer, startServer } from "../../lib/proxy/server.ts";
import { createClock } from "../../lib/runtime/clock.ts";
import { memoryLog } from "./memory_log.ts";

export const HANDSHAKE = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/** Ends at once with whatever is under way, when the test ends. */
export async function listen(
  handler: (request: ClientRequest) => Answer | Promise<Answer>,
  options: { readonly headLimitMs?: number } = {},
): Promise<RunningServer & AsyncDisposable> {
  const server = await startServer({
    hostname: "127.0.0.1",
    port: 0,
    clock: createClock(),
    log: memoryLog(),
    sockets: new OpenSockets(),
    abortAll: () => {},
    ...options,
    handler,
  });
  return Object.assign(server, { [Symbol.asyncDispose]: () => server.stop(0) });
}

/** A request as text; `head` holds more header lines, each with its end. */
export function wire(line: string, head = "", body = ""): string {
  return `${line} HTTP/1.1\r\nhost: x\r\n${head}\r\n${body}`;
}
