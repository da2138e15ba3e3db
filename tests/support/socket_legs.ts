/** Both legs of a bridge as plain objects: what was done to them is written down, what they say is told by the test. */
import type { UpstreamSocket } from "../../lib/ports.ts";
import type { ClientSocket } from "../../lib/proxy/client_socket.ts";

export class FakeClient implements ClientSocket {
  bufferedAmount = 0;
  binaryType: BinaryType = "arraybuffer";
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  readonly sent: (string | Uint8Array)[] = [];
  readonly closes: string[] = [];
  /** What stays in the queue of each frame: 0 for a quick client. */
  keeps = false;

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.sent.push(data);
    if (this.keeps) this.bufferedAmount += data.length;
  }

  close(code?: number, reason?: string): void {
    this.closes.push(`${code ?? "none"} ${reason ?? ""}`.trim());
  }

  opens(): void {
    this.onopen!(new Event("open"));
  }

  says(data: string | ArrayBuffer): void {
    this.onmessage!(new MessageEvent("message", { data }));
  }

  leaves(code: number, reason = ""): void {
    this.onclose!(new CloseEvent("close", { code, reason, wasClean: true }));
  }

  vanishes(): void {
    this.onerror!(new ErrorEvent("error", { message: "Unexpected EOF" }));
    this.onclose!(new CloseEvent("close"));
  }
}

type Handlers = Parameters<UpstreamSocket["listen"]>[0];

export class FakeUpstream implements UpstreamSocket {
  readonly headers = new Headers();
  readonly protocol = "";
  bufferedAmount = 0;
  readonly sent: (string | Uint8Array)[] = [];
  /** `ping`, `pause`, `resume`, `close 1000 bye`, `terminate`, in order. */
  readonly acts: string[] = [];
  handlers: Handlers | null = null;
  keeps = false;

  send(data: string | Uint8Array): void {
    this.sent.push(data);
    if (this.keeps) this.bufferedAmount += data.length;
  }

  ping(): void {
    this.acts.push("ping");
  }

  pause(): void {
    this.acts.push("pause");
  }

  resume(): void {
    this.acts.push("resume");
  }

  close(code: number, reason: string): void {
    this.acts.push(`close ${code} ${reason}`.trim());
  }

  terminate(): void {
    this.acts.push("terminate");
  }

  listen(handlers: Handlers): void {
    this.handlers = handlers;
  }

  says(data: string | Uint8Array): void {
    this.handlers!.frame(data);
  }

  leaves(code: number, reason = "", clean = true): void {
    this.handlers!.close(code, reason, clean);
  }
}
