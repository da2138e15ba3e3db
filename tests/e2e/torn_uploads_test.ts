/** Large bodies whose upload breaks off: the next account gets all of it, and its answer reaches the client. */
import { assertEquals } from "@std/assert";
import type { Socket } from "node:net";
import { startRig } from "../support/rig.ts";
import { rawServer } from "../support/rude_sockets.ts";

const TEXT = "a fair question ".repeat(8 * 65_536);
/** As it is sent on: nothing of it has to be changed. */
const BODY = JSON.stringify({
  model: "m1",
  instructions: "Be brief.",
  input: [{ type: "message", role: "user", content: [{ type: "input_text", text: TEXT }] }],
});
const ANSWER = JSON.stringify({ id: "resp_1", object: "response", status: "completed", output: [] });
const REFUSAL = JSON.stringify({
  detail: "The 'm1' model is not supported when using Codex with a ChatGPT account.",
});

function respond(socket: Socket, status: string, body: string): void {
  socket.write(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** What the first account's upstream does with the beginning of the upload. */
const breaks: readonly { name: string; meet: (socket: Socket) => void }[] = [
  { name: "is reset", meet: (socket) => socket.resetAndDestroy() },
  {
    name: "is refused before it is over",
    meet(socket) {
      socket.pause();
      respond(socket, "400 Bad Request", REFUSAL);
      // Once that is out: with most of the upload unread this resets the connection.
      socket.destroySoon();
    },
  },
];

for (const { name, meet } of breaks) {
  Deno.test(`a large upload that ${name} goes out whole to the next account, whose answer comes back`, async () => {
    let met = false;
    const received: string[] = [];
    await using upstream = await rawServer((socket) => {
      const pieces: string[] = [];
      socket.setEncoding("latin1");
      socket.on("data", (piece) => {
        if (!met) {
          met = true;
          meet(socket);
        }
        pieces.push(String(piece));
        const text = pieces.length === 1 || String(piece).endsWith("}") ? pieces.join("") : "";
        const [head, body = ""] = text.split("\r\n\r\n");
        if (body.length < Number(/content-length: (\d+)/i.exec(head!)?.[1] ?? Infinity)) return;
        received.push(body);
        respond(socket, "200 OK", ANSWER);
      });
    });
    await using rig = await startRig({
      accounts: ["A", "B"],
      config: { "codex-base-url": `http://127.0.0.1:${upstream.port}/backend-api/codex` },
      checkScript: false,
    });
    const response = await rig.call("/v1/responses/compact", null, { body: BODY });
    assertEquals([response.status, await response.text()], [200, ANSWER]);
    assertEquals(received.length, 1);
    assertEquals(received[0] === BODY, true);
  });
}

Deno.test("an answer to an upload that nobody takes comes back all the same", async () => {
  await using upstream = await rawServer((socket) => {
    socket.once("data", () => {
      socket.pause();
      respond(socket, "200 OK", ANSWER);
    });
  });
  await using rig = await startRig({
    accounts: ["A"],
    config: { "codex-base-url": `http://127.0.0.1:${upstream.port}/backend-api/codex` },
    checkScript: false,
  });
  for (let turn = 0; turn < 2; turn++) {
    const response = await rig.call("/v1/responses/compact", null, { body: BODY });
    assertEquals([response.status, await response.text()], [200, ANSWER]);
  }
});
