/**
 * Everything the shell reaches outside the process for, as interfaces only.
 *
 * Real ones live in `runtime/`, `upstream/` and `store/`; tests and the simulation bring their own.
 */
import type { TokenSet } from "./core/credential.ts";
import type { AttemptId } from "./core/domain.ts";
import type { Evidence } from "./core/evidence.ts";
import type { HeaderList } from "./core/header_fields.ts";

/** Time. `schedule` is coarse in the real runtime (one wheel, not a timer a request) and never early. */
export interface Clock {
  /** UTC epoch ms. Never goes back, also when the wall clock does. */
  now(): number;
  /** Calls back once at or after `atMs`; `cancel()` is cheap and may be called twice. */
  schedule(atMs: number, callback: () => void): Scheduled;
  /** Resolves `true` at or after `untilMs`, `false` as soon as the signal aborts. Leaves nothing behind. */
  sleepUntil(untilMs: number, signal: AbortSignal | null): Promise<boolean>;
}

export interface Scheduled {
  cancel(): void;
}

/** Chance. Never used inside decisions that must not depend on draw order; those hash a seed. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

export interface Ids {
  /** `req_` + 24 URL-safe characters. */
  requestId(): string;
  /** `bytes` random bytes, base64url. */
  secret(bytes: number): string;
}

export interface Digest {
  /** Lower-case hex. */
  sha256(data: string | Uint8Array): string;
  /** Constant-time comparison of two hex digests of equal length. */
  equal(a: string, b: string): boolean;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<
  Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>
>;

/** Structured, batched, redacting. `event` is a fixed snake_case word; variable parts go into fields. */
export interface Log {
  write(level: LogLevel, event: string, fields?: LogFields): void;
}

// ---------------------------------------------------------------- network out

export interface UpstreamRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: HeaderList;
  /** Null = no body. The pieces of a stream are used up. */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Known length of a streamed body, or null (then chunked). Ignored for bytes. */
  readonly bodyLength: number | null;
  /** Never use a pooled connection. */
  readonly fresh: boolean;
  readonly connectTimeoutMs: number;
  /** Time to a complete response head; 0 = no limit. What a streamed body's sender takes does not count. */
  readonly firstByteTimeoutMs: number;
  /** Whatever the sender takes: a lease ends when it ends. */
  readonly firstByteIsFixed?: boolean;
  readonly attempt: AttemptId;
}

/** Bytes as they come, for one reader. */
export interface ByteSource {
  /** The next bytes, at least one; `null` at the end. One call at a time. Throws when what was to come is lost. */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Lets go of what is left. Safe to call twice, and after the end. */
  cancel(): void;
}

