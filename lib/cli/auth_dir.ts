/**
 * A Codex login put into auth-dir: one file an account, never over somebody else's.
 */
import { join } from "node:path";
import { credentialOwner, parseCredentialFile } from "../core/credential.ts";
import { mergeTokens } from "../core/credential_merge.ts";
import { StoreFailure } from "../ports.ts";
import { createCredentialFiles } from "../store/credential_files.ts";
import { writeNewPrivateFile } from "./private_file.ts";

export interface SavedLogin {
  /** `in place`: a login of this account, at least as new, was there already. */
  readonly result: "copied" | "updated" | "in place";
  readonly path: string;
}

/**
 * Saves the text of a Codex credential file.
 *
 * @param name  what the file should be called, without `.json`; a number is added where that is taken.
 * @throws StoreFailure when it cannot be written; TypeError when the text is no credential
 */
export async function saveCodexLogin(authDir: string, text: string, name: string): Promise<SavedLogin> {
  const parsed = parseCredentialFile(text);
  if (parsed.kind !== "credential") {
    throw new TypeError("Cannot save a login: the text is no credential file");
  }
  const { record } = parsed;
  const owner = credentialOwner(record);
  const files = createCredentialFiles();
  const listing = owner === null ? null : await files.list(authDir);
  for (const { path } of listing?.files ?? []) {
    const read = await files.read(path);
    const present = read.kind === "text" ? parseCredentialFile(read.text) : null;
    if (present?.kind !== "credential" || credentialOwner(present.record) !== owner) continue;
    if ((record.lastRefreshAtMs ?? 0) <= (present.record.lastRefreshAtMs ?? 0)) {
      return { result: "in place", path };
    }
    await files.update(path, (old) => mergeTokens(old, record.tokens, record.lastRefreshAtMs ?? 0));
    return { result: "updated", path };
  }
  for (let number = 1;; number++) {
    const path = join(authDir, fileName(name, record.accountId, number));
    const refused = writeNewPrivateFile(path, text);
    if (refused === null) return { result: "copied", path };
    if (refused !== "it exists already") {
      throw new StoreFailure("save a credential file", `${refused} (${path})`);
    }
  }
}

function fileName(wanted: string, accountId: string | null, number: number): string {
  const stem = wanted.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^\.+/, "") || "login";
  // Codex's own name: in auth-dir there may be many accounts.
  const unique = stem === "auth"
    ? `codex-${accountId?.replaceAll(/[^A-Za-z0-9]/g, "").slice(0, 8) ?? "login"}`
    : stem;
  return `${unique}${number === 1 ? "" : `-${number}`}.json`;
}
