/**
 * Waits on this machine for the browser to come back from a login page (RFC 8252 section 7.3).
 */
import type { Clock, Digest } from "../ports.ts";

export type Callback =
  | { readonly kind: "code"; readonly code: string }
  /** The login page sent the browser back without a code. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "timeout" };

export interface CallbackServer extends AsyncDisposable {
  readonly port: number;
  /** The first answer to our own question; anything else that knocks is told off and waited past. */
  readonly arrived: Promise<Callback>;
}

export interface CallbackOptions {
  readonly port: number;
  readonly path: string;
  readonly state: string;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly limitMs: number;
}

/** @throws Deno.errors.AddrInUse and the like */
export function startCallbackServer(options: CallbackOptions): CallbackServer {
  const { clock, digest, limitMs } = options;
  const arrived = Promise.withResolvers<Callback>();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: options.port, onListen: () => {} },
    (request) => {
      const url = new URL(request.url);
      if (request.method !== "GET" || url.pathname !== options.path) {
        return page(404, "There is nothing here");
      }
      const state = url.searchParams.get("state") ?? "";
      if (!digest.equal(digest.sha256(state), digest.sha256(options.state))) {
        return page(400, "This is the answer to another login. Please start again.");
      }
      const code = url.searchParams.get("code") ?? "";
      if (code === "") {
        const word = url.searchParams.get("error") ?? "";
        arrived.resolve({ kind: "refused", reason: /^[a-z_]{3,48}$/.test(word) ? word : "no_code" });
        return page(400, "The login was refused. You can close this window.");
      }
      arrived.resolve({ kind: "code", code });
      return page(200, "Signed in. You can close this window.");
    },
  );
  const limit = clock.schedule(clock.now() + limitMs, () => arrived.resolve({ kind: "timeout" }));
  return {
    port: server.addr.port,
    arrived: arrived.promise,
    async [Symbol.asyncDispose]() {
      limit.cancel();
      await server.shutdown();
    },
  };
}

/** Our own fixed sentences, so there is nothing to escape. */
function page(status: number, sentence: string): Response {
  return new Response(`<!doctype html><meta charset="utf-8"><title>Holdfast</title><p>${sentence}</p>`, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'",
      "referrer-policy": "no-referrer",
      // The connection must not keep the program from ending.
      "connection": "close",
    },
  });
}
