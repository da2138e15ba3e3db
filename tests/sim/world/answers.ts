/** How one send goes: what arrives when, and what it means once it has ended. */
import { classify, type Signal } from "../../../lib/core/classify.ts";
import type { ModelId } from "../../../lib/core/domain.ts";
import type { Evidence, NoResponseCause } from "../../../lib/core/evidence.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import { answer, EMPTY_BODY, facts, html, inStream } from "../../support/evidence.ts";
import type { Dice } from "../dice.ts";
import type { AccountTruth, ProviderTruth, World } from "./truth.ts";

/** One send as the upstream sees it. */
export interface Sending {
  readonly account: string;
  readonly provider: string;
  readonly model: ModelId | null;
  readonly fingerprint: string;
  readonly session: string | null;
  readonly replayable: boolean;
  /** Foreign sealed state was removed. */
  readonly stripped: boolean;
  readonly fresh: boolean;
}

/** Delays since the launch; null = never comes. */
export interface Playback {
  readonly headMs: number | null;
  readonly outputMs: number | null;
  readonly endMs: number;
  readonly label: string;
  /** Judged when it has ended. */
  readonly judge: (nowMs: number) => Outcome;
}

/** Never answers: somebody else's limit has to end it. */
const FOREVER_MS = 86_400_000;

export function play(world: World, sending: Sending, dice: Dice, nowMs: number): Playback {
  const latencyMs = dice.span(20, !world.isSwift && dice.chance(0.05) ? 60_000 : 3_000);
  if (world.isCutOff) {
    return lost(dice.pick(["refused", "dns", "connect_timeout"]), false, latencyMs, "cut off");
  }
  const provider = world.provider(sending.provider);
  const troubled = provider !== "ok" && dice.chance(0.9)
    ? byProvider(provider, dice, latencyMs, sending)
    : null;
  if (troubled !== null) return troubled;
  const refused = byAccount(world, sending, dice, latencyMs, nowMs);
  if (refused !== null) return refused;
  const sealed = sending.session === null ? undefined : world.sealedBy.get(sending.session);
  if (sealed !== undefined && sealed !== sending.account && !sending.stripped && dice.chance(0.5)) {
    return failed(
      latencyMs,
      "foreign state",
      answer(400, facts({ code: "invalid_encrypted_content" })),
      sending,
    );
  }
  if (dice.chance(world.noise)) return byNoise(world, dice, latencyMs, sending);
  if (sending.session !== null) world.sealedBy.set(sending.session, sending.account);
  return served(dice, latencyMs, world.isSwift ? 1_000 : 4_000);
}

function served(dice: Dice, latencyMs: number, slowestMs: number): Playback {
  const outputMs = latencyMs + dice.span(5, slowestMs);
  const evidence: Evidence = { kind: "success" };
  return {
    headMs: latencyMs,
    outputMs,
    endMs: outputMs + dice.span(5, 30_000),
    label: "success",
    judge: (nowMs) => classify(evidence, null, { nowMs }),
  };
}

function byProvider(truth: ProviderTruth, dice: Dice, latencyMs: number, sending: Sending): Playback {
  switch (truth) {
    case "unreachable":
      return lost(dice.pick(NO_RESPONSE), false, latencyMs, truth);
    case "silent":
      return lost("first_byte_timeout", false, FOREVER_MS, truth);
    case "failing":
      return failed(latencyMs, truth, answer(dice.pick([500, 502, 504, 408])), sending);
    case "busy":
      return failed(
        latencyMs,
        truth,
        answer(503, facts(), { "retry-after": String(dice.int(1, 180)) }),
        sending,
      );
    case "overloaded":
      if (dice.chance(0.3)) {
        // Capacity with a time: a deadline and a strike (row 24).
        const after = { "retry-after": String(dice.int(1, 120)) };
        return failed(latencyMs, truth, answer(429, facts({ code: "server_is_overloaded" }), after), sending);
      }
      return dice.chance(0.5)
        ? failed(latencyMs, truth, answer(529, facts({ type: "overloaded_error" })), sending)
        : failedInStream(latencyMs, truth, inStream(facts({ code: "server_is_overloaded" })), sending, dice);
    case "walled":
      return failed(
        latencyMs,
        truth,
        answer(403, dice.chance(0.5) ? EMPTY_BODY : html("<title>Attention Required! | Cloudflare</title>")),
        sending,
      );
    case "reports_network":
      return failed(
        latencyMs,
        truth,
        answer(500, facts({ code: "1234", message: "network error" })),
        sending,
        {
          kind: "provider_reported",
          code: "network_error",
        },
      );
    case "cuts":
      return broken("reset_in_body", latencyMs, dice);
    case "ends_early":
      return ended({ kind: "incomplete" }, "incomplete", latencyMs, dice);
    case "garbles":
      return ended({ kind: "malformed", detail: "malformed" }, "malformed", latencyMs, dice);
    case "ok":
      throw new Error("Cannot fail: the provider is well");
    default:
      return truth satisfies never;
  }
}

