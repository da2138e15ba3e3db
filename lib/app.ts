/**
 * Wires everything; decides nothing. `startApp` gives a running proxy, `stop` ends it.
 */
import { openMetrics } from "./app_metrics.ts";
import { diffConfig, listensBeyondLoopback } from "./config.ts";
import type { Config } from "./config_types.ts";
import type { App, Outside } from "./app_types.ts";
import { isEmailMeant, maskEmail } from "./core/credential.ts";
import type { ProviderId } from "./core/domain.ts";
import { dropIdleBuffers } from "./core/spare_buffers.ts";
import { ensureSomeKey, StartRefused } from "./first_key.ts";
import { providerEntries } from "./provider_entries.ts";
import { startUpkeep } from "./upkeep.ts";
import { AccountDirectory } from "./proxy/account_directory.ts";
import { renderLocal } from "./protocol/answer.ts";
import { AccountCredentials } from "./proxy/account_credentials.ts";
import { type AdmissionSources, admit } from "./proxy/admission.ts";
import { BodyWatch } from "./proxy/body_pace.ts";
import { DecisionLog } from "./proxy/decision_log.ts";
import type { HandlerDeps, ProviderEntry } from "./proxy/deps.ts";
import { EventFeed } from "./proxy/event_feed.ts";
import { createHandler } from "./proxy/handler.ts";
import { HourStats } from "./proxy/hour_stats.ts";
import { createLocalRoutes, type Readiness } from "./proxy/local_routes.ts";
import { createManagement } from "./proxy/management.ts";
import { Metrics } from "./proxy/metrics.ts";
import { ModelCatalog } from "./proxy/model_catalog.ts";
import { OpenSockets } from "./proxy/open_sockets.ts";
import { logPauses } from "./proxy/pause_log.ts";
import { PoolRuntime } from "./proxy/pool_runtime.ts";
import { RecoverySlots } from "./proxy/recovery_slots.ts";
import { type RunningServer, startServer } from "./proxy/server.ts";
import { StateView } from "./proxy/state_view.ts";
import { createStatus } from "./proxy/status.ts";
import { TokenRefresher } from "./proxy/token_refresher.ts";
import { Traffic } from "./proxy/traffic.ts";
import { createUsageRoutes } from "./proxy/usage_routes.ts";
import { UsageMonitor } from "./proxy/usage_monitor.ts";
import { SHUTTING_DOWN } from "./proxy/request_context.ts";
import { UsageRecorder } from "./proxy/usage_recorder.ts";
import { createUserRoutes } from "./proxy/user_routes.ts";
import { createWhyRoute } from "./proxy/why_route.ts";
import { VERSION } from "./version.ts";
import { SqliteAccountStore } from "./store/account_store.ts";
import { SqliteAffinityStore } from "./store/affinity_store.ts";
import { SqlitePoolStore } from "./store/pool_store.ts";
import { Answer } from "./proxy/answer.ts";

const UPKEEP_BATCH = 100;

