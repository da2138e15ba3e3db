/**
 * `holdfast accounts …`: what each account is doing, and the operator's switches.
 */
import { answer, type Call, type Command, EXIT, problem, type Report } from "./command.ts";
import { type Json, type Management, MANAGEMENT_OPTIONS, withManagement } from "./management_client.ts";
import { type Cell, duration, relativeTime, type Row, type Style, table } from "./terminal.ts";

/** As `GET /v0/management/accounts` gives it. */
interface AccountJson {
  readonly id: string;
  readonly provider: string;
  readonly email: string | null;
  readonly plan: string | null;
  readonly enabled: boolean;
  readonly state: "healthy" | "cooling" | "parked" | "unavailable" | "disabled";
  readonly reason: string | null;
  readonly until: string | null;
  readonly source: string | null;
  readonly persisted: boolean;
  readonly models_excluded: readonly string[];
  readonly quota: {
    readonly windows: readonly {
      readonly name: string;
      readonly used_percent: number | null;
      readonly reset_at: string | null;
    }[];
    readonly observed_at: string | null;
  };
  readonly deadline_contradicted: boolean;
  readonly in_flight: number;
  readonly last_success_at: string | null;
}

const ID = {
  name: "ID",
  summary: "account, or a part of its id or its e-mail (whole, or what is before the @) that fits one alone",
  required: true,
};
const EXAMPLE_ID = "codex:acct";

export const ACCOUNTS: Command = {
  name: "accounts",
  summary: "Show the accounts of the running Holdfast, and switch them",
  implied: "list",
  examples: ["holdfast accounts", `holdfast accounts disable ${EXAMPLE_ID}`, "holdfast accounts --json"],
  subcommands: [
    {
      name: "list",
      summary: "Every account with its state, the reason, when it is back, and its quota",
      options: MANAGEMENT_OPTIONS,
      examples: ["holdfast accounts list", "holdfast accounts list --json"],
      run: (call) => withManagement(call, listAccounts),
    },
    {
      name: "show",
      summary: "One account in full",
      positionals: [ID],
      options: MANAGEMENT_OPTIONS,
      examples: [`holdfast accounts show ${EXAMPLE_ID}`],
      run: (call) => onAccount(call, (_, account) => Promise.resolve(showAccount(account))),
    },
    changing("enable", "Let an account serve again", "PATCH", "", { enabled: true }),
    changing("disable", "Take an account out of service; what it is serving goes on", "PATCH", "", {
      enabled: false,
    }),
    changing(
      "reset",
      "Clear the time blocks of an account: deadlines, parks, cooldowns",
      "POST",
      "/reset",
      {},
    ),
    changing("topped-up", "Say that an account has credits again", "POST", "/topped-up", {}),
  ],
};

function changing(name: string, summary: string, method: string, suffix: string, body: Json): Command {
  return {
    name,
    summary,
    positionals: [ID],
    options: MANAGEMENT_OPTIONS,
    examples: [`holdfast accounts ${name} ${EXAMPLE_ID}`],
    run: (call) =>
      onAccount(call, async (management, account) => {
        const path = `accounts/${encodeURIComponent(account.id)}${suffix}`;
        const changed = await management.call(method, path, body);
        return changed.ok ? showAccount(changed.json as unknown as AccountJson) : changed.report;
      }),
  };
}

async function listAccounts(management: Management): Promise<Report> {
  const listed = await management.call("GET", "accounts");
  if (!listed.ok) return listed.report;
  const accounts = listed.json["accounts"] as readonly AccountJson[];
  return answer(listed.json, (style) => {
    if (accounts.length === 0) {
      return "There is no account. Put Codex files into auth-dir, configure providers, or see: holdfast import --help\n";
    }
    return table(
      ["ID", "STATE", "REASON", "BACK", "QUOTA USED", "BUSY", "LAST SUCCESS"],
      accounts.map((account) => accountRow(account, style)),
      style,
    );
  });
}

