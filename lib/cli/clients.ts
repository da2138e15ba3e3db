/**
 * `holdfast clients …`: the settings of a client, printed, or put into its own file after a backup.
 */
import { dirname, join, resolve } from "node:path";
import type { Config } from "../config_types.ts";
import {
  claudeCodeVariables,
  CODEX_KEY_VARIABLE,
  codexProvider,
  codexToml,
  openaiVariables,
  shellExports,
} from "./client_settings.ts";
import { answer, type Call, type Command, EXIT, problem, type Report } from "./command.ts";
import type { Host } from "./host.ts";
import { localUrl, withConfig } from "./management_client.ts";
import { replaceFile } from "./private_file.ts";
import { type Merge, mergeClaudeSettings, mergeCodexToml, mergeDotenv } from "./merge_settings.ts";

const OPTIONS = [
  {
    name: "write",
    value: null,
    summary: "Merge the settings into the client's file, after a backup beside it",
  },
  { name: "file", value: "FILE", summary: "The client's file; left out: where the client looks for it" },
  {
    name: "url",
    value: "URL",
    summary: "Where the client reaches Holdfast; left out: where the configuration says",
  },
] as const;

export const CLIENTS: Command = {
  name: "clients",
  summary: "The settings of a client, printed or merged into its file",
  details:
    "The client key is taken from HOLDFAST_KEY, else from api-keys; `holdfast users add NAME` makes one.",
  examples: ["holdfast clients codex", "holdfast clients claude-code --write"],
  subcommands: [
    client("codex", "Codex CLI: ~/.codex/config.toml", {
      file: (host) => join(host.env("CODEX_HOME") ?? join(host.homeDir, ".codex"), "config.toml"),
      needsKey: false,
      show: (url) => codexToml(url),
      merge: (text, url) => mergeCodexToml(text, codexProvider(url)),
      after: `Set ${CODEX_KEY_VARIABLE} to a client key before codex starts`,
    }),
    client("claude-code", "Claude Code: ~/.claude/settings.json", {
      file: (host) => join(host.env("CLAUDE_CONFIG_DIR") ?? join(host.homeDir, ".claude"), "settings.json"),
      needsKey: true,
      show: (url, key) => shellExports(claudeCodeVariables(url, key)),
      merge: (text, url, key) => mergeClaudeSettings(text, claudeCodeVariables(url, key)),
      after: null,
    }),
    client("openai", "OpenAI SDKs: a .env file", {
      file: (host) => join(host.workingDir, ".env"),
      needsKey: true,
      show: (url, key) => shellExports(openaiVariables(url, key)),
      merge: (text, url, key) => mergeDotenv(text, openaiVariables(url, key)),
      after: null,
    }),
  ],
};

interface Client {
  file(host: Host): string;
  /** The settings hold the key itself. */
  readonly needsKey: boolean;
  show(url: string, key: string): string;
  merge(text: string, url: string, key: string): Merge;
  readonly after: string | null;
}

function client(name: string, summary: string, facts: Client): Command {
  return {
    name,
    summary,
    options: OPTIONS,
    examples: [`holdfast clients ${name}`, `holdfast clients ${name} --write`],
    run: (call) =>
      withConfig(call, ({ config }) => Promise.resolve(configureClient(call, config, name, facts))),
  };
}

const PLACEHOLDER = "YOUR-CLIENT-KEY";

function configureClient(call: Call, config: Config, name: string, facts: Client): Report {
  const { host } = call;
  const url = (call.option("url") ?? localUrl(config) ?? "").replace(/\/+$/, "");
  if (!URL.canParse(url)) {
    return problem(EXIT.usage, "no_address", "Say where Holdfast listens: --url http://127.0.0.1:8317");
  }
  const known = host.env(CODEX_KEY_VARIABLE) ?? config.apiKeys[0] ?? null;
  const file = resolve(host.workingDir, call.option("file") ?? facts.file(host));
  const settings = facts.show(url, known ?? PLACEHOLDER);
  const json = { client: name, url, file, settings, written: false, backup: null as string | null };
  if (!call.flag("write")) {
    return answer(json, ({ paint }) => {
      const hint = facts.after ??
        (facts.needsKey && known === null ? `Put a client key in place of ${PLACEHOLDER}` : "");
      return `${settings}${hint === "" ? "" : `\n${paint.faint(`# ${hint}`)}\n`}`;
    });
  }
  if (facts.needsKey && known === null) {
    const why =
      `The settings hold a client key: set ${CODEX_KEY_VARIABLE} to one (holdfast users add NAME makes it)`;
    return problem(EXIT.usage, "no_client_key", why);
  }
  const written = mergeFile(
    file,
    (text) => facts.merge(text, url, known ?? PLACEHOLDER),
    facts.needsKey,
    host,
  );
  if (!written.ok) return problem(EXIT.failed, "not_merged", `Cannot merge into ${file}: ${written.problem}`);
  const { backup, notes, changed } = written;
  return answer({ ...json, written: changed, backup, notes }, ({ paint }) => {
    const done = changed ? paint.good(`Merged into ${file}`) : `${file} has these settings already`;
    const kept = backup === null ? "" : `\nThe file as it was: ${backup}`;
    const after = [...notes, ...facts.after === null ? [] : [facts.after]];
    return `${done}${kept}\n${after.map((note) => `${paint.warn(note)}\n`).join("")}`;
  });
}

type Written =
  | {
    readonly ok: true;
    readonly changed: boolean;
    readonly backup: string | null;
    readonly notes: readonly string[];
  }
  | { readonly ok: false; readonly problem: string };

/**
 * Replaces the file whole or not at all; the one it was stays beside it.
 *
 * @param holdsKey  the new text holds a key: others of this machine must not read it, whoever could read the old one.
 */
export function mergeFile(
  path: string,
  merge: (text: string) => Merge,
  holdsKey: boolean,
  host: Pick<Host, "clock">,
): Written {
  try {
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const present = readPresent(path);
    const merged = merge(present?.text ?? "");
    if (!merged.ok) return merged;
    if (present !== null && merged.text === present.text) {
      return { ok: true, changed: false, backup: null, notes: merged.notes };
    }
    const target = present?.target ?? path;
    let backup: string | null = null;
    if (present !== null) {
      backup = `${target}.before-holdfast-${stamp(host.clock.now())}`;
      replaceFile(backup, present.text, present.mode);
    }
    const mode = present?.mode ?? 0o600;
    replaceFile(target, merged.text, holdsKey ? mode & 0o700 : mode);
    return { ok: true, changed: true, backup, notes: merged.notes };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "it cannot be written";
    return { ok: false, problem: code };
  }
}

function readPresent(path: string): { text: string; target: string; mode: number } | null {
  try {
    const target = Deno.realPathSync(path);
    return { text: Deno.readTextFileSync(target), target, mode: Deno.statSync(target).mode ?? 0o600 };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function stamp(nowMs: number): string {
  return new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+Z$/g, "").replace("T", "-");
}
