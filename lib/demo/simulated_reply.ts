/** The shape of a simulated reply, and the plain answers everything else is made of. */
import type { Bytes } from "./http_wire.ts";
import { bytes, type Step, text } from "./simulated_steps.ts";

/** What a reply may look at: enough to answer in the caller's protocol. */
export interface Question {
  readonly method: string;
  readonly path: string;
  readonly websocket: boolean;
  /** The parsed JSON body, or null. */
  readonly json: Record<string, unknown> | null;
}

export type Encoding = "gzip" | "br" | "zstd" | "deflate" | "gzip, br";

export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly steps: Iterable<Step>;
  /** `length`: the body is measured first; `chunked`: sent step by step; `close`: raw until the connection ends. */
  readonly framing: "length" | "chunked" | "close";
  readonly encoding: Encoding | null;
  /** Overrides the `content-encoding` label: another word, or null for none. */
  readonly label?: string | null;
  /** Sends the body in pieces of this many bytes. */
  readonly pieces: { readonly bytes: number; readonly everyMs: number } | null;
}

export type Reply =
  /** Made when the call comes, in the protocol of that call. */
  | { readonly kind: "dynamic"; readonly make: (question: Question) => Reply }
  | Answer
  /** A WebSocket is accepted, then the steps run. */
  | {
    readonly kind: "accept";
    readonly headers: Readonly<Record<string, string>>;
    readonly protocol: string | null;
    readonly steps: Iterable<Step>;
  }
  /** The request is read, then the connection ends, is reset, or stays silent, without a head. */
  | { readonly kind: "no_head"; readonly end: "fin" | "rst" | "hold"; readonly partialHead: string };

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return raw(status, JSON.stringify(value), { "content-type": "application/json", ...headers });
}

/** Any status with any body: HTML block pages, plain text, nothing. */
export function raw(status: number, body: string | Bytes, headers: Record<string, string> = {}): Answer {
  const content = typeof body === "string" ? text(body) : bytes(body);
  return { ...ANSWER, status, headers, steps: [content], framing: "length" };
}

/** 200 `text/event-stream` with these steps; ends in order unless a step ends it otherwise. */
export function stream(steps: Iterable<Step>, headers: Record<string, string> = {}): Answer {
  return {
    ...ANSWER,
    headers: { "content-type": "text/event-stream", ...headers },
    steps,
    framing: "chunked",
  };
}

/** Model list in Codex's form (`models[].slug`) and in OpenAI's (`data[].id`) at once. */
export function models(ids: readonly string[], headers: Record<string, string> = {}): Answer {
  const value = {
    object: "list",
    models: ids.map((slug) => ({ slug, display_name: slug, supported_in_api: true })),
    data: ids.map((id) => ({ id, object: "model", type: "model", created: 0, owned_by: "simulated" })),
  };
  return json(value, 200, headers);
}

export interface UsageWords {
  readonly usedPercent?: number;
  readonly resetAtSeconds?: number;
  readonly windowSeconds?: number;
  readonly allowed?: boolean;
  readonly limitReached?: boolean;
}

/** A `wham/usage` page with one window. */
export function usage(words: UsageWords = {}): Answer {
  const { usedPercent = 0, resetAtSeconds = 0, windowSeconds = 18_000 } = words;
  const { allowed = true, limitReached = false } = words;
  return json({
    plan_type: "plus",
    rate_limit: {
      allowed,
      limit_reached: limitReached,
      primary_window: {
        used_percent: usedPercent,
        limit_window_seconds: windowSeconds,
        reset_at: resetAtSeconds,
      },
      secondary_window: null,
    },
    credits: { has_credits: false, unlimited: false, balance: "0" },
  });
}

/** What a token endpoint gives; absent fields are absent in the answer. */
export function tokens(fields: {
  readonly access_token?: string;
  readonly refresh_token?: string;
  readonly id_token?: string;
  readonly expires_in?: number;
}): Answer {
  return json(fields);
}

const ANSWER: Answer = {
  kind: "answer",
  status: 200,
  headers: {},
  steps: [],
  framing: "length",
  encoding: null,
  pieces: null,
};