function accountRow(account: AccountJson, style: Style): Row {
  return [
    account.id,
    stateCell(account),
    reasonOf(account),
    account.state === "healthy" ? "" : relativeTime(account.until, style.nowMs),
    quotaOf(account),
    account.in_flight === 0 ? "" : String(account.in_flight),
    relativeTime(account.last_success_at, style.nowMs),
  ];
}

function stateCell(account: AccountJson): Cell {
  const paint = account.state === "healthy" ? "good" : account.state === "unavailable" ? "bad" : "warn";
  return { text: account.state, paint };
}

function reasonOf(account: AccountJson): string {
  const { reason, source } = account;
  if (reason === null) return account.models_excluded.length > 0 ? "lacks some models" : "";
  const named = source === null || source === reason ? reason : `${reason} (${source})`;
  return named.replaceAll("_", " ") + (account.deadline_contradicted ? ", newer usage contradicts it" : "");
}

function quotaOf(account: AccountJson): string {
  return account.quota.windows.filter(({ used_percent }) => used_percent !== null)
    .map(({ name, used_percent }) => `${name} ${Math.round(used_percent!)} %`).join(", ");
}

function showAccount(account: AccountJson): Report {
  return answer(account, (style) => {
    const { paint } = style;
    const lines: [string, string][] = [
      ["State", paint[stateCell(account).paint!](account.state)],
      ["Reason", reasonOf(account)],
      ["Back", backOf(account, style.nowMs)],
      ["Provider", account.provider],
      ["E-mail", account.email ?? ""],
      ["Plan", account.plan ?? ""],
      ["Models it lacks", account.models_excluded.join(", ")],
      ["In flight", String(account.in_flight)],
      ["Last success", relativeTime(account.last_success_at, style.nowMs)],
      ...account.quota.windows.map(({ name, used_percent, reset_at }): [string, string] => [
        `Quota ${name}`,
        `${used_percent === null ? "unknown" : `${Math.round(used_percent)} % used`}${
          reset_at === null ? "" : `, resets ${relativeTime(reset_at, style.nowMs)}`
        }`,
      ]),
      ["Quota seen", relativeTime(account.quota.observed_at, style.nowMs)],
    ];
    const told = lines.filter(([, value]) => value !== "");
    const width = Math.max(...told.map(([name]) => name.length));
    return [
      paint.strong(account.id),
      ...told.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`),
      ...(account.deadline_contradicted
        ? [paint.warn("A newer usage reading shows headroom: `holdfast accounts reset` ends the block early")]
        : []),
    ].join("\n") + "\n";
  });
}

function backOf(account: AccountJson, nowMs: number): string {
  if (account.until === null) return account.state === "healthy" ? "" : "when somebody acts";
  const untilMs = Date.parse(account.until);
  const kept = account.persisted ? ", also over a restart" : "";
  return `${account.until} (in ${duration(Math.max(0, untilMs - nowMs))}${kept})`;
}

/** Finds the account that the first positional means. */
function onAccount(
  call: Call,
  work: (management: Management, account: AccountJson) => Promise<Report>,
): Promise<Report> {
  return withManagement(call, async (management) => {
    const wanted = call.positional(0);
    // Asked there, because whole e-mails stay there.
    const answered = await management.call("POST", "accounts/named", { name: wanted });
    if (!answered.ok) return answered.report;
    const found = answered.json["accounts"] as readonly AccountJson[];
    if (found.length === 1) return await work(management, found[0]!);
    if (found.length === 0) {
      return problem(EXIT.notFound, "not_found", `There is no account like ${JSON.stringify(wanted)}`);
    }
    const ids = found.map(({ id }) => `  ${id}`).join("\n");
    return problem(EXIT.usage, "ambiguous", `${JSON.stringify(wanted)} could be any of:\n${ids}`);
  });
}
