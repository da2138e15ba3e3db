/** One keep-alive connection of the load generator: raw bytes both ways, and no more looked at than must be. */
const READ_BYTES = 65_536;
const DECODER = new TextDecoder("latin1");

export class LoadConnection {
  readonly #connection: Deno.TcpConn;
  readonly #buffer = new Uint8Array(READ_BYTES);

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  static async open(port: number): Promise<LoadConnection> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connection.setNoDelay(true);
    return new LoadConnection(connection);
  }

  async send(request: Uint8Array): Promise<void> {
    for (let at = 0; at < request.length;) {
      at += await this.#connection.write(at === 0 ? request : request.subarray(at));
    }
  }

  /** The next bytes, valid until the next call; null when the proxy closed. */
  async read(): Promise<Uint8Array | null> {
    const count = await this.#connection.read(this.#buffer);
    return count === null ? null : this.#buffer.subarray(0, count);
  }

  /**
   * Sends a request and reads its answer to the end.
   *
   * @returns the status.
   * @throws Error when the connection ends first.
   */
  async exchange(request: Uint8Array): Promise<number> {
    await this.send(request);
    let status = 0;
    let missing = Infinity;
    let chunked = false;
    while (missing > 0) {
      const bytes = await this.read();
      if (bytes === null) throw new Error(`Cannot read an answer: the proxy closed after status ${status}`);
      if (status === 0) {
        // A head comes in one piece over loopback.
        const head = DECODER.decode(bytes.subarray(0, 4_096));
        const headBytes = head.indexOf("\r\n\r\n") + 4;
        const length = /\ncontent-length: *(\d+)/i.exec(head.slice(0, headBytes))?.[1];
        status = Number(head.slice(9, 12));
        chunked = length === undefined;
        if (!chunked) missing = headBytes + Number(length);
      }
      if (!chunked) missing -= bytes.length;
      else if (endsChunked(bytes)) return status;
    }
    return status;
  }

  close(): void {
    try {
      this.#connection.close();
    } catch {
      // Closed already.
    }
  }
}

const LAST_CHUNK = [0x30, 13, 10, 13, 10];

function endsChunked(bytes: Uint8Array): boolean {
  return LAST_CHUNK.every((byte, at) => bytes[bytes.length - LAST_CHUNK.length + at] === byte);
}