/** @throws StartRefused, StoreFailure; the system's error with its `code` where the address cannot be listened on */
export async function startApp(initial: Config, outside: Outside): Promise<App> {
  const { clock, digest, ids, log, database } = outside;
  let config = initial;
  const failed = Promise.withResolvers<Error>();
  const fatal = (error: unknown): void => {
    const cause = error instanceof Error ? error : new Error(String(error));
    log.write("error", "fatal", { problem: cause.message });
    failed.resolve(cause);
  };

  const instanceId = ids.secret(6);
  const poolStore = new SqlitePoolStore(database);
  const affinity = new SqliteAffinityStore(database);
  const accounts = new SqliteAccountStore(database);
  const firstRunKey = ensureSomeKey(config, accounts, ids, digest);
  const keyHashes = (): Set<string> => {
    const hashes = new Set(config.apiKeys.map((key) => digest.sha256(key)));
    const first = accounts.firstRunKeyHash();
    if (first !== null) hashes.add(first);
    return hashes;
  };
  let staticKeys = keyHashes();

  const metrics = new Metrics();
  const traffic = new Traffic();
  const pool = new PoolRuntime({
    store: logPauses(metrics.meterStore(poolStore), log),
    affinity,
    policy: config.retry,
    quota: { maxParkMs: config.quota.maxParkMs, recheck: config.quota.recheck },
    routing: config.routing,
    seed: Math.floor(outside.random.next() * 2 ** 31),
    recovery: config.streaming.recovery,
    pools: config.pools,
  });
  pool.restore(clock.now());

  const directory = new AccountDirectory({
    config,
    files: outside.files,
    clock,
    digest,
    log,
    onFatal: fatal,
  });
  const refresher = new TokenRefresher({
    directory,
    issuer: metrics.meterIssuer(outside.issuer),
    clock,
    log,
    onFatal: fatal,
  });
  const credentials = new AccountCredentials(directory, refresher);
  let entries = providerEntries(config);
  /** Taken out of the configuration: what is under way with them still has to be judged and told. */
  const retired = new Map<ProviderId, ProviderEntry>();
  const catalog = new ModelCatalog({
    config: () => config,
    clock,
    upstream: outside.upstream,
    credentials,
    providers: () => [...entries].map(([id, entry]) => ({ id, entry })),
    askable: (provider, nowMs) =>
      pool.describeAccounts(nowMs)
        .filter((view) =>
          view.account.provider === provider && view.account.enabled && view.state !== "unavailable"
        )
        .sort((a, b) => Number(a.state !== "healthy") - Number(b.state !== "healthy"))
        .map((view) => view.account.id),
  });
  const monitor = new UsageMonitor({
    pool,
    credentials,
    provider: (id) => entries.get(id) ?? null,
    client: outside.usagePages,
    clock,
    random: outside.random,
    log,
    intervalMs: () => config.quota.pollIntervalMs,
    onFatal: fatal,
  });
  directory.subscribe(() => {
    try {
      pool.reconcile(directory.accounts(), clock.now());
      catalog.invalidate();
      catalog.warm();
      monitor.refresh();
    } catch (error) {
      fatal(error);
    }
  });
  await directory.start();
  pool.reconcile(directory.accounts(), clock.now());
  for (const { account, health } of pool.describeAccounts(clock.now())) {
    const { credential } = health;
    if (credential?.kind === "invalid_grant") {
      refresher.markDead(account.id, credential.fingerprint, credential.kind, credential.code);
    }
  }

  const decisions = new DecisionLog();
  const recoverySlots = new RecoverySlots(clock);
  const bodyWatch = new BodyWatch(clock);
  const usage = new UsageRecorder(accounts, clock, () => config.usage.enabled, fatal, metrics);
  const running = new Set<AbortController>();
  const sockets = new OpenSockets();
  const adminKeyHash = (): string | null =>
    config.adminApiKey === "" ? null : digest.sha256(config.adminApiKey);
  const readiness = (): Readiness => {
    if (server.draining) return { ready: false, reason: "Shutting down" };
    if (directory.accounts().length === 0) {
      return {
        ready: false,
        reason:
          `No account found: put an auth.json or a flat codex file into auth-dir, or configure providers`,
      };
    }
    return { ready: true, reason: null };
  };
  const admission: AdmissionSources = {
    digest,
    staticKeyHashes: () => staticKeys,
    userByKeyHash: (hash) => accounts.userByKeyHash(hash),
    isOwnAccountToken: (token) => directory.isOwnAccountToken(token),
  };
  const users = createUserRoutes({ accounts, clock, digest, ids, log });
  const usageReports = createUsageRoutes({
    accounts,
    clock,
    admit: (headers) => admit(headers, { admitsAccountToken: false }, admission),
    flush: () => usage.flush(),
  });
  const why = createWhyRoute({ names: () => config, listed: () => catalog.listed(), clock, pool });
  const state = new StateView({
    pool,
    details: (id) => {
      const entry = directory.get(id);
      return entry === null ? null : {
        upstreamAccountId: entry.upstreamAccountId,
        maskedEmail: entry.email === null ? null : maskEmail(entry.email),
        plan: entry.plan,
      };
    },
    isEmailOf: (id, text) => {
      const email = directory.get(id)?.email ?? null;
      return email !== null && isEmailMeant(email, text);
    },
    providers: () => [...entries].map(([id, { descriptor }]) => ({ id, kind: descriptor.kind })),
  });
  const hour = new HourStats();
  decisions.subscribe((record) => hour.add(record));
  decisions.subscribe((record) => metrics.observe(record));
  if (outside.trace) decisions.subscribe(outside.trace);
  const feed = new EventFeed({ clock, pool, state, decisions, hour });
  const management = createManagement({
    adminKeyHash,
    digest,
    clock,
    log,
    pool,
    decisions,
    state,
    feed,
    more: (request, path, search, isAdmin) =>
      users(request, path, isAdmin) ?? usageReports(request, path, search, isAdmin) ??
        why(request, path, search, isAdmin),
    fatal,
  });
  const metricsEndpoint = openMetrics(metrics, {
    clock,
    version: VERSION,
    startedAtMs: clock.now(),
    pool,
    affinity,
    recovery: () => recoverySlots.figures,
    traffic,
    inFlight: () => running.size,
    openSockets: () => sockets.size,
    isReady: () => readiness().ready,
  }, { adminKeyHash, digest });
  const deps: HandlerDeps = {
    config: () => config,
    clock,
    random: outside.random,
    ids,
    digest,
    inflate: outside.inflate,
    log,
    upstream: outside.upstream,
    dialer: outside.dialer,
    pool,
    credentials,
    provider: (id) => entries.get(id) ?? retired.get(id) ?? null,
    affinity,
    accounts,
    decisions,
    bodyWatch,
    recoverySlots,
    usage,
    traffic,
    running,
    sockets,
    instanceId,
    fatal,
    admission,
    local: createLocalRoutes({
      version: VERSION,
      readiness,
      management,
      models: (request, search) => {
        const admission = admit(request.headers, { admitsAccountToken: true }, deps.admission);
        if (admission.ok) return catalog.answer(request, search);
        const context = { requestId: ids.requestId(), nowMs: clock.now() };
        const { status, headers, body } = renderLocal("raw", admission.problem, context);
        return new Answer(body, { status, headers });
      },
      metrics: (request) => metricsEndpoint.answer(request),
      status: createStatus({
        version: VERSION,
        adminKeyHash,
        configuredHost: () => config.host,
        port: () => server.port,
        clock,
        bodyWatch,
        digest,
        ids,
        log,
        decisions,
        state,
        feed,
      }),
    }),
    isDraining: () => server.draining,
    listedModels: () => catalog.listed(),
  };
  const server: RunningServer = await startServer({
    hostname: config.host,
    port: config.port,
    handler: createHandler(deps),
    clock,
    log,
    sockets,
    abortAll: () => {
      for (const abort of running) abort.abort(SHUTTING_DOWN);
    },
  });
  const upkeep = startUpkeep(
    clock,
    () => {
      const nowMs = clock.now();
      poolStore.prune(nowMs);
      while (affinity.dropExpired(nowMs, UPKEEP_BATCH) === UPKEEP_BATCH);
      while (accounts.dropExpiredPins(nowMs, UPKEEP_BATCH) === UPKEEP_BATCH);
      while (accounts.dropUsageBefore(nowMs - config.usage.retentionMs, UPKEEP_BATCH) === UPKEEP_BATCH);
    },
    () => {
      affinity.flush();
      dropIdleBuffers();
    },
    fatal,
  );
  catalog.warm();
  log.write("info", "listening", {
    host: server.hostname,
    port: server.port,
    accounts: directory.accounts().length,
  });
  if (directory.accounts().length === 0) {
    log.write("warn", "no_accounts", {
      hint: "put auth.json or flat codex files into auth-dir, or configure providers",
    });
  }

  return {
    url: `http://${server.hostname.includes(":") ? `[${server.hostname}]` : server.hostname}:${server.port}`,
    server,
    pool,
    decisions,
    recoverySlots,
    directory,
    firstRunKey,
    failed: failed.promise,
    async reload(next) {
      const { host, port, databasePath, authDir } = config;
      const changed: Config = { ...next, host, port, databasePath, authDir };
      if (listensBeyondLoopback(changed) && changed.apiKeys.length === 0 && accounts.users().length === 0) {
        throw new StartRefused(
          `Cannot reload: ${host} can be reached from other machines, and no key would be left`,
        );
      }
      const { needsRestart } = diffConfig(config, next);
      config = changed;
      outside.useProxy(config.proxyUrl);
      for (const [id, entry] of entries) retired.set(id, entry);
      entries = providerEntries(config);
      staticKeys = keyHashes();
      log.setLevel(config.logging.level);
      pool.reconfigure({
        policy: config.retry,
        quota: { maxParkMs: config.quota.maxParkMs, recheck: config.quota.recheck },
        routing: config.routing,
        recovery: config.streaming.recovery,
        pools: config.pools,
      });
      await directory.reconfigure(config);
      pool.reconcile(directory.accounts(), clock.now());
      catalog.invalidate();
      catalog.warm();
      monitor.refresh();
      log.write("info", "config_reloaded", { needs_restart: needsRestart });
      return needsRestart;
    },
    async stop(graceMs) {
      feed.close();
      await server.stop(graceMs);
      upkeep.stop();
      metricsEndpoint.close();
      bodyWatch.close();
      await monitor.close();
      await refresher.close();
      await directory.close();
      usage.flush();
      affinity.flush();
      outside.upstream.close();
      log.write("info", "stopped");
      await log.close();
      database.close();
    },
  };
}
