/**
 * What the doctor says of accounts: that there are some, and that not all of them rest.
 */
import type { Config } from "../config_types.ts";
import { SqlitePoolStore } from "../store/pool_store.ts";
import { openDatabase } from "../store/database.ts";
import { fault, type Finding, ok, warning } from "./finding.ts";
import { duration } from "./terminal.ts";

/** Of `GET /v0/management/accounts` and `/providers`, what matters here. */
export interface RunningState {
  readonly accounts: {
    readonly accounts: readonly {
      readonly id: string;
      readonly state: "healthy" | "cooling" | "parked" | "unavailable" | "disabled";
      readonly reason: string | null;
      readonly until: string | null;
      readonly deadline_contradicted: boolean;
    }[];
  };
  readonly providers: {
    readonly providers: readonly {
      readonly id: string;
      readonly cooldown: { readonly until: string; readonly reason: string } | null;
    }[];
    readonly network_pause: {
      readonly until: string;
      readonly probe: { readonly state: string };
    } | null;
  };
}

type AccountState = RunningState["accounts"]["accounts"][number];

/**
 * @param state  of the running process; a text says why it could not be asked; null: none runs.
 * @param accountCount  accounts that files and configuration give.
 */
export function checkAccountStates(
  config: Config,
  state: RunningState | string | null,
  accountCount: number,
  nowMs: number,
): Finding[] {
  if (state === null || typeof state === "string") {
    const findings = accountCount === 0
      ? [noAccounts(config)]
      : [ok("accounts", `${count(accountCount)} found`)];
    if (state !== null) {
      findings.push(warning("accounts", `What the accounts are doing is not known: ${state}`));
    }
    return state === null && accountCount > 0
      ? [...findings, ...checkStored(config, accountCount, nowMs)]
      : findings;
  }
  const { accounts } = state.accounts;
  if (accounts.length === 0) return [noAccounts(config)];
  return [
    ...checkHealth(accounts, nowMs),
    ...accounts.filter(({ state }) => state === "unavailable").map(deadAccount),
    ...accounts.filter((account) => account.deadline_contradicted).map(contradicted),
    ...checkProviders(state.providers, nowMs),
  ];
}

function noAccounts({ authDir }: Config): Finding {
  return fault(
    "accounts",
    `There is no account: no Codex login in ${authDir}, and no provider in the configuration`,
    "holdfast import finds logins of this machine; holdfast login codex makes one",
  );
}

function checkHealth(accounts: readonly AccountState[], nowMs: number): Finding[] {
  const healthy = accounts.filter(({ state }) => state === "healthy").length;
  if (healthy > 0) return [ok("accounts", `${healthy} of ${count(accounts.length)} can serve now`)];
  if (accounts.every(({ state }) => state === "disabled")) {
    return [fault("accounts", `All ${count(accounts.length)} are disabled`, "holdfast accounts enable ID")];
  }
  const parked = accounts.every(({ state }) => state === "parked");
  const times = accounts.flatMap(({ until }) => until === null ? [] : Date.parse(until));
  const when = times.length === 0
    ? "none comes back by itself"
    : `the first is back in ${duration(Math.max(0, Math.min(...times) - nowMs))}`;
  const what = parked ? "are parked, their quota is used up" : "rest";
  return [fault("accounts", `All ${count(accounts.length)} ${what}: ${when}`, "holdfast accounts")];
}

function deadAccount({ id, reason }: AccountState): Finding {
  if (reason === "credits") {
    return fault("account", `${id} has no credits left`, `After a top-up: holdfast accounts topped-up ${id}`);
  }
  return fault("account", `The login of ${id} is refused or expired`, "Sign in again: holdfast login --help");
}

function contradicted({ id }: AccountState): Finding {
  return warning(
    "account",
    `${id} is blocked until a stated time, but a newer usage reading shows headroom`,
    `To end the block early: holdfast accounts reset ${id}`,
  );
}

function checkProviders(state: RunningState["providers"], nowMs: number): Finding[] {
  const left = (until: string) => duration(Math.max(0, Date.parse(until) - nowMs));
  const cooling = state.providers.flatMap(({ id, cooldown }) =>
    cooldown === null ? [] : warning(
      "provider",
      `Provider ${id} rests for ${left(cooldown.until)}: ${cooldown.reason.replaceAll("_", " ")}`,
    )
  );
  const { network_pause: pause } = state;
  if (pause === null) return cooling;
  const what = Date.parse(pause.until) > nowMs
    ? `Nothing is sent for ${left(pause.until)}`
    : pause.probe.state === "leased"
    ? "One request is testing the network"
    : "The next request tests the network";
  return [...cooling, fault("network", `${what}: several providers could not be reached`)];
}

/** No process runs: what it wrote down still says who will be blocked when it starts. */
function checkStored(config: Config, accountCount: number, nowMs: number): Finding[] {
  try {
    using database = openDatabase(config.databasePath, { readOnly: true });
    const stored = new SqlitePoolStore(database).load();
    const deadlines = stored.deadlines.filter(({ model, deadline }) =>
      model === null && deadline.untilMs > nowMs
    );
    const dead = stored.credentials.filter(({ block }) => block.kind === "invalid_grant");
    const blocked = new Set([...deadlines, ...dead, ...stored.credits].map(({ account }) => account));
    for (const account of stored.disabled) blocked.add(account);
    const findings = dead.map(({ account }) =>
      fault(
        "account",
        `The login of ${account} was refused by its issuer`,
        "Sign in again: holdfast login --help",
      )
    );
    if (blocked.size < accountCount) return findings;
    const next = Math.min(...deadlines.map(({ deadline }) => deadline.untilMs));
    const when = Number.isFinite(next)
      ? `the first is back in ${duration(next - nowMs)}`
      : "none comes back by itself";
    return [
      ...findings,
      fault("accounts", `All ${count(accountCount)} were blocked when Holdfast ended: ${when}`),
    ];
  } catch {
    // No database yet, or one that its own check has spoken of.
    return [];
  }
}

function count(number: number): string {
  return `${number} account${number === 1 ? "" : "s"}`;
}
