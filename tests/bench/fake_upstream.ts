/**
 * The upstream of the benchmark: answers from memory over raw sockets, so that it is never what is measured.
 *
 * What it answers depends on the request alone. `…/responses` streams events for as long as the client stays, for the
 * model `at-once-1000` beginning with that many bytes of them, for `quiet-1000` with nothing after these; any other
 * path gives a JSON document, of the size that the model names: `bench`, `answer-1048576`. The first request for a
 * model called `refused-…` is refused as a model the account does not have, the second one is served; with
 * `refused-20ms-…` each takes that long.
 */
const PORT = Number(Deno.args[0]);
/** Between two chunks of one stream: 50 a second. */
const CHUNK_EVERY_MS = 20;
const TICK_MS = 1;
/** Bytes that come at once, and whether more follow. */
const BEGINNING = /^(at-once|quiet)-(\d+)$/;
/** How long an answer takes. */
const DELAY = /^refused-(\d+)ms-/;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("latin1");
const READ_BYTES = 65_536;
/** The head and the first members of the body lie in here. */
const LOOK_BYTES = 4_096;

const STREAM_HEAD = ENCODER.encode(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
);
const REFUSAL = answer(
  "400 Bad Request",
  JSON.stringify({
    detail: "The 'bench' model is not supported when using Codex with a ChatGPT account.",
  }),
);

const answers = new Map<string, Uint8Array>();
const refusedOnce = new Set<string>();
/** Streams by the millisecond of the 20 in which their chunks are due. */
const wheel: Set<Stream>[] = Array.from({ length: CHUNK_EVERY_MS / TICK_MS }, () => new Set());
let streamCount = 0;
let wheelAt = 0;

interface Stream {
  readonly connection: Deno.TcpConn;
  dueChunks: number;
  writing: boolean;
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: PORT });
setInterval(turnWheel, TICK_MS);
for await (const connection of listener) serve(connection).catch(() => close(connection));

async function serve(connection: Deno.TcpConn): Promise<void> {
  connection.setNoDelay(true);
  const buffer = new Uint8Array(READ_BYTES);
  for (;;) {
    let filled = 0;
    let wanted = -1;
    let look = "";
    do {
      const count = await connection.read(wanted < 0 ? buffer.subarray(filled) : buffer);
      if (count === null) return close(connection);
      filled += count;
      if (wanted >= 0) continue;
      look = DECODER.decode(buffer.subarray(0, Math.min(filled, LOOK_BYTES)));
      const headEnd = look.indexOf("\r\n\r\n");
      if (headEnd >= 0) wanted = headEnd + 4 + Number(/\ncontent-length: *(\d+)/i.exec(look)?.[1] ?? 0);
    } while (wanted < 0 || filled < wanted);
    const model = /"model":"([^"]+)"/.exec(look)?.[1] ?? "";
    if (/^POST [^ ]*\/responses /.test(look)) return await stream(connection, model);
    if (look.startsWith("POST /end ")) {
      await Promise.allSettled(wheel.flatMap((slot) => [...slot]).map(complete));
    }
    const delay = DELAY.exec(model);
    if (delay !== null) await new Promise((resolve) => setTimeout(resolve, Number(delay[1])));
    await writeAll(connection, jsonAnswer(model));
  }
}

function jsonAnswer(model: string): Uint8Array {
  if (model.startsWith("refused-") && !refusedOnce.delete(model)) {
    refusedOnce.add(model);
    return REFUSAL;
  }
  const bytes = model.startsWith("answer-") ? Number(model.slice("answer-".length)) : 1_024;
  const key = String(bytes);
  let made = answers.get(key);
  if (made === undefined) answers.set(key, made = answer("200 OK", document(bytes)));
  return made;
}

/** A Responses document of about that many bytes. */
function document(bytes: number): string {
  const text = "All work and no play makes a dull benchmark. ".repeat(Math.ceil(bytes / 45)).slice(
    0,
    bytes - 330,
  );
  return JSON.stringify({
    id: "resp_bench",
    object: "response",
    status: "completed",
    model: "bench",
    output: [{
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text, annotations: [] }],
    }],
    usage: {
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 1024 },
      output_tokens: 200,
      output_tokens_details: { reasoning_tokens: 64 },
    },
  });
}

function answer(status: string, body: string): Uint8Array {
  return ENCODER.encode(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n` +
      `x-codex-plan-type: plus\r\nx-codex-primary-used-percent: 12\r\nx-codex-primary-window-minutes: 300\r\n` +
      `x-codex-primary-reset-after-seconds: 9000\r\nx-request-id: 4fd1bb\r\n\r\n${body}`,
  );
}

async function stream(connection: Deno.TcpConn, model: string): Promise<void> {
  const slot = wheel[streamCount++ % wheel.length]!;
  const own: Stream = { connection, dueChunks: 0, writing: false };
  try {
    await connection.write(STREAM_HEAD);
    await connection.write(
      chunk('event: response.created\ndata: {"type":"response.created","response":{"id":"resp_bench"}}\n\n'),
    );
    const beginning = BEGINNING.exec(model);
    if (beginning !== null) {
      const event = deltaEvent();
      await writeAll(connection, chunk(event.repeat(Math.ceil(Number(beginning[2]) / event.length))));
    }
    if (beginning?.[1] !== "quiet") slot.add(own);
    // A client says nothing more until it leaves.
    while (await connection.read(new Uint8Array(64)) !== null);
  } finally {
    slot.delete(own);
    close(connection);
  }
}

/** Catches up where the event loop came late; what a slow reader cannot take now it gets as one piece later. */
function turnWheel(): void {
  const target = Math.floor(performance.now() / TICK_MS);
  if (wheelAt === 0) wheelAt = target;
  for (; wheelAt < target; wheelAt++) {
    for (const due of wheel[wheelAt % wheel.length]!) {
      due.dueChunks++;
      if (!due.writing) void writeDue(due);
    }
  }
}

async function writeDue(due: Stream): Promise<void> {
  due.writing = true;
  try {
    while (due.dueChunks > 0) {
      const event = deltaEvent();
      const count = due.dueChunks;
      due.dueChunks = 0;
      await writeAll(due.connection, count === 1 ? chunk(event) : chunk(event.repeat(count)));
    }
  } catch {
    due.dueChunks = -Infinity;
  }
  due.writing = false;
}

/** The terminal and the end of the body, after whatever is being written. */
async function complete(stream: Stream): Promise<void> {
  for (const slot of wheel) slot.delete(stream);
  while (stream.writing) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  const response = { id: "resp_bench", status: "completed", output: [] };
  const data = JSON.stringify({ type: "response.completed", response });
  await writeAll(stream.connection, chunk(`event: response.completed\ndata: ${data}\n\n`));
  await writeAll(stream.connection, ENCODER.encode("0\r\n\r\n"));
  close(stream.connection);
}

/** Says when it was made, µs. */
function deltaEvent(): string {
  const now = Math.round((performance.timeOrigin + performance.now()) * 1_000);
  return `event: response.output_text.delta\ndata: {"type":"response.output_text.delta",` +
    `"item_id":"msg_bench","output_index":0,"content_index":0,"delta":"@${now} and then "}\n\n`;
}

function chunk(text: string): Uint8Array {
  return ENCODER.encode(`${text.length.toString(16)}\r\n${text}\r\n`);
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(at === 0 ? bytes : bytes.subarray(at));
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Closed already.
  }
}
