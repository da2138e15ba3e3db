/**
 * What is the case now, read from the pool and its surroundings at every scrape.
 */
import type { AffinityStore, Clock } from "../ports.ts";
import type { MetricsRegistry } from "./metrics_registry.ts";
import type { AccountView, NetworkView, ProviderView } from "./pool_view.ts";
import type { RecoveryFigures } from "./recovery_slots.ts";
import type { Traffic } from "./traffic.ts";

/** Beyond it the windows of single accounts are left out; how many accounts are in which state is still told. */
const QUOTA_ACCOUNT_LIMIT = 500;

export interface GaugeSources {
  readonly clock: Clock;
  readonly version: string;
  readonly startedAtMs: number;
  readonly pool: {
    describeAccounts(nowMs: number): readonly AccountView[];
    describeProviders(nowMs: number): readonly ProviderView[];
    describeNetwork(nowMs: number): NetworkView | null;
  };
  readonly affinity: Pick<AffinityStore, "count">;
  readonly recovery: () => RecoveryFigures;
  readonly traffic: Traffic;
  readonly inFlight: () => number;
  readonly openSockets: () => number;
  readonly isReady: () => boolean;
  readonly residentBytes: () => number;
}

export function addGauges(registry: MetricsRegistry, sources: GaugeSources): void {
  addProcess(registry, sources);
  addAccounts(registry, sources);
  addProviders(registry, sources);
  addTraffic(registry, sources);
  addRecovery(registry, sources);
}

function addProcess(registry: MetricsRegistry, sources: GaugeSources): void {
  const { version, startedAtMs } = sources;
  registry.gauge(
    "holdfast_build_info",
    "The version that runs",
    ["version"],
    (gauge) => gauge.set(1, [version]),
  );
  registry.gauge("holdfast_ready", "1 when requests can be served", [], (gauge) => {
    gauge.set(sources.isReady() ? 1 : 0);
  });
  registry.gauge("process_start_time_seconds", "Unix time at which the process started", [], (gauge) => {
    gauge.set(startedAtMs / 1_000);
  });
  registry.gauge("process_resident_memory_bytes", "Resident memory", [], (gauge) => {
    gauge.set(sources.residentBytes());
  });
}

/** The accounts are described once a scrape, however many gauges read them. */
function addAccounts(registry: MetricsRegistry, { pool, clock, affinity }: GaugeSources): void {
  let views: readonly AccountView[] = [];
  registry.gauge("holdfast_accounts", "Accounts, by provider and state", ["provider", "state"], (gauge) => {
    views = pool.describeAccounts(clock.now());
    for (const { account, state } of views) gauge.add(1, [account.provider, state]);
  });
  registry.gauge(
    "holdfast_accounts_blocked",
    "Accounts that cannot be selected now, by provider and reason",
    ["provider", "reason"],
    (gauge) => {
      for (const { account, block } of views) {
        if (block !== null) gauge.add(1, [account.provider, block.kind]);
      }
    },
  );
  registry.gauge("holdfast_attempts_in_flight", "Attempts under way, by provider", ["provider"], (gauge) => {
    for (const { account, inFlight } of views) gauge.add(inFlight, [account.provider]);
  });
  registry.gauge(
    "holdfast_quota_used_ratio",
    "Used share of an account's quota window as last reported, 1 = all of it",
    ["account", "window"],
    (gauge) => {
      for (const { account, reading } of views.slice(0, QUOTA_ACCOUNT_LIMIT)) {
        for (const { name, usedPercent } of reading?.windows ?? []) {
          if (usedPercent !== null) gauge.set(usedPercent / 100, [account.id, name]);
        }
      }
    },
  );
  registry.gauge(
    "holdfast_quota_reset_timestamp_seconds",
    "Unix time at which an account's quota window begins anew",
    ["account", "window"],
    (gauge) => {
      for (const { account, reading } of views.slice(0, QUOTA_ACCOUNT_LIMIT)) {
        for (const { name, resetAtMs } of reading?.windows ?? []) {
          if (resetAtMs !== null) gauge.set(resetAtMs / 1_000, [account.id, name]);
        }
      }
    },
  );
  registry.gauge("holdfast_bindings", "Conversations bound to an account", [], (gauge) => {
    gauge.set(affinity.count());
  });
}

