/**
 * `holdfast users …`: managed users and their keys.
 *
 * Where no Holdfast runs, the same calls are made on the database itself: the first user can be there before the
 * first start, which beyond loopback is the only way to start.
 */
import { createUserRoutes } from "../proxy/user_routes.ts";
import { StoreFailure } from "../ports.ts";
import { SqliteAccountStore } from "../store/account_store.ts";
import { openDatabase } from "../store/database.ts";
import type { Config } from "../config_types.ts";
import { answer, type Call, type Command, EXIT, problem, type Report } from "./command.ts";
import { readObject } from "./http.ts";
import {
  type Json,
  type Management,
  MANAGEMENT_OPTIONS,
  type ManagementAnswer,
  openManagement,
  withConfig,
} from "./management_client.ts";
import { relativeTime, type Style, table } from "./terminal.ts";
import type { Answer } from "../proxy/answer.ts";
import { ownRequest } from "../proxy/client_request.ts";

interface UserJson {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly key_hint: string;
  readonly created_at: string;
  readonly key_created_at: string;
  readonly api_key?: string;
}

const USER = { name: "USER", summary: "name or id of the user", required: true };

export const USERS: Command = {
  name: "users",
  summary: "Show, add and switch managed users, and give them new keys",
  details: "Without a running Holdfast the database is used directly.",
  implied: "list",
  examples: ["holdfast users add laptop", "holdfast users reset-key laptop", "holdfast users list --json"],
  subcommands: [
    {
      name: "list",
      summary: "Every managed user",
      options: MANAGEMENT_OPTIONS,
      examples: ["holdfast users list"],
      run: (call) => withUsers(call, listUsers),
    },
    {
      name: "add",
      summary: "Make a user; the key is shown this once",
      positionals: [{ name: "NAME", summary: "name of the new user", required: true }],
      options: MANAGEMENT_OPTIONS,
      examples: ["holdfast users add laptop", "KEY=$(holdfast users add ci --json | jq -r .api_key)"],
      run: (call) =>
        withUsers(call, async (users) => {
          const made = await users.call("POST", "users", { name: call.positional(0) });
          return made.ok ? showUser(made.json as unknown as UserJson) : made.report;
        }),
    },
    {
      name: "show",
      summary: "One user",
      positionals: [USER],
      options: MANAGEMENT_OPTIONS,
      examples: ["holdfast users show laptop"],
      run: (call) => onUser(call, (_, user) => Promise.resolve(showUser(user))),
    },
    changing("enable", "Let a user in again", "PATCH", "", { enabled: true }),
    changing("disable", "Refuse a user's key from now on", "PATCH", "", { enabled: false }),
    changing(
      "reset-key",
      "Give a user a new key, shown this once; the old one ends at once, sessions and usage stay",
      "POST",
      "/api-key/reset",
      {},
    ),
  ],
};

function changing(name: string, summary: string, method: string, suffix: string, body: Json): Command {
  return {
    name,
    summary,
    positionals: [USER],
    options: MANAGEMENT_OPTIONS,
    examples: [`holdfast users ${name} laptop`],
    run: (call) =>
      onUser(call, async (users, user) => {
        const changed = await users.call(method, `users/${user.id}${suffix}`, body);
        return changed.ok ? showUser(changed.json as unknown as UserJson) : changed.report;
      }),
  };
}

type Users = Pick<Management, "call">;

async function listUsers(users: Users): Promise<Report> {
  const listed = await users.call("GET", "users");
  if (!listed.ok) return listed.report;
  const all = listed.json["users"] as readonly UserJson[];
  return answer(listed.json, (style) => {
    if (all.length === 0) return "There is no managed user; make one with: holdfast users add NAME\n";
    return table(
      ["NAME", "ID", "STATE", "KEY MADE", "KEY HINT"],
      all.map((user) => [
        user.name,
        user.id,
        user.enabled ? { text: "enabled", paint: "good" } : { text: "disabled", paint: "warn" },
        relativeTime(user.key_created_at, style.nowMs),
        user.key_hint,
      ]),
      style,
    );
  });
}

function showUser(user: UserJson): Report {
  return answer(user, (style) => {
    const told = [
      style.paint.strong(user.name),
      `  Id        ${user.id}`,
      `  State     ${user.enabled ? style.paint.good("enabled") : style.paint.warn("disabled")}`,
      `  Made      ${relativeTime(user.created_at, style.nowMs)}`,
      `  Key made  ${relativeTime(user.key_created_at, style.nowMs)} (hint ${user.key_hint})`,
    ];
    return `${told.join("\n")}\n${user.api_key === undefined ? "" : tellKey(user.api_key, style)}`;
  });
}

function tellKey(key: string, style: Style): string {
  return `\nThe key is shown this once and kept only as a hash:\n\n  ${style.paint.strong(key)}\n`;
}

function onUser(call: Call, work: (users: Users, user: UserJson) => Promise<Report>): Promise<Report> {
  return withUsers(call, async (users) => {
    const listed = await users.call("GET", "users");
    if (!listed.ok) return listed.report;
    const wanted = call.positional(0);
    const all = listed.json["users"] as readonly UserJson[];
    const user = all.find(({ id }) => id === wanted) ?? all.find(({ name }) => name === wanted);
    if (user !== undefined) return await work(users, user);
    return problem(EXIT.notFound, "not_found", `There is no user ${JSON.stringify(wanted)}`);
  });
}

/** By way of the running Holdfast; where none answers, on its database. */
function withUsers(call: Call, work: (users: Users) => Promise<Report>): Promise<Report> {
  return withConfig(call, async ({ config }) => {
    const opened = openManagement(call, config);
    const named = call.option("url") ?? call.host.env("HOLDFAST_URL") ?? null;
    if ("report" in opened) {
      // Without an admin key the running process cannot be asked; its database says whether there is one.
      if (named !== null) return opened.report;
      const hint = 'or set "admin-api-key", with which the running one can be asked';
      return await onDatabase(call, config, work, hint);
    }
    return await opened.use(async (management) => {
      const probe = await management.call("GET", "users");
      if (probe.ok) return await work(management);
      const isAbsent = probe.report.kind === "problem" && probe.report.exit === EXIT.notRunning;
      return isAbsent && named === null ? await onDatabase(call, config, work) : probe.report;
    });
  });
}

async function onDatabase(
  call: Call,
  config: Config,
  work: (users: Users) => Promise<Report>,
  hint: string | null = null,
): Promise<Report> {
  const { clock, digest, ids } = call.host;
  try {
    using database = openDatabase(config.databasePath);
    const accounts = new SqliteAccountStore(database);
    const routes = createUserRoutes({ accounts, clock, digest, ids, log: { write: () => {} } });
    return await work({
      async call(method, path, body) {
        const target = `/v0/management/${path}`;
        const request = ownRequest(method, target, body === undefined ? null : JSON.stringify(body));
        return readRoute(await routes(request, target, () => true));
      },
    });
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error;
    return problem(EXIT.failed, "database", hint === null ? error.message : `${error.message}; ${hint}`);
  }
}

function readRoute(answer: Answer | null): ManagementAnswer {
  const json = answer?.body instanceof Uint8Array ? readObject(new TextDecoder().decode(answer.body)) : null;
  if (answer !== null && json !== null && answer.status < 300) return { ok: true, json };
  const { error } = json as { error?: { code?: string; message?: string } };
  const exit = answer?.status === 404 ? EXIT.notFound : EXIT.failed;
  return { ok: false, report: problem(exit, error?.code ?? "failed", error?.message ?? "It did not work") };
}
