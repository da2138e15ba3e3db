/**
 * Files only their owner may read, whole or not at all.
 */
import { dirname, join } from "node:path";

/** Writes a file that is not there yet, mode 0600, on disk when this returns. @returns what went wrong, or null. */
export function writeNewPrivateFile(path: string, text: string): string | null {
  try {
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeAndSync(path, text, { createNew: true, mode: 0o600 });
    return null;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return "it exists already";
    return error instanceof Error && "code" in error ? `${error.code}` : "the folder cannot be written";
  }
}

/** Makes or replaces a file in one step. @throws the system's error */
export function replaceFile(path: string, text: string, mode: number): void {
  const fresh = join(dirname(path), `.holdfast-${Deno.pid}.new`);
  writeAndSync(fresh, text, { create: true, truncate: true, mode: mode & 0o777 });
  Deno.renameSync(fresh, path);
}

function writeAndSync(path: string, text: string, options: Deno.OpenOptions): void {
  const bytes = new TextEncoder().encode(text);
  using file = Deno.openSync(path, { write: true, ...options });
  for (let written = 0; written < bytes.length;) written += file.writeSync(bytes.subarray(written));
  file.syncSync();
}