function addProviders(registry: MetricsRegistry, { pool, clock }: GaugeSources): void {
  let views: readonly ProviderView[] = [];
  registry.gauge(
    "holdfast_provider_cooldown_seconds",
    "How long a provider still rests, by reason",
    ["provider", "reason"],
    (gauge) => {
      const nowMs = clock.now();
      views = pool.describeProviders(nowMs);
      for (const { id, cooldown } of views) {
        if (cooldown !== null) {
          gauge.set(Math.max(0, cooldown.untilMs - nowMs) / 1_000, [id, cooldown.reason]);
        }
      }
    },
  );
  registry.gauge("holdfast_provider_circuit_open", "1 while no account of a provider may be used", [
    "provider",
  ], (gauge) => {
    for (const { id, circuit } of views) gauge.set(circuit === null ? 0 : 1, [id]);
  });
  registry.gauge(
    "holdfast_provider_probe_leased",
    "1 while one request tests a provider",
    ["provider"],
    (gauge) => {
      for (const { id, probe } of views) gauge.set(probe.state === "leased" ? 1 : 0, [id]);
    },
  );
  registry.gauge("holdfast_network_paused", "1 while several providers could not be reached", [], (gauge) => {
    gauge.set(pool.describeNetwork(clock.now()) === null ? 0 : 1);
  });
}

function addTraffic(registry: MetricsRegistry, { traffic, inFlight, openSockets }: GaugeSources): void {
  registry.gauge("holdfast_requests_in_flight", "Requests under way", [], (gauge) => gauge.set(inFlight()));
  registry.gauge("holdfast_streams_open", "Event streams on their way to clients", [], (gauge) => {
    gauge.set(traffic.openStreams);
  });
  registry.gauge("holdfast_websockets_open", "Upgraded connections", [], (gauge) => gauge.set(openSockets()));
  registry.readCounter("holdfast_client_received_bytes_total", "Bodies of requests", [], (gauge) => {
    gauge.set(traffic.bytesFromClients);
  });
  registry.readCounter(
    "holdfast_client_sent_bytes_total",
    "Bodies of answers that passed through",
    [],
    (gauge) => {
      gauge.set(traffic.bytesToClients);
    },
  );
}

function addRecovery(registry: MetricsRegistry, { recovery }: GaugeSources): void {
  registry.gauge("holdfast_recovery_slots_held", "Requests whose answer is held back", [], (gauge) => {
    gauge.set(recovery().held);
  });
  registry.gauge(
    "holdfast_recovery_held_bytes",
    "Bytes held back",
    [],
    (gauge) => gauge.set(recovery().heldBytes),
  );
  registry.gauge(
    "holdfast_recovery_held_bytes_peak",
    "The most bytes ever held back at once",
    [],
    (gauge) => {
      gauge.set(recovery().heldBytesPeak);
    },
  );
  registry.readCounter("holdfast_recovery_withheld_bytes_total", "Bytes ever held back", [], (gauge) => {
    gauge.set(recovery().withheldBytes);
  });
  registry.readCounter(
    "holdfast_recovery_held_seconds_total",
    "How long requests were held back, counted when each is over",
    [],
    (gauge) => gauge.set(recovery().heldMs / 1_000),
  );
  registry.readCounter(
    "holdfast_recovery_requests_total",
    "Requests whose stream broke before its end, by what came of it",
    ["result"],
    (gauge) => {
      const { recovered, exhausted, blocked } = recovery();
      gauge.set(recovered, ["recovered"]);
      gauge.set(exhausted, ["exhausted"]);
      gauge.set(blocked, ["blocked"]);
    },
  );
  registry.readCounter(
    "holdfast_recovery_failed_open_total",
    "Requests that were streamed like any other although recovery is on, by reason",
    ["reason"],
    (gauge) => {
      for (const [reason, count] of Object.entries(recovery().failedOpen)) gauge.set(count, [reason]);
    },
  );
}
