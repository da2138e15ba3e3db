/**
 * Blocks, gates and outcomes in plain words, for people: the status page shows them as they are.
 *
 * Every sentence is ours and fixed; nothing an upstream said is ever part of one.
 */
import type { BlockKind } from "../core/decision.ts";
import type { CooldownReason } from "../core/records.ts";

const SOURCES: Readonly<Record<string, string>> = {
  usage_page: "its usage page",
  response_headers: "the headers of an answer",
  stream_event: "a notice in a stream",
  websocket_frame: "a WebSocket notice",
  snapshot: "a stored reading",
};

const LADDER: Readonly<Record<string, string>> = {
  transient: "Its last request failed; it rests for a moment",
  no_response: "It could not be reached; it rests for a moment",
  refresh: "Its token could not be refreshed; tried again shortly",
  workspace: "Its workspace is deactivated; tried again in an hour",
  egress_proxy: "The proxy on the way out failed; it rests for a moment",
};

const CREDENTIAL: Readonly<Record<string, string>> = {
  unauthorized: "Its credential was refused; log in again",
  invalid_grant: "Its login has ended; log in again",
  credential_invalid: "Its credential cannot be used; check the key or log in again",
};

const COOLDOWNS: Readonly<Record<CooldownReason, string>> = {
  rate_limited: "every account is at a limit",
  overloaded: "the provider is overloaded",
  usage_window_exhausted: "every account is out of quota",
  network: "the provider could not be reached",
  edge_block: "a block page stands in front of the provider",
};

/**
 * Why an account may not serve now.
 *
 * @param source  the safe word kept with the block; what armed it.
 */
export function tellBlock(kind: BlockKind, source: string): string {
  switch (kind) {
    case "model_excluded":
      return "It does not have this model";
    case "not_listed":
      return "Its provider does not list this model";
    case "disabled":
      return "Switched off by an operator";
    case "credential":
      return CREDENTIAL[source] ?? CREDENTIAL["credential_invalid"]!;
    case "credits":
      return "Out of credits; one request an hour tests whether they are back";
    case "deadline":
      return "At a limit until the time the provider stated";
    case "model_deadline":
      return "At a limit for this model until the time the provider stated";
    case "park":
      return `Out of quota, as seen in ${SOURCES[source] ?? "a reading"}; tried again after the park`;
    case "inferred":
      return source === "quota_limit"
        ? "Out of quota, no time stated; tried again after five minutes"
        : "Rate-limited, no time stated; tried again after a minute";
    case "ladder":
      return LADDER[source] ?? LADDER["transient"]!;
    case "provider_circuit":
      return "No account of its provider can serve until somebody acts";
    case "provider_cooldown":
      return `Its provider rests: ${tellCooldown(source)}`;
    case "provider_probe":
      return "One request is testing its provider";
    case "network_pause":
      return "The network is paused: several providers could not be reached";
    case "network_probe":
      return "One request is testing the network";
    default:
      return kind satisfies never;
  }
}

/** Why a provider rests, as the second half of a sentence. */
export function tellCooldown(reason: string): string {
  return COOLDOWNS[reason as CooldownReason] ?? "it failed several times";
}

/** Why no account of a provider can serve. */
export function tellCircuit(reason: "auth" | "credits"): string {
  return reason === "auth"
    ? "No account has a working login; nothing is sent until one does"
    : "No account has a working login with credits; nothing is sent until one does";
}
