/** An egress proxy for tests: HTTP (forwarding and CONNECT), HTTPS and SOCKS 5, with a log and bad manners. */
import { Buffer } from "node:buffer";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { tlsFixture } from "./rude_sockets.ts";

export interface ProxyCall {
  /** Host and port asked for. */
  readonly target: string;
  readonly form: "connect" | "forward" | "socks";
  /** `user:password` as given, or null. */
  readonly credentials: string | null;
}

export interface ProxyOptions {
  readonly scheme: "http" | "https" | "socks5";
  readonly credentials?: string;
  /** Where every tunnel and forwarded request really goes, whatever host was asked for. */
  readonly upstreamPort: number;
  /** Answers every CONNECT and forwarded request (or, in SOCKS, every request) with this instead. */
  readonly refuse?: string;
  /** Sends the answer to CONNECT in two segments. */
  readonly split?: boolean;
}

export interface TestProxy extends AsyncDisposable {
  readonly port: number;
  readonly calls: ProxyCall[];
}

export async function startTestProxy(options: ProxyOptions): Promise<TestProxy> {
  const calls: ProxyCall[] = [];
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    keep(sockets, socket);
    if (options.scheme === "socks5") serveSocks(socket, options, calls, sockets);
    else serveHttp(socket, options, calls, sockets);
  };
  const server: Server = options.scheme === "https"
    ? createTlsServer({ key: tlsFixture("localhost.key"), cert: tlsFixture("localhost.pem") }, serve)
    : createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    calls,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
}

function serveHttp(socket: Socket, options: ProxyOptions, calls: ProxyCall[], sockets: Set<Socket>): void {
  onPrefix(socket, (seen) => {
    const at = seen.indexOf("\r\n\r\n");
    return at < 0 ? -1 : at + 4;
  }, (head, rest) => {
    const [line = "", ...lines] = head.toString("latin1").split("\r\n");
    const [method = "", target = ""] = line.split(" ");
    const basic = lines.map((entry) => /^proxy-authorization: Basic (.+)$/i.exec(entry)?.[1])
      .find((value) => value !== undefined);
    const credentials = basic === undefined ? null : atob(basic);
    const form = method === "CONNECT" ? "connect" : "forward";
    calls.push({ target: form === "connect" ? target : new URL(target).host, form, credentials });
    if (options.credentials !== undefined && credentials !== options.credentials) {
      return socket.end("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    }
    if (options.refuse !== undefined) return refuse(socket, options.refuse);
    const upstream = join(socket, options.upstreamPort, sockets);
    if (form === "forward") {
      const kept = lines.filter((entry) => !/^proxy-/i.test(entry));
      upstream.write([`${method} ${target} HTTP/1.1`, ...kept].join("\r\n"), "latin1");
    } else {
      socket.write("HTTP/1.1 200 Connection ");
      const finish = () => socket.write("established\r\nvia: test\r\n\r\n");
      if (options.split === true) setTimeout(finish, 5);
      else finish();
    }
    if (rest.length > 0) upstream.write(rest);
  });
}

function serveSocks(socket: Socket, options: ProxyOptions, calls: ProxyCall[], sockets: Set<Socket>): void {
  let credentials: string | null = null;
  onPrefix(
    socket,
    (seen) => seen.length > 1 && seen.length >= 2 + seen[1]! ? 2 + seen[1]! : -1,
    (greeting) => {
      const offered = [...greeting.subarray(2)];
      const wanted = options.credentials === undefined ? 0 : 2;
      if (!offered.includes(wanted)) return socket.end(Uint8Array.of(5, 0xff));
      socket.write(Uint8Array.of(5, wanted));
      if (wanted === 2) readPassword();
      else readRequest();
    },
  );
  function readPassword(): void {
    const measure = (seen: Buffer) => {
      if (seen.length < 2 || seen.length < 3 + seen[1]!) return -1;
      const length = 3 + seen[1]! + seen[2 + seen[1]!]!;
      return seen.length >= length ? length : -1;
    };
    onPrefix(socket, measure, (words) => {
      const user = words.subarray(2, 2 + words[1]!).toString("utf8");
      credentials = `${user}:${words.subarray(3 + words[1]!).toString("utf8")}`;
      const right = credentials === options.credentials;
      socket.write(Uint8Array.of(1, right ? 0 : 1));
      if (right) readRequest();
      else socket.end();
    });
  }
  function readRequest(): void {
    const addressBytes = (seen: Buffer) => seen[3] === 1 ? 4 : seen[3] === 4 ? 16 : 1 + seen[4]!;
    const measure = (seen: Buffer) => {
      if (seen.length < 5) return -1;
      const length = 6 + addressBytes(seen);
      return seen.length >= length ? length : -1;
    };
    onPrefix(socket, measure, (request, rest) => {
      const address = request.subarray(4, request.length - 2);
      const host = request[3] === 3 ? address.subarray(1).toString("utf8") : [...address].join(".");
      calls.push({
        target: `${host}:${request.readUInt16BE(request.length - 2)}`,
        form: "socks",
        credentials,
      });
      if (options.refuse !== undefined) return refuse(socket, options.refuse);
      const upstream = join(socket, options.upstreamPort, sockets);
      socket.write(Uint8Array.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 0));
      if (rest.length > 0) upstream.write(rest);
    });
  }
}

/** Ending a TLS socket without data does not close it, so it is destroyed. */
function refuse(socket: Socket, answer: string): void {
  if (answer === "") socket.destroy();
  else socket.end(Buffer.from(answer, "latin1"));
}

/** Reads until `measure` finds a length, then stops reading and hands over both parts. */
function onPrefix(
  socket: Socket,
  measure: (seen: Buffer) => number,
  then: (prefix: Buffer, rest: Buffer) => void,
): void {
  let seen = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    seen = Buffer.concat([seen, chunk]);
    const length = measure(seen);
    if (length < 0) return;
    socket.off("data", onData);
    then(seen.subarray(0, length), seen.subarray(length));
  };
  socket.on("data", onData);
}

function join(socket: Socket, port: number, sockets: Set<Socket>): Socket {
  const upstream = connect(port, "127.0.0.1");
  keep(sockets, upstream);
  socket.pipe(upstream);
  upstream.pipe(socket);
  socket.on("close", () => upstream.destroy());
  upstream.on("close", () => socket.destroy());
  return upstream;
}