/** The body of an answer: bytes as they come, for one reader. */
export interface AnswerBody extends ByteSource, AsyncIterable<Uint8Array<ArrayBuffer>> {
  /**
   * The next bytes, at least one, in memory of their own; `null` at the end. One call at a time. What it throws is
   * for `Upstream.bodyFailure`.
   *
   * @param into  when given, the bytes are put there, and a view of it is returned.
   */
  read(into?: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Lets go of what is left; a read under way gives `null`. Safe to call twice, and after the end. */
  cancel(): void;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: HeaderList;
  /** Already decoded: `content-encoding` and `content-length` are removed from `headers` when they no longer hold. */
  readonly body: AnswerBody | null;
  /** Declared length of the body when it still holds, else null. */
  readonly contentLength: number | null;
}

export type UpstreamResult =
  | { readonly ok: true; readonly response: UpstreamResponse }
  | { readonly ok: false; readonly evidence: Evidence };

export interface Upstream {
  /**
   * One send, exactly one request on the wire. Never throws; an abort gives `client_cancelled`, also while the body
   * is read. The signal belongs to this exchange: it must not outlive it by much, or every send leaves a listener on it.
   * Reading `response.body` may throw: `readBodyFailure` in `upstream/transport_error.ts` turns that into evidence.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResult>;
  /** Nobody will send or read this body any more: the memory of a large one goes back once no send uses it. */
  forget(body: Uint8Array<ArrayBuffer>): void;
  /** What the error thrown by a body read means. */
  bodyFailure(error: unknown): Evidence;
  /** The first 64 KiB of a refusal's body, for at most a few seconds; the rest is let go. Never throws. */
  readErrorBody(response: Pick<UpstreamResponse, "body">): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * For whoever has read a body whole: unpacks gzip or zstd that came without a label, up to `limitBytes`; everything
   * else is given back as it is.
   */
  undoMissingLabel(whole: Uint8Array<ArrayBuffer>, limitBytes: number): Uint8Array<ArrayBuffer>;
  close(): void;
}

export interface DialRequest {
  readonly url: string;
  readonly headers: HeaderList;
  readonly protocols: readonly string[];
  readonly connectTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly maxPayloadBytes: number;
  readonly attempt: AttemptId;
}

/** An open upstream WebSocket. Frames that arrive before `onFrame` is set are kept in order. */
export interface UpstreamSocket {
  readonly headers: HeaderList;
  readonly protocol: string;
  readonly bufferedAmount: number;
  send(data: string | Uint8Array): void;
  ping(data?: Uint8Array): void;
  pause(): void;
  resume(): void;
  close(code: number, reason: string): void;
  /** Drops the connection without a closing handshake. */
  terminate(): void;
  listen(handlers: {
    frame(data: string | Uint8Array): void;
    ping(data: Uint8Array): void;
    pong(data: Uint8Array): void;
    drain(): void;
    close(code: number, reason: string, clean: boolean): void;
  }): void;
}

export type DialResult =
  | { readonly ok: true; readonly socket: UpstreamSocket }
  /** A refused handshake is an ordinary answer: status, headers, body (at most 64 KiB). */
  | { readonly ok: false; readonly status: number; readonly headers: HeaderList; readonly body: Uint8Array }
  | { readonly ok: false; readonly status: null; readonly evidence: Evidence };

export interface Dialer {
  dial(request: DialRequest, signal: AbortSignal): Promise<DialResult>;
}

// ---------------------------------------------------------------- usage pages

export interface UsageCall {
  readonly url: string;
  /** With the account's credential. */
  readonly headers: HeaderList;
}

export type UsageAnswer =
  /** The parsed body of a 200. */
  | { readonly ok: true; readonly json: unknown }
  | {
    readonly ok: false;
    /**
     * A safe word of ours: `cancelled`, `refused` (an answer other than 200), `not_json`, or what stopped the call
     * (`dns`, `first_byte_timeout` …).
     */
    readonly reason: string;
    /** Status of the refusal, or null. */
    readonly status: number | null;
    /** When the page may be asked again, UTC epoch ms; null where nothing was said. */
    readonly retryAtMs: number | null;
  };

export interface UsageClient {
  /** Never throws. */
  read(call: UsageCall, signal: AbortSignal): Promise<UsageAnswer>;
}

// ---------------------------------------------------------------- credentials

export type { TokenSet };

export type RefreshResult =
  | { readonly kind: "refreshed"; readonly tokens: Partial<TokenSet> & { readonly accessToken: string } }
  | { readonly kind: "dead"; readonly reason: "invalid_grant" | "credential_invalid"; readonly code: string }
  /** Not permanent: network, 408, 429, 5xx, an unreadable 400, anything that is not the issuer's own word. */
  | {
    readonly kind: "retryable";
    readonly code: string;
    readonly retryAtMs: number | null;
    /** The request may have reached the issuer. */
    readonly sent: boolean;
    /** The same refresh token may be sent again at once: it never left, or was answered with 408, 429 or 5xx. */
    readonly repeatable: boolean;
    /** An answer without access token may still have replaced the refresh token; that one must not be lost. */
    readonly refreshToken: string | null;
  };

export interface RefreshCall {
  readonly kind: "codex" | "anthropic";
  readonly url: string;
  readonly refreshToken: string;
  readonly nowMs: number;
}

/** One call to a token endpoint; no retry inside. */
export interface TokenIssuer {
  refresh(call: RefreshCall, signal: AbortSignal): Promise<RefreshResult>;
}

/** One credential file as seen at one moment; its content is read apart. */
export interface CredentialFileState {
  /** Absolute, as listed or configured. */
  readonly path: string;
  /** Changes whenever the content may have changed; only ever compared. */
  readonly version: string;
  readonly modifiedAtMs: number;
  /** False where a symlink leads out of the directory: read, never written. */
  readonly writable: boolean;
}

export interface CredentialListing {
  readonly files: readonly CredentialFileState[];
  /** True when the directory holds more than we are willing to look at. */
  readonly truncated: boolean;
}

export type CredentialRead =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" | "too_large" | "unreadable" };

/** Credential files on disk. They belong to other programs too: everything is checked again just before a write. */
export interface CredentialFiles {
  /**
   * The `*.json` files below a directory, sorted by path, without dot files, `sessions`, `logs` and archived ones.
   * A directory that does not exist is empty; `null` when it cannot be read right now.
   */
  list(directory: string): Promise<CredentialListing | null>;
  /** One file named in the configuration; symlinks are followed. `null` when there is none. */
  look(path: string): Promise<CredentialFileState | null>;
  read(path: string): Promise<CredentialRead>;
  /**
   * Changes a file, whole or not at all: mode 0600, on disk when it returns. From the moment the new text is made,
   * what a crash interrupts can be had back by `recover`.
   *
   * @param change  makes the new text of the present one; asked again when somebody else wrote meanwhile. `null`:
   * leave the file as it is.
   * @throws StoreFailure
   */
  update(path: string, change: (text: string) => string | null): Promise<"replaced" | "kept" | "missing">;
  /**
   * Finds out whether the file could be replaced now, for a caller about to ask for what only this file can keep.
   * Changes nothing.
   * @throws StoreFailure when the disk is full or fails
   */
  tryRoom(path: string): Promise<"ready" | "read_only" | "missing">;
  /**
   * Completes or drops a write that a crash interrupted.
   * @returns true when the file was completed.
   * @throws StoreFailure
   */
  recover(path: string): Promise<boolean>;
  /** Calls back soon after something changed below one of the paths. A hint only: callers look again by themselves. */
  watch(paths: readonly string[], changed: () => void): { close(): void };
}

/** How an account authenticates at its provider. */
export type Credential =
  | { readonly kind: "api_key"; readonly apiKey: string }
  | {
    readonly kind: "oauth";
    readonly tokens: TokenSet;
    /** Value of `ChatGPT-Account-Id`, or null. */
    readonly accountHeader: string | null;
  };

// ---------------------------------------------------------------- computation the runtime lends

export type InflateResult =
  | { readonly ok: true; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly ok: false; readonly problem: "unknown_coding" | "corrupt" | "too_large" };

export interface Inflate {
  /** Undoes the codings of a `Content-Encoding` value, last first; holds at most `limitBytes`. */
  decode(bytes: Uint8Array<ArrayBuffer>, contentEncoding: string, limitBytes: number): Promise<InflateResult>;
}

// ---------------------------------------------------------------- stores

export { StoreConflict, StoreFailure } from "./store_ports.ts";
export type {
  AccountStore,
  AffinityStore,
  BindingRow,
  ManagedUser,
  PoolStore,
  UsageCount,
  UsageKey,
  UsageQuery,
} from "./store_ports.ts";
