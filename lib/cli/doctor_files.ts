/**
 * What the doctor sees on disk: configuration, auth folder, credential files, database.
 */
import { statfsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { listensBeyondLoopback } from "../config.ts";
import type { Config } from "../config_types.ts";
import { credentialOwner, type CredentialRecord, parseCredentialFile } from "../core/credential.ts";
import { StoreFailure } from "../ports.ts";
import { SqliteAccountStore } from "../store/account_store.ts";
import { createCredentialFiles } from "../store/credential_files.ts";
import { databaseHolder } from "../store/database_file.ts";
import { type Database, openDatabase } from "../store/database.ts";
import { fault, type Finding, ok, warning } from "./finding.ts";
import { duration } from "./terminal.ts";

/** A write-ahead log and a backup fit; below it the next failed write ends the process (ruling 9). */
const LITTLE_SPACE_BYTES = 104_857_600;
/** Whoever is writing has that long before we call a database locked. */
const LOCK_WAIT_MS = 500;

/** A configuration that holds keys is as secret as they are. */
export function checkConfigMode(path: string): Finding[] {
  let text = "";
  try {
    text = Deno.readTextFileSync(path);
  } catch {
    return [];
  }
  const holdsKeys =
    /^\s*-?\s*\{?.*\b(?:api-key|admin-api-key)["']?\s*:\s*["']?(?!env:|none\b|["'\s]|$)/m.test(text) ||
    /^api-keys:\s*(?:\[\s*[^\]\s]|$)/m.test(text);
  return holdsKeys ? checkMode(path, "config_mode", `${path} holds keys and`, "warning") : [];
}

function checkMode(path: string, check: string, subject: string, verdict: "warning" | "fault"): Finding[] {
  let mode: number | null = null;
  try {
    mode = Deno.statSync(path).mode;
  } catch {
    return [];
  }
  if (mode === null || Deno.build.os === "windows" || (mode & 0o077) === 0) return [];
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  return [{
    check,
    verdict,
    message: `${subject} can be read by other users of this machine (mode ${shown})`,
    remedy: `chmod 600 ${path}`,
  }];
}

export function checkAuthDir({ authDir }: Config): Finding[] {
  try {
    if (!Deno.statSync(authDir).isDirectory) {
      return [fault("auth_dir", `auth-dir ${authDir} is not a folder`, 'Name a folder in "auth-dir"')];
    }
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "does not exist" : "cannot be looked into";
    return [
      warning("auth_dir", `auth-dir ${authDir} ${why}`, "Sign in with Codex, or: holdfast login codex"),
    ];
  }
  // By trying: modes say nothing about read-only mounts, and nothing to root.
  const probe = join(authDir, `.holdfast-doctor-${Deno.pid}`);
  try {
    Deno.openSync(probe, { write: true, createNew: true, mode: 0o600 }).close();
    Deno.removeSync(probe);
    return [ok("auth_dir", `auth-dir ${authDir} can be read and written`)];
  } catch (error) {
    const why = error instanceof Error && "code" in error ? ` (${error.code})` : "";
    return [fault(
      "auth_dir",
      `auth-dir ${authDir} cannot be written${why}: renewed tokens could not be saved, and logins would be lost`,
      "Give the user Holdfast runs as the right to write there; mount it read-write",
    )];
  }
}

export interface CredentialCheck {
  readonly findings: readonly Finding[];
  /** Accounts that files and configuration give. */
  readonly accountCount: number;
  /** False where there are only other providers: what Codex answers is then nobody's concern. */
  readonly usesCodex: boolean;
}

export async function checkCredentials(config: Config, nowMs: number): Promise<CredentialCheck> {
  const files = createCredentialFiles();
  const listing = await files.list(config.authDir);
  const found = (listing?.files ?? []).map(({ path, writable }) => ({ path, writable, named: false }));
  const named = config.providers.flatMap(({ accounts }) =>
    accounts.flatMap(({ credentialsPath }) => credentialsPath ?? [])
  ).map((path) => ({ path, writable: true, named: true }));
  const findings: Finding[] = [];
  const owners = new Set<string>();
  let configured =
    config.providers.flatMap(({ accounts }) => accounts.filter((one) => one.apiKey !== null)).length;
  for (const { path, writable, named: isNamed } of [...found, ...named]) {
    const read = await files.read(path);
    if (read.kind !== "text") {
      if (isNamed || read.kind !== "missing") findings.push(unreadableFile(path, read.kind));
      continue;
    }
    const parsed = parseCredentialFile(read.text);
    if (parsed.kind === "unfinished") findings.push(fault("credential_file", `${path} is not whole JSON`));
    if (parsed.kind !== "credential") continue;
    if (!isNamed && parsed.record.kind !== "codex") {
      const remedy = 'Name it as "credentials" of an account of a provider of kind anthropic';
      findings.push(
        warning("credential_file", `${path} is a Claude login; in auth-dir only Codex files count`, remedy),
      );
      continue;
    }
    if (isNamed) configured++;
    else owners.add(credentialOwner(parsed.record) ?? path);
    findings.push(...checkMode(path, "credential_file_mode", `The login in ${path}`, "fault"));
    findings.push(...checkLogin(path, parsed.record, writable, nowMs));
  }
  const usesCodex = owners.size > 0 || config.providers.length === 0;
  return { findings, accountCount: owners.size + configured, usesCodex };
}

function unreadableFile(path: string, kind: "missing" | "too_large" | "unreadable"): Finding {
  const why = {
    missing: "does not exist",
    too_large: "is too large for a credential file",
    unreadable: "cannot be read",
  };
  return fault("credential_file", `${path} ${why[kind]}`);
}

function checkLogin(path: string, record: CredentialRecord, writable: boolean, nowMs: number): Finding[] {
  const { expiresAtMs, refreshToken } = record.tokens;
  const signIn = record.kind === "codex" ? "holdfast login codex" : "holdfast login claude";
  const expired = expiresAtMs !== null && expiresAtMs <= nowMs;
  const since = expired ? duration(nowMs - expiresAtMs) : "";
  if (record.disabled) return [warning("credential", `${path} says it is disabled`)];
  if (!writable) {
    return [
      warning("credential", `${path} leads out of auth-dir: it is used, but its token is never renewed`),
    ];
  }
  if (refreshToken === null) {
    if (!expired) {
      return [warning("credential", `The login in ${path} cannot be renewed: it has no refresh token`)];
    }
    return [fault(
      "credential",
      `The token in ${path} expired ${since} ago and cannot be renewed: there is no refresh token`,
      `Sign in again: ${signIn}`,
    )];
  }
  if (!expired) return [ok("credential", `${basename(path)} holds a ${record.kind} login`)];
  return [warning(
    "credential",
    `The token in ${path} expired ${since} ago; it is renewed at its next use`,
    `If that fails, sign in again: ${signIn}`,
  )];
}

export function checkDatabase(config: Config, isRunning: boolean): Finding[] {
  const path = config.databasePath;
  const findings: Finding[] = [];
  try {
    const holder = databaseHolder(path);
    if (holder !== null && !isRunning) {
      const pid = holder.pid === null ? "" : ` (pid ${holder.pid})`;
      return [fault(
        "database",
        `The database ${path} is locked: another process${pid} uses it, and it is not the Holdfast of this configuration`,
        'Stop that process, or give this one another "database.path"',
      )];
    }
    if (!exists(path)) findings.push(...checkFolder(path));
    else findings.push(...lookInside(config, path, isRunning));
  } catch (error) {
    const why = error instanceof StoreFailure ? error.message : `Cannot look at the database ${path}`;
    findings.push(fault("database", why));
  }
  return [...findings, ...checkSpace(path)];
}

function checkFolder(path: string): Finding[] {
  let folder = dirname(path);
  while (!exists(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const probe = join(folder, `.holdfast-doctor-${Deno.pid}`);
  try {
    Deno.openSync(probe, { write: true, createNew: true, mode: 0o600 }).close();
    Deno.removeSync(probe);
    return [ok("database", `The database ${path} will be made at the first start`)];
  } catch {
    return [fault("database", `The database ${path} cannot be made: ${folder} cannot be written`)];
  }
}

function lookInside(config: Config, path: string, isRunning: boolean): Finding[] {
  using database = openDatabase(path, { readOnly: true, busyTimeoutMs: LOCK_WAIT_MS });
  if (!isRunning) requireWritable(path);
  const findings = [ok("database", `The database ${path} is sound`)];
  if (listensBeyondLoopback(config) && config.apiKeys.length === 0 && !hasUsers(database)) {
    findings.push(fault(
      "client_keys",
      `${config.host} can be reached from other machines, and there is no client key: the start is refused`,
      'Set "api-keys", or: holdfast users add NAME',
    ));
  }
  return findings;
}

/** @throws StoreFailure when another program holds SQLite's own lock, or the file cannot be written. */
function requireWritable(path: string): void {
  using database = openDatabase(path, { busyTimeoutMs: LOCK_WAIT_MS });
  database.write("normal", "write to the database", () => {});
}

function hasUsers(database: Database): boolean {
  return new SqliteAccountStore(database).users().length > 0;
}

function checkSpace(path: string): Finding[] {
  let folder = dirname(path);
  while (!exists(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    const { bavail, bsize } = statfsSync(folder);
    const free = bavail * bsize;
    if (free >= LITTLE_SPACE_BYTES) return [];
    const message = `Only ${Math.floor(free / 1_048_576)} MiB are free where the database lies (${folder})`;
    return [warning("disk_space", message, "Make room: Holdfast ends when it cannot write")];
  } catch {
    // Some file systems do not say.
    return [];
  }
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
