/** A client of bytes: sends what no HTTP library would, and reads whole answers off the connection. */
const READ_BYTES = 65_536;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("latin1");

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case; repeats are joined as they came. */
  readonly headers: Headers;
  readonly body: string;
}

/** What one connection gave until it ended or nothing came any more. */
export interface Exchange {
  readonly answers: readonly RawAnswer[];
  /** Every byte of it. */
  readonly text: string;
  /** The proxy ended the connection. */
  readonly closed: boolean;
}

export class RawClient implements Disposable {
  readonly #connection: Deno.TcpConn;
  #received = "";
  #ended = false;
  #pending: Promise<void> | null = null;

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
  }

  static async open(port: number, hostname = "127.0.0.1"): Promise<RawClient> {
    return new RawClient(await Deno.connect({ hostname, port }));
  }

  /** Latin-1 text or bytes. */
  async send(data: string | Uint8Array): Promise<void> {
    let rest = typeof data === "string" ? latin1(data) : data;
    while (rest.length > 0) rest = rest.subarray(await this.#connection.write(rest));
  }

  get closed(): boolean {
    return this.#ended;
  }

  get received(): string {
    return this.#received;
  }

  /** Reads until the condition holds, the connection ends, or the limit is over. @returns whether it holds. */
  async readUntil(holds: (text: string) => boolean, limitMs: number): Promise<boolean> {
    const endMs = performance.now() + limitMs;
    while (!holds(this.#received)) {
      const leftMs = endMs - performance.now();
      if (this.#ended || leftMs <= 0) return false;
      this.#pending ??= this.#readOnce();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const limit = new Promise<void>((resolve) => timer = setTimeout(resolve, leftMs));
      await Promise.race([this.#pending, limit]);
      clearTimeout(timer);
    }
    return true;
  }

  /** Reads that many whole answers. @throws Error when they do not come. */
  async answers(count: number, limitMs = 5_000): Promise<readonly RawAnswer[]> {
    const whole = () => parseAnswers(this.#received, this.#ended);
    if (!await this.readUntil(() => whole().length >= count, limitMs) && whole().length < count) {
      throw new Error(`Expected ${count} answers, got: ${JSON.stringify(this.#received.slice(0, 500))}`);
    }
    return whole();
  }

  /** Reads and forgets, so that a stream may run on. */
  async drop(bytes: number): Promise<void> {
    while (bytes > 0 && !this.#ended) {
      await (this.#pending ??= this.#readOnce());
      bytes -= this.#received.length;
      this.#received = "";
    }
  }

  close(): void {
    try {
      this.#connection.close();
    } catch {
      // Closed already.
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #readOnce(): Promise<void> {
    const buffer = new Uint8Array(READ_BYTES);
    const count = await this.#connection.read(buffer).catch(() => null);
    if (count === null) this.#ended = true;
    else this.#received += DECODER.decode(buffer.subarray(0, count));
    this.#pending = null;
  }
}

/**
 * Sends and reads what comes: until as many whole answers as expected are there and a moment more has passed, or the
 * connection ended.
 *
 * @param quietMs  how long is waited for an answer nobody expects.
 */
export async function exchange(
  port: number,
  data: string | Uint8Array,
  { expected = 1, limitMs = 3_000, quietMs = 30 } = {},
): Promise<Exchange> {
  using client = await RawClient.open(port);
  // A proxy that refuses early may close before it has read everything.
  await client.send(data).catch(() => {});
  const whole = (text: string) => parseAnswers(text, client.closed);
  await client.readUntil((text) => whole(text).length >= expected, limitMs);
  await client.readUntil(() => false, quietMs);
  return { answers: whole(client.received), text: client.received, closed: client.closed };
}

/** The whole answers at the start of the text; informational ones are left out. */
export function parseAnswers(text: string, ended: boolean): RawAnswer[] {
  const found: RawAnswer[] = [];
  for (let at = 0; at < text.length;) {
    const headEnd = text.indexOf("\r\n\r\n", at);
    if (headEnd < 0) break;
    const [statusLine, ...lines] = text.slice(at, headEnd).split("\r\n");
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(statusLine!)?.[1] ?? NaN);
    const headers = new Headers();
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    const bodyAt = headEnd + 4;
    const body = readBody(text, bodyAt, headers, status, ended);
    if (body === null) break;
    if (status >= 200) found.push({ status, headers, body: body.text });
    at = body.endAt;
  }
  return found;
}

function readBody(
  text: string,
  at: number,
  headers: Headers,
  status: number,
  ended: boolean,
): { readonly text: string; readonly endAt: number } | null {
  if (status < 200 || status === 204 || status === 304) return { text: "", endAt: at };
  if (headers.get("transfer-encoding")?.includes("chunked")) return readChunks(text, at);
  const length = headers.get("content-length");
  if (length === null) return ended ? { text: text.slice(at), endAt: text.length } : null;
  const endAt = at + Number(length);
  return endAt <= text.length ? { text: text.slice(at, endAt), endAt } : null;
}

function readChunks(text: string, start: number): { readonly text: string; readonly endAt: number } | null {
  let body = "";
  for (let at = start;;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd < 0) return null;
    const size = parseInt(text.slice(at, lineEnd), 16);
    const endAt = lineEnd + 2 + size + 2;
    if (Number.isNaN(size) || endAt > text.length) return null;
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    if (size === 0) return { text: body, endAt };
    at = endAt;
  }
}

function latin1(text: string): Uint8Array {
  const ascii = ENCODER.encode(text);
  if (ascii.length === text.length) return ascii;
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
