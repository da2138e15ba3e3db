/**
 * The process log: structured records, redacted, written in batches.
 *
 * One `console.log` a request costs a fifth of the throughput, so lines are gathered and written every 50 ms or
 * 64 KiB. A reader that stops reading never stops us: beyond 1 MiB new lines are counted and dropped.
 *
 * Our own because the library we tried (LogTape) takes 3 to 5 µs a record before it is formatted, where this takes
 * about 1 µs in all, and because its configuration is one for the whole process.
 */
import type { Clock, Log, LogFields, LogLevel, Scheduled } from "../ports.ts";
import { redactField, redactFields, redactText } from "./redaction.ts";

const FLUSH_AFTER_MS = 50;
const FLUSH_AT_CHARACTERS = 65_536;
const HOLD_AT_MOST_CHARACTERS = 1_048_576;

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
const COLOURS: Readonly<Record<LogLevel, string>> = { debug: "90", info: "36", warn: "33", error: "31" };
const EVENT = /^[a-z][a-z0-9_]{0,63}$/;
const OWN_NAMES = new Set(["at", "level", "event"]);
/** A value that reads unambiguously without quotes on a terminal. */
const PLAIN = /^[\w.:/@*+,[\]-]+$/;

export interface LogSink {
  readonly isTerminal: boolean;
  readonly colour: boolean;
  /** Whole lines. Rejects when the other end is gone. */
  write(text: string): Promise<void>;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: "auto" | "pretty" | "json";
}

export interface ProcessLog extends Log {
  /** For a reload. */
  setLevel(level: LogLevel): void;
  /** Writes what is held; resolves when it is out (or the sink is broken). */
  flush(): Promise<void>;
  /** `flush`, and nothing is taken after it. */
  close(): Promise<void>;
}

export function createLog(options: LogOptions, clock: Clock, sink: LogSink = standardError()): ProcessLog {
  const pretty = options.format === "pretty" || options.format === "auto" && sink.isTerminal;
  let lowest = RANK[options.level];
  let held: string[] = [];
  let heldCharacters = 0;
  let droppedCount = 0;
  let flushTimer: Scheduled | null = null;
  let writing: Promise<void> | null = null;
  let closed = false;

  function write(level: LogLevel, event: string, fields?: LogFields): void {
    if (RANK[level] < lowest || closed) return;
    if (heldCharacters >= HOLD_AT_MOST_CHARACTERS) {
      droppedCount += 1;
      return;
    }
    hold(level, event, fields);
    pumpInTime();
  }

  function pumpInTime(): void {
    if (heldCharacters >= FLUSH_AT_CHARACTERS) pump();
    else flushTimer ??= clock.schedule(clock.now() + FLUSH_AFTER_MS, pump);
  }

  function hold(level: LogLevel, event: string, fields?: LogFields): void {
    const line = pretty
      ? formatPretty(clock.now(), level, event, fields, sink.colour)
      : formatJson(clock.now(), level, event, fields);
    held.push(line);
    heldCharacters += line.length;
  }

  /** One write at a time, so that lines keep their order; what comes meanwhile goes with the next. */
  function pump(): void {
    flushTimer?.cancel();
    flushTimer = null;
    if (writing !== null || held.length === 0) return;
    if (droppedCount > 0) {
      hold("warn", "log_records_dropped", { count: droppedCount });
      droppedCount = 0;
    }
    const text = held.join("");
    held = [];
    heldCharacters = 0;
    // Nobody is left to tell when the log itself cannot be written, so the lines are given up.
    writing = sink.write(text).catch(() => {}).then(() => {
      writing = null;
      // What came meanwhile waits its time as well: under load a write for each line would follow.
      if (held.length > 0) pumpInTime();
    });
  }

  async function flush(): Promise<void> {
    pump();
    while (writing !== null) {
      await writing;
      pump();
    }
  }

  return {
    write,
    setLevel: (level) => void (lowest = RANK[level]),
    flush,
    close: () => {
      closed = true;
      return flush();
    },
  };
}

/** `{"at":"…","level":"info","event":"…",…}` and a line feed. */
export function formatJson(atMs: number, level: LogLevel, event: string, fields?: LogFields): string {
  let line = `{"at":"${timeText(atMs)}","level":"${level}","event":"${safeEvent(event)}"`;
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    const key = JSON.stringify(OWN_NAMES.has(name) ? `${name}_field` : name);
    line += `,${key}:${JSON.stringify(redactField(name, value))}`;
  }
  return `${line}}\n`;
}

let toldAtMs = NaN;
let toldTime = "";

/** Many records share a millisecond. */
function timeText(atMs: number): string {
  if (atMs !== toldAtMs) {
    toldTime = new Date(atMs).toISOString();
    toldAtMs = atMs;
  }
  return toldTime;
}

/** `10:30:00.123 WARN  event  name=value`, UTC. Values cannot move the cursor: control characters are escaped. */
export function formatPretty(
  atMs: number,
  level: LogLevel,
  event: string,
  fields: LogFields | undefined,
  colour: boolean,
): string {
  const time = new Date(atMs).toISOString().slice(11, 23);
  const word = level.toUpperCase().padEnd(5);
  let line = colour
    ? `\x1b[90m${time}\x1b[0m \x1b[${COLOURS[level]}m${word}\x1b[0m ${safeEvent(event)}`
    : `${time} ${word} ${safeEvent(event)}`;
  for (const [name, value] of Object.entries(redactFields(fields ?? {}))) {
    const text = typeof value === "string" && PLAIN.test(value)
      ? value
      : escapeControls(JSON.stringify(value));
    line += colour ? ` \x1b[90m${name}=\x1b[0m${text}` : ` ${name}=${text}`;
  }
  return `${line}\n`;
}

function safeEvent(event: string): string {
  return EVENT.test(event) ? event : redactText(event).replace(/[^a-zA-Z0-9_[\]]+/g, "_");
}

/** JSON leaves DEL and the C1 controls as they are; a terminal obeys them. */
function escapeControls(text: string): string {
  return text.replace(
    /[\x7f-\x9f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Standard error: standard output belongs to what the program prints for people and scripts. */
function standardError(): LogSink {
  const encoder = new TextEncoder();
  const isTerminal = Deno.stderr.isTerminal();
  return {
    isTerminal,
    colour: isTerminal && !Deno.noColor,
    async write(text) {
      let rest = encoder.encode(text);
      while (rest.length > 0) rest = rest.subarray(await Deno.stderr.write(rest));
    },
  };
}
