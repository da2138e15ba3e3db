import { assert, assertEquals } from "@std/assert";
import { isLocalLimitCode, isOutOfDescriptors, namesLocalLimit } from "../../lib/upstream/local_limit.ts";
import { fromFileUrl } from "../support/paths.ts";
import { rawServer } from "../support/rude_sockets.ts";

const texts = [
  { text: "client error (Connect): tcp open error: Too many open files (os error 24)", want: true },
  { text: "tcp connect error: Cannot assign requested address (os error 99)", want: true },
  { text: "tcp connect error: No buffer space available (os error 105)", want: true },
  { text: "tcp connect error: Connection refused (os error 111)", want: false },
  { text: "tcp connect error: No route to host (os error 113)", want: false },
  { text: "a page that says os error 24", want: false },
  { text: "", want: false },
] as const;
for (const { text, want } of texts) {
  Deno.test({
    name: `namesLocalLimit() is ${want} for: ${text}`,
    ignore: Deno.build.os !== "linux",
    fn: () => assertEquals(namesLocalLimit(text), want),
  });
}

Deno.test("isLocalLimitCode() knows the errors that are about this machine", () => {
  const codes = ["EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM", "ECONNREFUSED", "ETIMEDOUT", ""];
  assertEquals(codes.filter(isLocalLimitCode), codes.slice(0, 5));
  assert(!isOutOfDescriptors());
});

Deno.test({
  name: "a process without descriptors blames nobody for what it cannot connect to",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using server = await rawServer((socket) => {
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    });
    const script = fromFileUrl(new URL("../support/out_of_descriptors.ts", import.meta.url));
    const { stdout, stderr } = await new Deno.Command("sh", {
      args: [
        "-c",
        'ulimit -n 96 && exec "$@"',
        "sh",
        Deno.execPath(),
        "run",
        "-A",
        script,
        String(server.port),
      ],
      env: { NO_COLOR: "1" },
    }).output();
    const text = new TextDecoder().decode(stdout);
    assert(text !== "", new TextDecoder().decode(stderr));
    assertEquals(JSON.parse(text), {
      "none left, http by address": "local_limit",
      "none left, http by name": "local_limit",
      "none left, http by an unknown name": "local_limit",
      "none left, https": "local_limit",
      "none left, egress proxy": "local_limit",
      "none left, websocket by address": "local_limit",
      "none left, websocket by name": "local_limit",
      "none left, websocket over a proxy": "local_limit",
      "enough again": "answered",
    });
  },
});
