/** Section 5, a second time: what a client must be told, from what is known of each account (P32, P34). */
import type { FinalAnswer } from "../../../lib/core/final_error.ts";
import type { Outcome } from "../../../lib/core/outcome.ts";
import type { AccountOracle } from "../oracle/account_oracle.ts";
import type { Oracle } from "../oracle/oracle.ts";
import type { ProviderOracle } from "../oracle/provider_oracle.ts";
import type { RequestOracle } from "../oracle/request_oracle.ts";
import { must } from "../violation.ts";

/** The letters of 5.1: excluded, disabled, credential, credits, authoritative quota, other quota, transient, idle. */
type Letter = "M" | "D" | "C" | "B" | "Q" | "q" | "T" | "I";

interface Member {
  readonly letter: Letter;
  readonly readyAtMs: number;
}

const LETTERS: Readonly<Record<string, Letter>> = {
  model_excluded: "M",
  disabled: "D",
  credential: "C",
  credits: "B",
  deadline: "Q",
  model_deadline: "Q",
  park: "q",
  inferred: "q",
  ladder: "T",
};

/** Compares; says nothing about providers that were asked for several models, where 5.1 leaves the model open. */
export function requireFinalAnswer(
  oracle: Oracle,
  request: RequestOracle,
  answer: FinalAnswer,
  nowMs: number,
): void {
  if (answer.rule === "incomplete") {
    must(
      request.last !== null && request.outcomes.get(request.last.account)?.kind === "incomplete",
      "P14",
      () => `${request.spec.id} is told of an incomplete stream that was none`,
    );
    return;
  }
  must(
    answer.undispatched === (request.launches.length === 0),
    "P34",
    () => `${request.spec.id} is told undispatched=${answer.undispatched}`,
  );
  must(
    (answer.retryAtMs !== null) === (answer.status === 429),
    "P34",
    () => `${request.spec.id} is told ${answer.status} with retry at ${answer.retryAtMs}`,
  );
  if (asksForSeveralModels(request)) return;
  const members = [...membersOf(oracle, request, nowMs)];
  const wanted = resolve(members, oracle.settings.policy.maxRetryIntervalMs, nowMs);
  must(answer.status === wanted.status && answer.retryAtMs === wanted.retryAtMs, "P32", () => {
    const list = members.map(({ letter, readyAtMs }) => `${letter}${(readyAtMs - nowMs) / 1000}`).join(" ");
    const tell = (given: { status: number; retryAtMs: number | null }) =>
      `${given.status}${given.retryAtMs === null ? "" : ` in ${(given.retryAtMs - nowMs) / 1000} s`}`;
    return `${request.spec.id} is told ${tell(answer)}, not ${tell(wanted)}, with ${list}`;
  });
}

function asksForSeveralModels(request: RequestOracle): boolean {
  const models = new Map<ProviderOracle, string | null>();
  for (const { provider, target } of request.routes) {
    if (models.has(provider) && models.get(provider) !== target.model) return true;
    models.set(provider, target.model);
  }
  return false;
}

function* membersOf(oracle: Oracle, request: RequestOracle, nowMs: number): Generator<Member> {
  for (const [provider, accounts] of request.snapshot) {
    const { model } = request.routes.find((route) => route.provider === provider)!.target;
    const gateMs = Math.max(networkGateMs(oracle, nowMs), providerGateMs(provider, nowMs));
    const isGated = !["open", "probe"].includes(oracle.network.gate(nowMs)) ||
      !["open", "probe"].includes(provider.gate(nowMs));
    for (const account of accounts) {
      if (account.isRemoved) continue;
      yield {
        letter: letterOf(account, model, isGated, request.outcomes.get(account) ?? null, nowMs),
        readyAtMs: Math.max(account.readyAtMs(model, nowMs), gateMs),
      };
    }
  }
}

function letterOf(
  account: AccountOracle,
  model: string | null,
  isGated: boolean,
  own: Outcome | null,
  nowMs: number,
): Letter {
  const block = account.block(model, nowMs);
  if (block !== null) return LETTERS[block.kind]!;
  if (isGated) return "T";
  if (own === null) return "I";
  if (own.kind === "limited") return own.stated === null ? "q" : "Q";
  return own.kind === "model_unsupported" ? "M" : "T";
}

function networkGateMs(oracle: Oracle, nowMs: number): number {
  const { pause, lease } = oracle.network;
  if (lease !== null) return Math.max(lease.untilMs, nowMs);
  return Math.max(pause?.untilMs ?? 0, nowMs);
}

function providerGateMs(provider: ProviderOracle, nowMs: number): number {
  if (provider.lease !== null) return Math.max(provider.lease.untilMs, nowMs);
  return Math.max(provider.cooldown?.untilMs ?? 0, nowMs);
}

/** Rules 1 to 6 of 5.1, in their order. */
function resolve(
  all: readonly Member[],
  intervalMs: number,
  nowMs: number,
): { readonly status: number; readonly retryAtMs: number | null } {
  const told = (status: number, among: readonly Member[] = []) => ({
    status,
    retryAtMs: among.length === 0 ? null : Math.min(...among.map(({ readyAtMs }) => readyAtMs)),
  });
  if (all.length === 0) return told(503);
  const rest = all.filter(({ letter }) => letter !== "M");
  if (rest.length === 0) return told(404);
  if (rest.every(({ letter }) => "DCB".includes(letter))) return told(503);
  const serving = rest.filter(({ letter }) => "QqT".includes(letter));
  const limited = serving.filter(({ letter }) => letter !== "T");
  if (limited.length === 0) return told(502);
  if (limited.length === serving.length) return told(429, limited);
  const near = limited.filter(({ letter, readyAtMs }) =>
    letter === "Q" && intervalMs > 0 && readyAtMs - nowMs <= intervalMs
  );
  return near.length === 0 ? told(502) : told(429, near);
}
