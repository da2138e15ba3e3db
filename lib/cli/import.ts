/**
 * `holdfast import`: finds the Codex and Claude logins of this machine and takes them over.
 *
 * Codex logins are copied into auth-dir; Claude logins stay where they are and are named in the configuration. Each
 * is asked for at its provider first: one that is dead is refused here, with the reason, and not at its first use.
 */
import { basename, join, resolve } from "node:path";
import type { Config } from "../config_types.ts";
import { isInside } from "../config_values.ts";
import { writeYaml } from "../config_yaml.ts";
import { type CredentialRecord, maskEmail, parseCredentialFile } from "../core/credential.ts";
import { mergeTokens } from "../core/credential_merge.ts";
import { StoreFailure } from "../ports.ts";
import { createCredentialFiles } from "../store/credential_files.ts";
import { readProxyEnvironment } from "../upstream/egress_proxy.ts";
import { createUpstream } from "../upstream/http_client.ts";
import { createOauthClient } from "../upstream/oauth_client.ts";
import { answer, type Call, type Command, EXIT, problem, type Report, withProgress } from "./command.ts";
import type { Host } from "./host.ts";
import { saveCodexLogin } from "./auth_dir.ts";
import { checkLogin, type LoginCheck, type LoginCheckDeps } from "./login_check.ts";
import { withConfig } from "./management_client.ts";
import { type Style, table } from "./terminal.ts";

export const IMPORT: Command = {
  name: "import",
  summary: "Take over the Codex and Claude logins of this machine",
  details:
    "Looks at ~/.codex, ~/.claude and ~/.cli-proxy-api, or at the files and folders named. Each login is verified at its provider first; a token that has expired is renewed, and saved where it was found too.",
  positionals: [{ name: "PATH", summary: "files or folders to look at", required: false, rest: true }],
  options: [
    { name: "dry-run", value: null, summary: "Say what was found, and change nothing" },
    { name: "offline", value: null, summary: "Ask no provider: everything is taken over unverified" },
  ],
  examples: ["holdfast import", "holdfast import --dry-run", "holdfast import ~/backup/codex-logins"],
  run: (call) => withConfig(call, ({ config }) => importLogins(call, config)),
};

interface Found {
  readonly path: string;
  readonly text: string;
  readonly record: CredentialRecord;
}

/** One row of the report, and of its JSON. */
interface Imported {
  readonly source: string;
  readonly kind: "codex" | "anthropic";
  readonly email: string | null;
  readonly result: "copied" | "updated" | "in place" | "to configure" | "refused" | "found";
  readonly login: LoginCheck["state"] | "unchecked";
  readonly reason: string | null;
  readonly path: string | null;
}

async function importLogins(call: Call, config: Config): Promise<Report> {
  const { host } = call;
  const missing = namedPlaces(call).filter((path) => !exists(path));
  if (missing.length > 0) {
    const lines = missing.map((path) => `Cannot import: ${path} does not exist`);
    return problem(EXIT.notFound, "no_such_path", lines.join("\n"));
  }
  const found = await findLogins(call, config);
  if (found.length === 0) {
    const where = call.positionals.length > 0 ? "there" : "on this machine";
    return problem(
      EXIT.notFound,
      "nothing_found",
      `No Codex or Claude login was found ${where}\n${KEYRING_HINT}`,
    );
  }
  const environment = readProxyEnvironment((name) => host.env(name));
  const upstream = createUpstream({ clock: host.clock, proxyUrl: config.proxyUrl, environment });
  const deps = { config, upstream, issuer: createOauthClient(upstream, host.clock), clock: host.clock };
  try {
    const imported: Imported[] = [];
    // One after the other: two files can be one login, and its refresh token is good for one use.
    for (const login of found) {
      const asking = `Checking ${imported.length + 1} of ${found.length} …`;
      imported.push(await withProgress(call, asking, () => importOne(call, deps, login)));
    }
    return tell(call, config, imported);
  } catch (error) {
    if (error instanceof StoreFailure) return problem(EXIT.failed, "not_saved", error.message);
    throw error;
  } finally {
    upstream.close();
  }
}

const KEYRING_HINT =
  "A program may keep its login in the system's keyring: then sign in with `holdfast login codex` or `holdfast login claude`";

async function findLogins(call: Call, config: Config): Promise<Found[]> {
  const { host } = call;
  const named = namedPlaces(call);
  const places = named.length > 0 ? named : usualPlaces(host, config);
  const files = createCredentialFiles();
  const found = new Map<string, Found>();
  for (const place of places) {
    // A folder gives its files; a file is no folder and gives itself.
    const listing = isFolder(place) ? await files.list(place) : null;
    for (const path of listing?.files.map((file) => file.path) ?? [place]) {
      const read = await files.read(path);
      const parsed = read.kind === "text" ? parseCredentialFile(read.text) : null;
      if (read.kind === "text" && parsed?.kind === "credential") {
        found.set(realPath(path), { path, text: read.text, record: parsed.record });
      }
    }
  }
  return [...found.values()];
}

function namedPlaces({ host, positionals }: Call): string[] {
  return positionals.map((path) => resolve(host.workingDir, path));
}

