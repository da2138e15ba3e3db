/** The request a load sends, as Codex sends it: made once, with the numbers in it written over for each use. */
export const BENCH_KEY = "SENT-key-bench-1";

const ENCODER = new TextEncoder();
const DIGITS = 8;
const PLACE = "#".repeat(DIGITS);

export interface RequestShape {
  readonly path: string;
  /** Model name; `#` eight times is replaced by the number of the request. */
  readonly model: string;
  readonly stream: boolean;
  /** Length of the text in `input`. */
  readonly inputBytes: number;
  readonly port: number;
}

/** @returns a function that gives the request's bytes for a session and a number, valid until it is called again. */
export function requestMaker(shape: RequestShape): (session: number, number: number) => Uint8Array {
  const session = `session-${"$".repeat(DIGITS)}`;
  const body = JSON.stringify({
    model: shape.model,
    ...(shape.stream ? { stream: true, store: false } : {}),
    instructions: "Be brief.",
    prompt_cache_key: session,
    input: [{
      type: "message",
      role: "user",
      content: [{
        type: "input_text",
        text: "What is a fair benchmark? ".repeat(shape.inputBytes / 26 + 1).slice(0, shape.inputBytes),
      }],
    }],
  });
  const head = `POST ${shape.path} HTTP/1.1\r\nhost: 127.0.0.1:${shape.port}\r\n` +
    `authorization: Bearer ${BENCH_KEY}\r\ncontent-type: application/json\r\n` +
    `accept: ${shape.stream ? "text/event-stream" : "application/json"}\r\n` +
    `user-agent: codex_cli_rs/0.171.0 (Linux 6.8.0; x86_64) unknown\r\noriginator: codex_cli_rs\r\n` +
    `session_id: ${session}\r\nx-codex-beta-features: none\r\ncontent-length: ${body.length}\r\n\r\n`;
  const bytes = ENCODER.encode(head + body);
  const text = head + body.slice(0, 512);
  const sessions = placesOf(text, "$".repeat(DIGITS));
  const numbers = placesOf(text, PLACE);
  return (sessionNumber, number) => {
    for (const at of sessions) writeDigits(bytes, at, sessionNumber);
    for (const at of numbers) writeDigits(bytes, at, number);
    return bytes;
  };
}

function placesOf(text: string, mark: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) places.push(at);
  return places;
}

function writeDigits(bytes: Uint8Array, at: number, value: number): void {
  for (let place = DIGITS - 1, rest = value; place >= 0; place--, rest = Math.floor(rest / 10)) {
    bytes[at + place] = 0x30 + rest % 10;
  }
}