const NO_RESPONSE: readonly NoResponseCause[] = [
  "refused",
  "connect_timeout",
  "dns",
  "tls",
  "reset_before_head",
];

/** `null` when the account has nothing to complain about. */
function byAccount(
  world: World,
  sending: Sending,
  dice: Dice,
  latencyMs: number,
  nowMs: number,
): Playback | null {
  const truth = world.account(sending.account);
  const fail = (evidence: Evidence, signal: Signal | null = null) =>
    failed(latencyMs, truth.kind, evidence, sending, signal);
  switch (truth.kind) {
    case "healthy":
      return null;
    case "spent": {
      if (truth.untilMs <= nowMs + latencyMs) return null;
      if (truth.model !== null && truth.model !== sending.model) return null;
      return spent(truth, sending, latencyMs, nowMs + latencyMs);
    }
    case "stale":
      return sending.fingerprint === truth.fingerprint
        ? fail(answer(401, facts({ code: dice.pick(["token_expired", "invalid_api_key"]) })))
        : null;
    case "revoked":
      return fail(answer(401, facts({ code: "token_revoked" })));
    case "suspended":
      return fail(answer(403, facts({ code: "account_suspended" })));
    case "broke":
      return fail(answer(dice.pick([402, 429]), facts({ code: "insufficient_quota" })));
    case "workspace_off":
      return fail(answer(402, facts({ code: "deactivated_workspace" })), {
        kind: "account_pause",
        code: "deactivated_workspace",
        untilMs: nowMs + latencyMs + 3_600_000,
      });
    case "lacks":
      return sending.model === truth.model
        ? fail(answer(dice.pick([400, 404]), facts({ code: "model_not_supported" })))
        : null;
    case "throttled":
      return fail(answer(429));
    case "flaky":
      return dice.chance(truth.share) ? byNoise(world, dice, latencyMs, sending) : null;
    default:
      return truth satisfies never;
  }
}

function spent(
  truth: Extract<AccountTruth, { kind: "spent" }>,
  sending: Sending,
  latencyMs: number,
  nowMs: number,
): Playback {
  const leftMs = truth.untilMs - nowMs;
  const say = (evidence: Evidence): Playback =>
    failed(latencyMs, `spent ${truth.wording}`, evidence, sending);
  if (truth.model !== null) {
    const stated = truth.wording === "rate" || truth.wording === "quota"
      ? null
      : { untilMs: truth.untilMs, source: "headers" } as const;
    const shape = truth.wording === "rate" ? "rate" : "quota";
    const signal: Signal = { kind: "limited", shape, limiter: "model", code: "model_limited", stated };
    return failed(latencyMs, "model spent", answer(429), sending, signal);
  }
  const after = (ms: number) =>
    answer(429, facts(), { "retry-after": String(Math.max(0, Math.ceil(ms / 1000))) });
  switch (truth.wording) {
    case "retry_after":
      return say(after(leftMs));
    case "too_short":
      return say(after(leftMs / 4));
    case "too_long":
      return say(after(leftMs * 3));
    case "over":
      return say(answer(429, facts({ code: "usage_limit_reached", resetsAtMs: nowMs - 1_000 })));
    case "body":
      return say(answer(429, facts({ code: "usage_limit_reached", resetsAtMs: truth.untilMs })));
    case "message":
      return say(
        answer(
          429,
          facts({ message: `Rate limit reached. Please try again in ${Math.ceil(leftMs / 1000)}s.` }),
        ),
      );
    case "rate":
      return say(answer(429, facts({ code: "rate_limit_exceeded" })));
    case "quota":
      return say(answer(429, facts({ code: "usage_limit_reached" })));
    default:
      return truth.wording satisfies never;
  }
}

