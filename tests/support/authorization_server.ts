/**
 * An authorization server that does what its script says and checks what it is told (PKCE, redirect, client).
 *
 * Speaks the dialects of wire-facts 4.5 and 6.8; on 127.0.0.1 and a port of its own.
 */
import { createHash } from "node:crypto";

export interface ScriptedAnswer {
  readonly status: number;
  readonly json: unknown;
}

export interface Seen {
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly contentType: string;
}

export class AuthorizationServer implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly seen: Seen[] = [];
  /** Answers of a path, used in order; the last one stays. */
  readonly #scripts = new Map<string, ScriptedAnswer[]>();

  constructor() {
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  script(path: string, ...answers: readonly ScriptedAnswer[]): this {
    this.#scripts.set(path, [...answers]);
    return this;
  }

  /** Calls of one path. */
  calls(path: string): readonly Seen[] {
    return this.seen.filter((one) => one.path === path);
  }

  async #answer(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname;
    const text = await request.text();
    const contentType = request.headers.get("content-type") ?? "";
    const fields = contentType.includes("json")
      ? JSON.parse(text)
      : Object.fromEntries(new URLSearchParams(text));
    this.seen.push({ path, fields, contentType });
    const script = this.#scripts.get(path) ?? [];
    const answer = script.length > 1
      ? script.shift()!
      : script[0] ?? { status: 599, json: { error: "unscripted" } };
    return Response.json(answer.json, { status: answer.status });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** RFC 7636 section 4.2. */
export function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}
