/** Which credential files give no account, or not the newest one, and why: for `doctor`, `/readyz` and the status page. */
import type { AccountEntry } from "./account_entries.ts";
import type { Sighting } from "./credential_sightings.ts";

export interface FileNote {
  /** Below the auth directory, or absolute for a configured file. */
  readonly file: string;
  readonly reason:
    | NonNullable<Sighting["trouble"]>
    /** An older copy of an account. */
    | "duplicate"
    /** A symlink out of the folder: used until its token ends, never refreshed. */
    | "read_only"
    /** A login of another kind than the place it lies in. */
    | "wrong_kind"
    | "too_many_files";
}

export function makeNotes(
  sightings: Iterable<Sighting>,
  entries: Iterable<AccountEntry>,
  truncated: boolean,
  shown: (path: string) => string,
): FileNote[] {
  const used = new Set<string>();
  const first = new Set<string>();
  for (const { paths } of entries) {
    if (paths[0] !== undefined) first.add(paths[0]);
    for (const path of paths) used.add(path);
  }
  const notes: FileNote[] = truncated ? [{ file: ".", reason: "too_many_files" }] : [];
  for (const { path, trouble, writable } of sightings) {
    const file = shown(path);
    if (trouble !== null) notes.push({ file, reason: trouble });
    else if (!used.has(path)) notes.push({ file, reason: "wrong_kind" });
    else if (!first.has(path)) notes.push({ file, reason: "duplicate" });
    else if (!writable) notes.push({ file, reason: "read_only" });
  }
  return notes.sort((a, b) => a.file < b.file ? -1 : 1);
}

/** Codex keeps other JSON files in the same folder, and editors leave gaps: those are no news. */
export function isExpected(reason: FileNote["reason"]): boolean {
  return reason === "not_a_credential" || reason === "other_type" || reason === "missing";
}
