/** The vocabulary providers translate their answers into; the judging function lands with its table. */
import type { StatedTime } from "./outcome.ts";

/** What an upstream's answer says, whatever words and status it used. `code` is a safe word of ours. */
export type Signal =
  /** The request is at fault. `row`: 2 invalid, 3 context, 4 state or policy, 5 too large, 14 policy/unknown 403, 17 other 404. */
  | {
    readonly kind: "request_fault";
    readonly row: 2 | 3 | 4 | 5 | 14 | 17;
    readonly code: string;
    readonly state: "none" | "foreign_state" | "previous_response";
  }
  | { readonly kind: "unauthorized"; readonly code: string }
  | { readonly kind: "credential_dead"; readonly code: string }
  | { readonly kind: "account_pause"; readonly code: string; readonly untilMs: number }
  | { readonly kind: "credits"; readonly code: string }
  | { readonly kind: "model_unsupported"; readonly code: string }
  | {
    readonly kind: "limited";
    readonly shape: "rate" | "quota";
    readonly limiter: "account" | "model";
    readonly code: string;
    readonly stated: StatedTime | null;
  }
  /** A 429 with neither limit words nor limit headers: nobody's quota (ruling 2). */
  | { readonly kind: "throttle"; readonly code: string; readonly stated: StatedTime | null }
  /** Capacity of the provider; with a stated time on a 429 it is a deadline (row 24), else a strike. */
  | { readonly kind: "overloaded"; readonly code: string; readonly stated: StatedTime | null }
  | { readonly kind: "edge_block"; readonly code: string }
  | { readonly kind: "provider_reported"; readonly code: string }
  | { readonly kind: "transient"; readonly code: string; readonly stated: StatedTime | null };
