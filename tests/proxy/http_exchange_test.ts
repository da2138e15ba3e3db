/** A request's body as the listener reads it, from a message made here. */
import { assertEquals, assertRejects } from "@std/assert";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { BodyCut, HttpRequest } from "../../lib/proxy/http_exchange.ts";

const LENGTH = 6;

function incoming(): { readonly message: Readable; readonly request: HttpRequest } {
  const message = new Readable({ read() {} });
  const fields = { method: "POST", url: "/", rawHeaders: ["content-length", String(LENGTH)] };
  return {
    message,
    request: new HttpRequest(Object.assign(message, fields) as unknown as IncomingMessage, null),
  };
}

const cases: readonly { name: string; pieces: number[][]; want: number[] }[] = [
  { name: "in one piece", pieces: [[1, 2, 3, 4, 5, 6]], want: [1, 2, 3, 4, 5, 6] },
  { name: "in several", pieces: [[1], [2, 3], [4, 5, 6]], want: [1, 2, 3, 4, 5, 6] },
  { name: "of less than was declared", pieces: [[1, 2]], want: [1, 2, 0, 0, 0, 0] },
  { name: "of more than was declared", pieces: [[1, 2, 3, 4], [5, 6, 7], [8]], want: [1, 2, 3, 4, 0, 0] },
];
for (const { name, pieces, want } of cases) {
  Deno.test(`whole() fills with a body ${name}, and says how much came`, async () => {
    const { message, request } = incoming();
    const into = new Uint8Array(LENGTH);
    const told: number[] = [];
    const whole = request.body!.whole(into, { count: (bytes) => void told.push(bytes) });
    for (const piece of pieces) message.push(new Uint8Array(piece));
    message.push(null);
    assertEquals(await whole, pieces.flat().length);
    assertEquals([...into], want);
    assertEquals(told, pieces.map(({ length }) => length));
  });
}

Deno.test("whole() fails when the client goes before the end, and puts nothing more into its memory", async () => {
  const { message, request } = incoming();
  const into = new Uint8Array(LENGTH);
  const whole = request.body!.whole(into, { count: () => {} });
  message.push(new Uint8Array([1, 2]));
  await new Promise((resolve) => setTimeout(resolve));
  message.destroy();
  await assertRejects(() => whole, BodyCut);
  message.emit("data", new Uint8Array([3, 4]));
  assertEquals([...into], [1, 2, 0, 0, 0, 0]);
});
