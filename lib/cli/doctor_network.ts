/**
 * What the doctor sees on the network: who has the port, and whether the upstreams can be reached and are the right ones.
 */
import type { Config } from "../config_types.ts";
import type { Clock, Upstream } from "../ports.ts";
import {
  createEgress,
  type Egress,
  NO_PROXY_ENVIRONMENT,
  type ProxyEnvironment,
} from "../upstream/egress_proxy.ts";
import { createUpstream } from "../upstream/http_client.ts";
import type { Call } from "./command.ts";
import { fault, type Finding, ok, warning } from "./finding.ts";
import { callOnce, describeCause, type SmallAnswer } from "./http.ts";
import { localUrl } from "./management_client.ts";
import { duration } from "./terminal.ts";

const LOCAL_TIMEOUT_MS = 3_000;
const UPSTREAM_TIMEOUT_MS = 10_000;
/** Tokens and stated times survive this; an answer's own age and whole seconds are within it. */
const CLOCK_WARNING_MS = 60_000;
/** Beyond it, tokens look expired that are not, and waits end at the wrong time. */
const CLOCK_FAULT_MS = 300_000;

export interface RunningCheck {
  readonly findings: readonly Finding[];
  /** A Holdfast answers where this configuration listens. */
  readonly isHoldfast: boolean;
}

export async function checkRunning(config: Config, call: Call): Promise<RunningCheck> {
  const url = call.option("url") ?? call.host.env("HOLDFAST_URL") ?? localUrl(config);
  if (url === null) {
    return {
      findings: [warning("running", "The port is chosen at start: nothing to look at")],
      isHoldfast: false,
    };
  }
  const { clock } = call.host;
  const upstream = createUpstream({ clock, proxyUrl: "direct", environment: NO_PROXY_ENVIRONMENT });
  try {
    const answer = await callOnce(upstream, clock, {
      method: "GET",
      url: `${url}/`,
      timeoutMs: LOCAL_TIMEOUT_MS,
    });
    if (answer.ok && answer.json?.["name"] === "holdfast") {
      const ready = await callOnce(upstream, clock, {
        method: "GET",
        url: `${url}/readyz`,
        timeoutMs: LOCAL_TIMEOUT_MS,
      });
      return { findings: [describeReady(url, ready, answer.json["version"])], isHoldfast: true };
    }
    return { findings: [checkPort(config, url, answer)], isHoldfast: false };
  } finally {
    upstream.close();
  }
}

function describeReady(url: string, ready: SmallAnswer, version: unknown): Finding {
  if (ready.ok && ready.status === 200) return ok("running", `Holdfast ${version} runs at ${url}`);
  const reason = ready.ok ? ready.json?.["reason"] : null;
  return fault("running", `Holdfast runs at ${url} but is not ready: ${reason ?? "it does not say why"}`);
}

function checkPort(config: Config, url: string, answer: SmallAnswer): Finding {
  const taken = fault(
    "port",
    `Port ${config.port} is taken by another program: what answers at ${url} is not Holdfast`,
    'Stop that program, or choose another "port"',
  );
  if (answer.ok || answer.cause !== "refused") return taken;
  try {
    const listener = Deno.listen({ hostname: config.host, port: config.port });
    listener.close();
    return warning(
      "running",
      `Holdfast is not running at ${url}; the port is free`,
      "Start it with: holdfast serve",
    );
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return taken;
    if (error instanceof Deno.errors.AddrNotAvailable) {
      return fault("port", `This machine has no address ${config.host} to listen on`, 'Correct "host"');
    }
    return fault(
      "port",
      `Listening on ${config.host}:${config.port} is not permitted`,
      'Choose a "port" above 1023',
    );
  }
}

/** One address to ask, without any credential, and what an answer of the right host looks like. */
interface Target {
  /** Key of the configuration, for messages. */
  readonly key: string;
  readonly baseUrl: string;
  readonly url: string;
  /** A 404 means that the address is not the one meant. */
  readonly knowsPath: boolean;
}

export async function checkUpstreams(
  config: Config,
  usesCodex: boolean,
  environment: ProxyEnvironment,
  upstream: Upstream,
  clock: Clock,
): Promise<Finding[]> {
  const egress = createEgress(config.proxyUrl, environment);
  const answers = await Promise.all(
    targetsOf(config, usesCodex).map(async (target) => ({
      target,
      answer: await callOnce(upstream, clock, {
        method: "GET",
        url: target.url,
        timeoutMs: UPSTREAM_TIMEOUT_MS,
      }),
      atMs: clock.now(),
    })),
  );
  return [
    ...answers.map(({ target, answer }) => judge(target, answer, egress)),
    ...checkClock(answers),
  ];
}

