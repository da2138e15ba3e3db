/**
 * `holdfast serve`: the proxy until a signal ends it.
 */
import { startApp } from "../app.ts";
import type { App } from "../app_types.ts";
import { StartRefused } from "../first_key.ts";
import type { Config } from "../config_types.ts";
import { type Log, StoreFailure } from "../ports.ts";
import { clientSettings } from "./client_settings.ts";
import { type Call, EXIT, type ExitCode } from "./command.ts";
import { openOutside } from "./outside.ts";
import { loadConfig } from "./settings.ts";

/** What is under way at SIGTERM has this long; with the closing of sockets it stays below 5 s. */
const DRAIN_MS = 4_000;
/** After a fatal store error the process is gone within 10 s (ruling 9). */
const FATAL_DRAIN_MS = 2_000;
const CONFIG_LOOK_MS = 1_000;

/** @returns the exit code, once the process has been told to end. */
export async function runServe(call: Call): Promise<ExitCode> {
  const load = loadConfig(call.option("config"), call.host);
  if (!load.ok) {
    call.host.stderr.write(`${load.message}\n`);
    return EXIT.usage;
  }
  const { path, warnings } = load.loaded;
  const config = withLogFormat(load.loaded.config, call);
  const complain = (message: string): void => call.host.stderr.write(`holdfast: ${message}\n`);
  warnings.forEach(complain);
  let app: App;
  let log: Log;
  try {
    const outside = openOutside(config);
    log = outside.log;
    app = await startApp(config, outside);
  } catch (error) {
    complain(explainRefusal(error, config));
    return EXIT.failed;
  }
  if (app.firstRunKey !== null) showFirstKey(call, app.url, app.firstRunKey);
  return await untilEnd(app, path, call, log, complain);
}

/** Who reads JSON gets JSON lines, whatever the configuration says. */
function withLogFormat(config: Config, call: Call): Config {
  return call.json ? { ...config, logging: { ...config.logging, format: "json" } } : config;
}

/** Never through the log, which is kept. */
function showFirstKey(call: Call, url: string, key: string): void {
  const text = call.json
    ? `${JSON.stringify({ event: "first_key", url, client_key: key })}\n`
    : `${clientSettings(url, key, call.host.program)}\n`;
  call.host.stdout.write(text);
}

type Complain = (message: string) => void;

async function untilEnd(
  app: App,
  path: string | null,
  call: Call,
  log: Log,
  complain: Complain,
): Promise<ExitCode> {
  const ended = Promise.withResolvers<ExitCode>();
  const onStop = (): void => ended.resolve(0);
  const reload = (): void => void reloadFrom(app, path, call, log);
  const signals: [Deno.Signal, () => void][] = [["SIGINT", onStop], ["SIGTERM", onStop]];
  if (Deno.build.os !== "windows") signals.push(["SIGHUP", reload]);
  for (const [signal, handler] of signals) Deno.addSignalListener(signal, handler);
  const stopWatching = path === null ? () => {} : watchFile(path, reload);
  app.failed.then((cause) => {
    complain(cause.message);
    ended.resolve(1);
  });
  const code = await ended.promise;
  stopWatching();
  for (const [signal, handler] of signals) Deno.removeSignalListener(signal, handler);
  // Whatever the disk does now, the process ends in time.
  const last = setTimeout(() => Deno.exit(code === 0 ? 1 : code), 9_000);
  try {
    await app.stop(code === 0 ? DRAIN_MS : FATAL_DRAIN_MS);
  } catch (error) {
    if (code === 0) complain(error instanceof Error ? error.message : String(error));
    clearTimeout(last);
    return 1;
  }
  clearTimeout(last);
  return code;
}

/** Told through the log: whoever reads it line by line must be able to go on. What needs a restart is told by the app. */
async function reloadFrom(app: App, path: string | null, call: Call, log: Log): Promise<void> {
  const refuse = (message: string): void => {
    const problems = message.split("\n").filter((line) => line.trim() !== "");
    log.write("error", "reload_refused", { hint: "the running configuration stays in use", problems });
  };
  const load = loadConfig(path, call.host);
  if (!load.ok) return refuse(load.message);
  try {
    await app.reload(withLogFormat(load.loaded.config, call));
  } catch (error) {
    if (!(error instanceof StartRefused || error instanceof SyntaxError)) throw error;
    refuse(error.message);
  }
}

/** Looks at the file's date once a second: works for every editor and file system, and costs nothing. */
function watchFile(path: string, onChange: () => void): () => void {
  let seen = stamp(path);
  const timer = setInterval(() => {
    const now = stamp(path);
    if (now === seen || now === null) return;
    seen = now;
    onChange();
  }, CONFIG_LOOK_MS);
  return () => clearInterval(timer);
}

function stamp(path: string): string | null {
  try {
    const { mtime, size, ino } = Deno.statSync(path);
    return `${mtime?.getTime()}:${size}:${ino}`;
  } catch {
    return null;
  }
}

/** @throws what is no refusal but a fault of ours. */
function explainRefusal(error: unknown, config: Config): string {
  const address = `${config.host}:${config.port}`;
  if (error instanceof StartRefused || error instanceof StoreFailure) return error.message;
  switch (error instanceof Error && "code" in error ? error.code : null) {
    case "EADDRINUSE":
      return `Cannot listen on ${address}: another program uses that port`;
    case "EADDRNOTAVAIL":
      return `Cannot listen on ${address}: this machine has no such address`;
    case "ENOTFOUND":
      return `Cannot listen on ${address}: there is no host of that name`;
    case "EACCES":
      return `Cannot listen on ${address}: not permitted`;
  }
  // A proxy variable of the environment that is no URL.
  if (error instanceof SyntaxError) return error.message;
  if (error instanceof Deno.errors.NotCapable) return `Cannot listen on ${address}: not permitted`;
  throw error;
}