/** Trouble that comes out of nowhere and is gone the next time. */
function byNoise(world: World, dice: Dice, latencyMs: number, sending: Sending): Playback {
  return dice.weighted<() => Playback>([
    [4, () => failed(latencyMs, "noise", answer(dice.pick([500, 502, 503])), sending)],
    [2, () => failedInStream(latencyMs, "noise", inStream(facts({ code: "server_error" })), sending, dice)],
    [
      1,
      () =>
        failedInStream(latencyMs, "noise", inStream(facts({ code: "rate_limit_exceeded" })), sending, dice),
    ],
    [
      3,
      () =>
        lost(dice.pick(NO_RESPONSE), !sending.fresh && dice.chance(world.pooledShare), latencyMs, "noise"),
    ],
    [2, () => broken("reset_in_body", latencyMs, dice)],
    [1, () => broken("idle_timeout", latencyMs, dice)],
    [1, () => ended({ kind: "incomplete" }, "incomplete", latencyMs, dice)],
    [1, () => ended({ kind: "malformed", detail: "malformed" }, "malformed", latencyMs, dice)],
    [1, () => lost("egress_proxy", false, latencyMs, "noise")],
    [2, () => failed(latencyMs, "noise", answer(400, facts({ code: "context_length_exceeded" })), sending)],
    [
      1,
      () => failed(latencyMs, "noise", answer(404, facts({ code: "previous_response_not_found" })), sending),
    ],
    [1, () => failed(latencyMs, "noise", answer(401), sending)],
    [
      1,
      () =>
        failed(
          latencyMs,
          "noise",
          answer(503, facts(), { "retry-after": String(dice.int(1, 120)) }),
          sending,
        ),
    ],
  ])();
}

function failed(
  latencyMs: number,
  label: string,
  evidence: Evidence,
  sending: Sending,
  signal: Signal | null = null,
): Playback {
  return {
    headMs: latencyMs,
    outputMs: null,
    endMs: latencyMs + 5,
    label,
    judge: (nowMs) => classify(evidence, signal, { nowMs, model: sending.model }),
  };
}

/** A failure event inside a stream: sometimes only after output, when nothing can be taken back. */
function failedInStream(
  latencyMs: number,
  label: string,
  evidence: Evidence,
  sending: Sending,
  dice: Dice,
): Playback {
  const outputMs = dice.chance(0.4) ? latencyMs + dice.span(5, 2_000) : null;
  return {
    headMs: latencyMs,
    outputMs,
    endMs: (outputMs ?? latencyMs) + dice.span(5, 5_000),
    label: `${label} in stream`,
    judge: (nowMs) => classify(evidence, null, { nowMs, model: sending.model }),
  };
}

function lost(
  cause: NoResponseCause | "first_byte_timeout" | "egress_proxy",
  pooled: boolean,
  latencyMs: number,
  label: string,
): Playback {
  return {
    headMs: null,
    outputMs: null,
    endMs: latencyMs,
    label: `${label} ${cause}`,
    judge: (nowMs) => classify({ kind: "transport", cause, pooled }, null, { nowMs }),
  };
}

function broken(cause: "reset_in_body" | "idle_timeout", latencyMs: number, dice: Dice): Playback {
  const outputMs = dice.chance(0.5) ? latencyMs + dice.span(5, 2_000) : null;
  return {
    headMs: latencyMs,
    outputMs,
    endMs: (outputMs ?? latencyMs) + dice.span(5, 5_000),
    label: cause,
    judge: (nowMs) => classify({ kind: "transport", cause, pooled: false }, null, { nowMs }),
  };
}

function ended(evidence: Evidence, label: string, latencyMs: number, dice: Dice): Playback {
  return {
    headMs: latencyMs,
    outputMs: dice.chance(0.3) ? latencyMs + 10 : null,
    endMs: latencyMs + dice.span(20, 3_000),
    label,
    judge: (nowMs) => classify(evidence, null, { nowMs }),
  };
}