function targetsOf(config: Config, usesCodex: boolean): Target[] {
  const targets = usesCodex ? codexTargets(config) : [];
  for (const { id, kind, baseUrl } of config.providers) {
    const path = { anthropic: "/v1/models", openai: "/models", zai: "" }[kind];
    targets.push({
      key: `base-url of provider ${id}`,
      baseUrl,
      url: `${baseUrl}${path}`,
      // Not every compatible host lists its models, and z.ai has no page at its base.
      knowsPath: kind === "anthropic",
    });
  }
  return targets;
}

function codexTargets(config: Config): Target[] {
  const { codexBaseUrl, chatgptBaseUrl, codexRefreshTokenUrl } = config;
  return [
    {
      key: "codex-base-url",
      baseUrl: codexBaseUrl,
      url: `${codexBaseUrl}/models?client_version=1.0.0`,
      knowsPath: true,
    },
    {
      key: "chatgpt-base-url",
      baseUrl: chatgptBaseUrl,
      url: `${chatgptBaseUrl}/wham/usage`,
      knowsPath: true,
    },
    // Only tokens may be posted there; a GET proves the way, no more.
    {
      key: "codex-refresh-token-url",
      baseUrl: codexRefreshTokenUrl,
      url: codexRefreshTokenUrl,
      knowsPath: false,
    },
  ];
}

function judge(target: Target, answer: SmallAnswer, egress: Egress): Finding {
  const { host } = new URL(target.baseUrl);
  if (!answer.ok) {
    const proxy = egress.proxyFor(new URL(target.url));
    if (answer.cause === "egress_proxy" && proxy !== null) {
      return fault(
        "outbound_proxy",
        `The outbound proxy ${proxy.hostname}:${proxy.port} is down or refuses, so ${host} cannot be reached`,
        'Start the proxy, or correct "proxy-url" (direct: none)',
      );
    }
    const check = answer.cause === "dns" ? "dns" : "upstream";
    return fault(check, `${target.key}: ${describeCause(answer.cause, host)}`, remedyOf(answer.cause));
  }
  const { status, headers, json } = answer;
  const isPage = (headers.get("content-type") ?? "").includes("html");
  if (status >= 500) {
    return warning("upstream", `${target.key}: ${host} answers ${status}; it has trouble of its own`);
  }
  if (status === 403 && isPage) {
    return warning(
      "upstream",
      `${target.key}: ${host} answers with a challenge page (403)`,
      "Try another way out",
    );
  }
  const wrong = (status >= 300 && status < 400) || (isPage && status < 400) ||
    (target.knowsPath && (status === 404 || (status < 300 && json === null)));
  if (wrong) {
    return fault(
      "base_url",
      `${target.key} is wrong: ${target.baseUrl} answers ${status}${
        isPage ? " with a page" : ""
      }, which is not the API`,
      "Correct the address, or remove the key to use the default",
    );
  }
  return ok("upstream", `${target.key}: ${host} answers`);
}

function remedyOf(cause: string): string {
  switch (cause) {
    case "dns":
      return "Check the name, and name resolution on this machine";
    case "tls_certificate":
      return "A proxy that opens TLS? Trust its certificate with DENO_CERT, or go around it";
    default:
      return "Check the address, the firewall and the outbound proxy";
  }
}

/** The Date header of an answer against our clock: RFC 9110 section 6.6.1 gives it in whole seconds. */
function checkClock(answers: readonly { readonly answer: SmallAnswer; readonly atMs: number }[]): Finding[] {
  const offsets = answers.flatMap(({ answer, atMs }) => {
    const dateMs = answer.ok ? Date.parse(answer.headers.get("date") ?? "") : NaN;
    return Number.isNaN(dateMs) ? [] : [atMs - dateMs];
  }).sort((a, b) => a - b);
  // The middle one: a single host with a wrong clock must not accuse ours.
  const offset = offsets[Math.floor(offsets.length / 2)];
  if (offset === undefined) return [];
  const off = Math.abs(offset);
  if (off < CLOCK_WARNING_MS) return [ok("clock", "The clock agrees with the upstreams'")];
  const message = `The clock of this machine is ${duration(off)} ${offset > 0 ? "ahead" : "behind"}`;
  const remedy = "Set it by network time (systemd-timesyncd, chrony)";
  return [off < CLOCK_FAULT_MS ? warning("clock", message, remedy) : fault("clock", message, remedy)];
}
