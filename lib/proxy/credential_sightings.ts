/**
 * What is known of credential files from looking at them again and again: the newest readable state of each, and for
 * how long a half-written or vanished one is still believed.
 *
 * Knows nothing of accounts; `account_directory.ts` makes those.
 */
import {
  type CredentialRecord,
  fingerprintInput,
  type IgnoredReason,
  parseCredentialFile,
} from "../core/credential.ts";
import type { CredentialFiles, CredentialFileState, Digest } from "../ports.ts";

/** A file that cannot be read is probably being written; its account stays that long (state-machine-facts 2A.1). */
export const UNREADABLE_GRACE_MS = 5_000;
/** Editors that save by removing and creating leave a gap; an account is not given up for it. */
export const MISSING_GRACE_MS = 400;
/** Within this time two writes may leave the same time stamp, so an unchanged version proves nothing. */
const STAMP_RESOLUTION_MS = 2_500;

export interface Sighting {
  readonly path: string;
  readonly writable: boolean;
  /** Null: the file holds no credential, or none any more. */
  readonly record: CredentialRecord | null;
  /** Digest of the record's material; "" without a record. */
  readonly fingerprint: string;
  /** Why there is no record, or why it is an old one. */
  readonly trouble: IgnoredReason | "unfinished" | "missing" | null;
  /** The text the record was read from; kept only after a forced look, for the one who is about to change it. */
  readonly text: string | null;
}

interface Seen extends Sighting {
  readonly version: string;
  /** The file changed so recently that it is read again whatever its version says. */
  readonly fresh: boolean;
  /** Since when the present trouble lasts: decides when the old record is given up. */
  readonly troubleSinceMs: number;
}

const NOTHING = { record: null, fingerprint: "", text: null };

export class CredentialSightings {
  readonly #files: CredentialFiles;
  readonly #digest: Digest;
  readonly #seen = new Map<string, Seen>();
  #changeCount = 0;

  constructor(files: CredentialFiles, digest: Digest) {
    this.#files = files;
    this.#digest = digest;
  }

  /** Grows whenever a record, a trouble or a right to write came, went or changed. */
  get changeCount(): number {
    return this.#changeCount;
  }

  get(path: string): Sighting | null {
    return this.#seen.get(path) ?? null;
  }

  all(): Iterable<Sighting> {
    return this.#seen.values();
  }

  /** Looks at a file that is there; reads it only when it may have changed, or when told to. */
  async look(state: CredentialFileState, nowMs: number, force = false): Promise<void> {
    const before = this.#seen.get(state.path);
    const unchanged = before !== undefined && before.version === state.version &&
      before.trouble !== "missing";
    if (!force && unchanged && !before.fresh && before.trouble !== "unfinished") return;
    const found = await this.#files.read(state.path);
    if (found.kind === "missing") return this.miss(state.path, nowMs);
    const parsed = found.kind === "text"
      ? parseCredentialFile(found.text)
      : { kind: "ignored", reason: found.kind } as const;
    const fresh = nowMs - state.modifiedAtMs < STAMP_RESOLUTION_MS;
    const base = { path: state.path, writable: state.writable, version: state.version, fresh };
    if (parsed.kind === "credential") {
      const text = force && found.kind === "text" ? found.text : null;
      this.#set({ ...base, ...this.#readable(parsed.record), text });
    } else if (parsed.kind === "unfinished" || parsed.reason === "unreadable") {
      const trouble = parsed.kind === "unfinished" ? "unfinished" : "unreadable";
      this.#set({ ...base, ...this.#troubled(before, trouble, nowMs, UNREADABLE_GRACE_MS) });
    } else {
      // Readable JSON that is no credential is a statement (a log-out), not an accident.
      this.#set({ ...base, ...NOTHING, trouble: parsed.reason, troubleSinceMs: nowMs });
    }
  }

  /** Takes over what was just written, without reading it back. */
  wrote(path: string, text: string): void {
    const parsed = parseCredentialFile(text);
    const before = this.#seen.get(path);
    if (parsed.kind !== "credential" || before === undefined) return;
    // No version is like this one, so the next look reads the file.
    this.#set({ ...before, ...this.#readable(parsed.record), version: "", text: null });
  }

  /** The file is not there. */
  miss(path: string, nowMs: number): void {
    const before = this.#seen.get(path);
    if (before === undefined) return;
    const next = this.#troubled(before, "missing", nowMs, MISSING_GRACE_MS);
    if (next.record === null) this.#drop(path);
    else this.#set({ ...before, ...next });
  }

  /** Forgets everything the predicate does not want, at once. */
  keepOnly(wanted: (path: string) => boolean): void {
    for (const path of this.#seen.keys()) if (!wanted(path)) this.#drop(path);
  }

  /** When the earliest grace ends, or `Infinity`: the moment to look again. */
  nextDeadlineMs(): number {
    let nextMs = Infinity;
    for (const seen of this.#seen.values()) {
      if (seen.record === null || seen.trouble === null) continue;
      const graceMs = seen.trouble === "missing" ? MISSING_GRACE_MS : UNREADABLE_GRACE_MS;
      nextMs = Math.min(nextMs, seen.troubleSinceMs + graceMs);
    }
    return nextMs;
  }

  #set(next: Seen): void {
    const before = this.#seen.get(next.path);
    this.#seen.set(next.path, next);
    const same = before !== undefined && before.record === next.record && before.trouble === next.trouble &&
      before.writable === next.writable;
    if (!same) this.#changeCount += 1;
  }

  #drop(path: string): void {
    if (this.#seen.delete(path)) this.#changeCount += 1;
  }

  #readable(record: CredentialRecord): Pick<Seen, "record" | "fingerprint" | "trouble" | "troubleSinceMs"> {
    return {
      record,
      fingerprint: this.#digest.sha256(fingerprintInput(record.tokens)),
      trouble: null,
      troubleSinceMs: 0,
    };
  }

  /** The old record while the grace lasts, nothing after it. The grace runs from the first sight of this trouble. */
  #troubled(
    before: Seen | undefined,
    trouble: "unfinished" | "unreadable" | "missing",
    nowMs: number,
    graceMs: number,
  ): Pick<Seen, "record" | "fingerprint" | "trouble" | "troubleSinceMs" | "text"> {
    const lasts = before !== undefined && before.trouble !== null &&
      (before.trouble === "missing") === (trouble === "missing");
    const troubleSinceMs = lasts ? before.troubleSinceMs : nowMs;
    const believed = before !== undefined && before.record !== null && nowMs < troubleSinceMs + graceMs;
    if (!believed) return { ...NOTHING, trouble, troubleSinceMs };
    const { record, fingerprint, text } = before;
    return { record, fingerprint, text, trouble, troubleSinceMs };
  }
}
