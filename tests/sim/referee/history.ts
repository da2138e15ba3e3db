/** What must stay true over every process of a run: attempt ids, resumed ledgers, the rate of a dead provider. */
import type { AttemptId, ProviderId, RequestId } from "../../../lib/core/domain.ts";
import type { ProviderOracle } from "../oracle/provider_oracle.ts";
import { must } from "../violation.ts";

/** Level at which the provider ladder reaches its 60 s. */
const LEVEL_AT_CAP = 5;
const MINUTE_MS = 60_000;

export class History {
  launches = 0;
  readonly #attempts = new Set<AttemptId>();
  readonly #resumed = new Set<RequestId>();
  readonly #deadLaunches = new Map<ProviderId, number[]>();

  mint(attempt: AttemptId): void {
    this.launches++;
    must(!this.#attempts.has(attempt), "P26", () => `${attempt} was minted before`);
    this.#attempts.add(attempt);
  }

  /** One crash leaves a ledger to one request, not to two. */
  resume(request: RequestId): void {
    must(
      !this.#resumed.has(request),
      "P27",
      () => `${request} is resumed for the second time in this process`,
    );
    this.#resumed.add(request);
  }

  restarted(): void {
    this.#resumed.clear();
  }

  /** P42: a provider that is dead for good costs at most two launches a minute. */
  probeFailed(provider: ProviderOracle, launchedAtMs: number): void {
    if ((provider.cooldown?.level ?? 0) <= LEVEL_AT_CAP) {
      this.#deadLaunches.delete(provider.id);
      return;
    }
    // A launch that is still to come was made before the clock was set back: how long ago, it does not tell.
    const recent = (this.#deadLaunches.get(provider.id) ?? []).filter((atMs) =>
      atMs <= launchedAtMs && launchedAtMs - atMs < MINUTE_MS
    );
    recent.push(launchedAtMs);
    this.#deadLaunches.set(provider.id, recent);
    must(
      recent.length <= 2,
      "P42",
      () => `${provider.id} is dead and got ${recent.length} launches within a minute`,
    );
  }
}
