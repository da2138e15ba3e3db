/** Frames of HTTP/2 by hand (RFC 9113): headers no client library would send, in the plainest form HPACK has. */
const ENCODER = new TextEncoder();
const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export const END_STREAM = 1;
export const END_HEADERS = 4;

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goAway: 7, continuation: 9 } as const;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, (payload.length << 8) | type);
  view.setUint8(4, flags);
  view.setUint32(5, stream);
  bytes.set(payload, 9);
  return bytes;
}

/** Literal fields with new names, not indexed, without Huffman coding (RFC 7541 section 6.2.2). */
export function fields(pairs: readonly (readonly [string, string])[]): Uint8Array {
  const bytes: number[] = [];
  const text = (value: string): void => {
    const raw = Uint8Array.from(value, (letter) => letter.charCodeAt(0));
    if (raw.length < 127) bytes.push(raw.length);
    else {
      bytes.push(127);
      let rest = raw.length - 127;
      for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
      bytes.push(rest);
    }
    for (const byte of raw) bytes.push(byte);
  };
  for (const [name, value] of pairs) {
    bytes.push(0);
    text(name);
    text(value);
  }
  return new Uint8Array(bytes);
}

export function textFrame(stream: number, text: string): Uint8Array {
  return frame(FRAME.data, END_STREAM, stream, ENCODER.encode(text));
}

/** How one stream ended: the peer's answer came to its end, or stream or connection were ended instead. */
export type Ending = "answered" | "reset" | "gone" | "nothing";

export class RawHttp2 implements Disposable {
  readonly #connection: Deno.TcpConn;
  readonly #endings = new Map<number, Ending>();
  #ended = false;
  readonly #reading: Promise<void>;
  #changed = Promise.withResolvers<void>();

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
    this.#reading = this.#read().catch(() => {}).finally(() => {
      this.#ended = true;
      this.#changed.resolve();
    });
  }

  static async open(port: number): Promise<RawHttp2> {
    const client = new RawHttp2(await Deno.connect({ hostname: "127.0.0.1", port }));
    await client.send(ENCODER.encode(PREFACE), frame(FRAME.settings, 0, 0, new Uint8Array()));
    return client;
  }

  async send(...frames: readonly Uint8Array[]): Promise<void> {
    for (const bytes of frames) {
      for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
    }
  }

  async ending(stream: number, limitMs = 2_000): Promise<Ending> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise<void>((resolve) => timer = setTimeout(resolve, limitMs));
    let over = false;
    limit.then(() => over = true);
    while (!this.#endings.has(stream) && !this.#ended && !over) {
      await Promise.race([this.#changed.promise, limit]);
    }
    clearTimeout(timer);
    return this.#endings.get(stream) ?? (this.#ended ? "gone" : "nothing");
  }

  async #read(): Promise<void> {
    let unread = new Uint8Array();
    const buffer = new Uint8Array(65_536);
    for (;;) {
      const count = await this.#connection.read(buffer);
      if (count === null) return;
      const joined = new Uint8Array(unread.length + count);
      joined.set(unread);
      joined.set(buffer.subarray(0, count), unread.length);
      let at = 0;
      for (const view = new DataView(joined.buffer); joined.length - at >= 9;) {
        const length = view.getUint32(at) >> 8;
        if (joined.length - at < 9 + length) break;
        this.#note(joined[at + 3]!, joined[at + 4]!, view.getUint32(at + 5));
        at += 9 + length;
      }
      unread = joined.slice(at);
    }
  }

  #note(type: number, flags: number, stream: number): void {
    if (type === FRAME.reset) this.#endings.set(stream, this.#endings.get(stream) ?? "reset");
    const carries = type === FRAME.data || type === FRAME.headers;
    if (carries && (flags & END_STREAM) !== 0) this.#endings.set(stream, "answered");
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  [Symbol.dispose](): void {
    try {
      this.#connection.close();
    } catch {
      // Closed already.
    }
    // Ends with the connection.
    void this.#reading;
  }
}
