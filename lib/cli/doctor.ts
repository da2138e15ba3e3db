/**
 * `holdfast doctor`: looks at everything a start and a request need, and names the cause of what is wrong.
 *
 * Looks only: no token is used, none is refreshed, no account is touched.
 */
import type { Config } from "../config_types.ts";
import { formatMistake } from "../config.ts";
import type { Upstream } from "../ports.ts";
import { readProxyEnvironment } from "../upstream/egress_proxy.ts";
import { createUpstream } from "../upstream/http_client.ts";
import { answer, type Call, type Command, EXIT, type Report, withProgress } from "./command.ts";
import { checkAccountStates, type RunningState } from "./doctor_accounts.ts";
import {
  checkAuthDir,
  checkConfigMode,
  checkCredentials,
  checkDatabase,
  type CredentialCheck,
} from "./doctor_files.ts";
import { checkRunning, checkUpstreams } from "./doctor_network.ts";
import { fault, type Finding, ok, warning } from "./finding.ts";
import { MANAGEMENT_OPTIONS, openManagement } from "./management_client.ts";
import { loadConfig } from "./settings.ts";
import { type Painter, printable, type Style } from "./terminal.ts";

export const DOCTOR: Command = {
  name: "doctor",
  summary: "Look at everything Holdfast needs, and name the cause of what is wrong",
  details:
    "Files, database, port, outbound proxy, name resolution, upstream addresses, the clock, and the accounts of the running Holdfast. No token is used or refreshed.",
  options: [
    ...MANAGEMENT_OPTIONS,
    { name: "offline", value: null, summary: "Send nothing to upstream hosts" },
  ],
  examples: ["holdfast doctor", "holdfast doctor --config /etc/holdfast/holdfast.yaml --json"],
  run: examine,
};

async function examine(call: Call): Promise<Report> {
  const load = loadConfig(call.option("config"), call.host);
  if (!load.ok) {
    const findings = load.mistakes.length === 0
      ? [fault("config", load.message)]
      : load.mistakes.map((mistake) => fault("config", formatMistake(mistake), "holdfast config check"));
    // Nothing else can be looked at: where the files are is said in the one that cannot be read.
    return tell(findings);
  }
  const { config, path, warnings } = load.loaded;
  const findings = [
    ok("config", path === null ? "No configuration file; the defaults are used" : `${path} can be read`),
    ...warnings.map((message) => warning("config", message)),
    ...path === null ? [] : checkConfigMode(path),
  ];
  const running = await checkRunning(config, call);
  findings.push(...running.findings);
  findings.push(...checkAuthDir(config));
  const credentials = await checkCredentials(config, call.host.clock.now());
  findings.push(...credentials.findings);
  findings.push(...checkDatabase(config, running.isHoldfast));
  findings.push(...await checkAccounts(call, config, running.isHoldfast, credentials));
  if (!call.flag("offline")) {
    const ask = () => askUpstreams(call, config, credentials.usesCodex);
    findings.push(...await withProgress(call, "Asking the upstreams …", ask));
  }
  return tell(findings);
}

async function checkAccounts(
  call: Call,
  config: Config,
  isRunning: boolean,
  { accountCount }: CredentialCheck,
): Promise<readonly Finding[]> {
  const state = isRunning ? await readRunningState(call, config) : null;
  return checkAccountStates(config, state, accountCount, call.host.clock.now());
}

/** @returns the reason as text where the running process cannot be asked. */
async function readRunningState(call: Call, config: Config): Promise<RunningState | string> {
  const opened = openManagement(call, config);
  if ("report" in opened) return messageOf(opened.report);
  return await opened.use(async (management) => {
    const accounts = await management.call("GET", "accounts");
    if (!accounts.ok) return messageOf(accounts.report);
    const providers = await management.call("GET", "providers");
    if (!providers.ok) return messageOf(providers.report);
    return { accounts: accounts.json, providers: providers.json } as unknown as RunningState;
  });
}

function messageOf(report: Report): string {
  return report.kind === "problem" ? report.message : "";
}

async function askUpstreams(call: Call, config: Config, usesCodex: boolean): Promise<readonly Finding[]> {
  const { host } = call;
  const environment = readProxyEnvironment((name) => host.env(name));
  let upstream: Upstream;
  try {
    upstream = createUpstream({ clock: host.clock, proxyUrl: config.proxyUrl, environment });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [fault("outbound_proxy", error.message, "Correct the variable, or set proxy-url (direct: none)")];
  }
  try {
    return await checkUpstreams(config, usesCodex, environment, upstream, host.clock);
  } finally {
    upstream.close();
  }
}

function tell(findings: readonly Finding[]): Report {
  const count = (verdict: Finding["verdict"]) => findings.filter((one) => one.verdict === verdict).length;
  const faults = count("fault");
  const json = { healthy: faults === 0, faults, warnings: count("warning"), findings };
  return answer(json, (style) => {
    const last = faults > 0
      ? style.paint.bad(`${faults} fault${faults === 1 ? "" : "s"} found`)
      : style.paint.good("Nothing is wrong");
    return `${findings.map((finding) => showFinding(finding, style)).join("")}\n${last}\n`;
  }, faults === 0 ? EXIT.ok : EXIT.failed);
}

const MARKS: Readonly<Record<Finding["verdict"], readonly [string, keyof Painter]>> = {
  ok: ["ok     ", "good"],
  warning: ["warning", "warn"],
  fault: ["FAULT  ", "bad"],
};

function showFinding({ verdict, message, remedy }: Finding, { paint }: Style): string {
  const [mark, colour] = MARKS[verdict];
  const rest = remedy === null ? "" : `         ${paint.faint(printable(remedy))}\n`;
  return `${paint[colour](mark)}  ${printable(message)}\n${rest}`;
}
