/** A log that keeps what the real one would have written, already redacted, for assertions and leak hunts. */
import type { Log, LogFields, LogLevel } from "../../lib/ports.ts";
import { formatJson, formatPretty } from "../../lib/runtime/log.ts";

export interface MemoryLog extends Log {
  readonly records: readonly { level: LogLevel; event: string; fields: LogFields }[];
  /** JSON lines as written. */
  readonly text: string;
  events(): string[];
  /** @returns those of the secrets that can be found in either form of the log; `[]` is what a test wants. */
  scan(secrets: readonly string[]): string[];
}

export function memoryLog(): MemoryLog {
  const records: { level: LogLevel; event: string; fields: LogFields }[] = [];
  let json = "";
  let pretty = "";
  return {
    records,
    get text() {
      return json;
    },
    write(level, event, fields = {}) {
      records.push({ level, event, fields });
      json += formatJson(0, level, event, fields);
      pretty += formatPretty(0, level, event, fields, false);
    },
    events: () => records.map((record) => record.event),
    scan: (secrets) => secrets.filter((secret) => json.includes(secret) || pretty.includes(secret)),
  };
}