/** The files of auth-dir count already; what lies there is shown as in place. */
function usualPlaces(host: Host, config: Config): string[] {
  return [
    config.authDir,
    join(host.env("CODEX_HOME") ?? join(host.homeDir, ".codex"), "auth.json"),
    join(host.env("CLAUDE_CONFIG_DIR") ?? join(host.homeDir, ".claude"), ".credentials.json"),
    join(host.homeDir, ".cli-proxy-api"),
  ];
}

async function importOne(call: Call, deps: LoginCheckDeps, found: Found): Promise<Imported> {
  const { path, record } = found;
  const row = {
    source: path,
    kind: record.kind,
    email: record.email === null ? null : maskEmail(record.email),
    reason: null,
    path: null,
  };
  const isInPlace = record.kind === "codex" && isInside(realPath(path), realPath(deps.config.authDir));
  if (call.flag("dry-run")) {
    return { ...row, result: isInPlace ? "in place" : "found", login: "unchecked" };
  }
  const check = call.flag("offline") ? null : await checkLogin(deps, record);
  if (check?.state === "refused") {
    return { ...row, result: "refused", login: "refused", reason: check.reason };
  }
  const isCopied = record.kind === "codex" && !isInPlace;
  // Saved to its source first: whatever goes wrong after, the login is not lost.
  const { text, isSaved } = check?.state === "verified" && check.renewed !== null
    ? await saveRenewed(found, check.renewed, deps.clock.now(), isCopied)
    : { text: found.text, isSaved: true };
  const login = check?.state ?? "unverified";
  const reason = check?.state === "unverified"
    ? check.reason
    : isSaved
    ? null
    : "its new tokens could not be saved where it was found: that copy is dead";
  if (isInPlace) return { ...row, result: "in place", login, reason, path };
  if (record.kind === "anthropic") return { ...row, result: "to configure", login, reason, path };
  return {
    ...row,
    login,
    reason,
    ...await saveCodexLogin(deps.config.authDir, text, basename(path, ".json")),
  };
}

/**
 * The file's text with its new tokens, saved where it was found.
 *
 * @throws StoreFailure where that file is the only place they could be kept
 */
async function saveRenewed(
  found: Found,
  tokens: Parameters<typeof mergeTokens>[1],
  nowMs: number,
  isCopied: boolean,
): Promise<{ text: string; isSaved: boolean }> {
  let text = mergeTokens(found.text, tokens, nowMs) ?? found.text;
  try {
    await createCredentialFiles().update(found.path, (present) => {
      const merged = mergeTokens(present, tokens, nowMs);
      text = merged ?? text;
      return merged;
    });
    return { text, isSaved: true };
  } catch (error) {
    if (isCopied && error instanceof StoreFailure) return { text, isSaved: false };
    throw error;
  }
}

function tell(call: Call, config: Config, imported: readonly Imported[]): Report {
  const provider = providerEntry(config, imported, call.host);
  const refused = imported.filter(({ result }) => result === "refused").length;
  const shared = imported.some(({ source, result }) =>
    result === "copied" && basename(source) === "auth.json"
  );
  const json = { logins: imported, provider, shared_login: shared };
  return answer(
    json,
    (style) => `${rows(imported, style)}${notes(provider, shared, style)}`,
    refused > 0 ? EXIT.failed : EXIT.ok,
  );
}

function rows(imported: readonly Imported[], style: Style): string {
  return table(
    ["LOGIN", "KIND", "RESULT", "LOGIN WORKS", "WHY"],
    imported.map((one) => [
      one.source,
      one.kind,
      { text: one.result, paint: one.result === "refused" ? "bad" : "good" },
      { text: one.login, paint: one.login === "verified" ? "good" : "warn" },
      one.reason ?? "",
    ]),
    style,
  );
}

function notes(provider: Record<string, unknown> | null, shared: boolean, { paint }: Style): string {
  const entry = provider === null
    ? ""
    : `\nFor the configuration, so that Claude is served:\n\n${writeYaml({ providers: [provider] })}`;
  const warning = shared
    ? `\n${
      paint.warn(
        "Codex and Holdfast hold one login now, and whoever renews it first signs the other out. Let Codex use Holdfast " +
          "(holdfast clients codex --write), or give Holdfast a login of its own (holdfast login codex)",
      )
    }\n`
    : "";
  return entry + warning;
}

/** What is not configured yet: Claude logins that were found, and keys of the environment. */
function providerEntry(
  config: Config,
  imported: readonly Imported[],
  host: Host,
): Record<string, unknown> | null {
  const configured = new Set(
    config.providers.flatMap(({ accounts }) => accounts.map((account) => account.credentialsPath)),
  );
  const logins = imported.filter(({ kind, result, source }) =>
    kind === "anthropic" && result === "to configure" && !configured.has(source)
  );
  const hasKey = (host.env("ANTHROPIC_API_KEY") ?? "") !== "";
  if (logins.length === 0) return null;
  return {
    id: "claude",
    kind: "anthropic",
    accounts: [
      ...logins.map(({ source }, index) => ({
        id: index === 0 ? "login" : `login-${index + 1}`,
        credentials: source,
      })),
      ...hasKey ? [{ id: "key", "api-key": "env:ANTHROPIC_API_KEY" }] : [],
    ],
  };
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/** What cannot be looked at may still be there. */
function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}
