/**
 * The real outside world of a configuration: clock, chance, log, network, disk.
 */
import type { Outside } from "../app_types.ts";
import type { Config } from "../config_types.ts";
import { traceDecision } from "../proxy/trace_spans.ts";
import { createIds, createRandom } from "../runtime/chance.ts";
import { createClock } from "../runtime/clock.ts";
import { createDigest } from "../runtime/digest.ts";
import { createInflate } from "../runtime/inflate.ts";
import { createLog, type LogSink } from "../runtime/log.ts";
import { openTracer } from "../runtime/tracer.ts";
import { createCredentialFiles } from "../store/credential_files.ts";
import { openDatabase } from "../store/database.ts";
import { readProxyEnvironment } from "../upstream/egress_proxy.ts";
import { createNetwork } from "../upstream/network.ts";
import { createUsageClient } from "../upstream/usage_client.ts";
import { createOauthClient } from "../upstream/oauth_client.ts";
import { VERSION } from "../version.ts";

/** @throws StoreFailure when the database cannot be opened; SyntaxError for a proxy URL that cannot be read. */
export function openOutside(config: Config, sink?: LogSink): Outside {
  const clock = createClock();
  const tracer = openTracer(VERSION, (name) => Deno.env.get(name));
  const environment = readProxyEnvironment((name) => Deno.env.get(name));
  const network = createNetwork({ clock, proxyUrl: config.proxyUrl, environment });
  const { upstream, dialer } = network;
  return {
    clock,
    random: createRandom(),
    ids: createIds(),
    digest: createDigest(),
    inflate: createInflate(),
    log: createLog(config.logging, clock, sink),
    upstream,
    dialer,
    useProxy: network.useProxy,
    issuer: createOauthClient(upstream, clock),
    usagePages: createUsageClient(upstream, clock),
    files: createCredentialFiles(),
    database: openDatabase(config.databasePath),
    ...(tracer === null ? {} : { trace: (record) => traceDecision(tracer, record) }),
  };
}
