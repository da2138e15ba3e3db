/**
 * `holdfast serve`: the proxy until a signal ends it.
 */
import { type App, startApp, StartRefused } from "../app.ts";
import type { Config } from "../config_types.ts";
import { StoreFailure } from "../ports.ts";
import { clientSettings } from "./client_settings.ts";
import { EXIT_USAGE } from "./command.ts";
import { openOutside } from "./outside.ts";
import { loadConfig, readOption, unknownArguments } from "./settings.ts";

/** What is under way at SIGTERM has this long; with the closing of sockets it stays below 5 s. */
const DRAIN_MS = 4_000;
/** After a fatal store error the process is gone within 10 s (ruling 9). */
const FATAL_DRAIN_MS = 2_000;
const CONFIG_LOOK_MS = 1_000;

export async function runServe(args: readonly string[]): Promise<number> {
  const unknown = unknownArguments(args, ["config"], []);
  if (unknown.length > 0) {
    console.error(`holdfast: cannot understand ${unknown.join(" ")}; see holdfast serve --help`);
    return EXIT_USAGE;
  }
  const named = readOption(args, "config");
  const load = loadConfig(named);
  if (!load.ok) {
    console.error(load.message);
    return EXIT_USAGE;
  }
  const { config, path, warnings } = load.loaded;
  for (const warning of warnings) console.error(`holdfast: ${warning}`);
  let app: App;
  try {
    app = await startApp(config, openOutside(config));
  } catch (error) {
    return explainRefusal(error, config);
  }
  if (app.firstRunKey !== null) console.log(clientSettings(app.url, app.firstRunKey));
  return await untilEnd(app, path);
}

async function untilEnd(app: App, path: string | null): Promise<number> {
  const ended = Promise.withResolvers<number>();
  const onStop = (): void => ended.resolve(0);
  const reload = (): void => void reloadFrom(app, path);
  const signals: [Deno.Signal, () => void][] = [["SIGINT", onStop], ["SIGTERM", onStop]];
  if (Deno.build.os !== "windows") signals.push(["SIGHUP", reload]);
  for (const [signal, handler] of signals) Deno.addSignalListener(signal, handler);
  const stopWatching = path === null ? () => {} : watchFile(path, reload);
  app.failed.then((cause) => {
    console.error(`holdfast: ${cause.message}`);
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
    if (code === 0) console.error(`holdfast: ${error instanceof Error ? error.message : error}`);
    clearTimeout(last);
    return 1;
  }
  clearTimeout(last);
  return code;
}

async function reloadFrom(app: App, path: string | null): Promise<void> {
  const load = loadConfig(path);
  if (!load.ok) {
    console.error(`holdfast: the running configuration stays in use\n${load.message}`);
    return;
  }
  let needsRestart: readonly string[];
  try {
    needsRestart = await app.reload(load.loaded.config);
  } catch (error) {
    if (!(error instanceof StartRefused || error instanceof SyntaxError)) throw error;
    console.error(`holdfast: the running configuration stays in use\n${error.message}`);
    return;
  }
  if (needsRestart.length > 0) console.error(`holdfast: restart to change ${needsRestart.join(", ")}`);
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

function explainRefusal(error: unknown, config: Config): number {
  if (error instanceof StartRefused || error instanceof StoreFailure) {
    console.error(`holdfast: ${error.message}`);
  } else if (error instanceof Deno.errors.AddrInUse) {
    console.error(`holdfast: Cannot listen on ${config.host}:${config.port}: another program uses that port`);
  } else if (error instanceof Deno.errors.AddrNotAvailable) {
    console.error(
      `holdfast: Cannot listen on ${config.host}:${config.port}: this machine has no such address`,
    );
  } else if (error instanceof Deno.errors.PermissionDenied) {
    console.error(`holdfast: Cannot listen on ${config.host}:${config.port}: not permitted`);
  } else {
    throw error;
  }
  return 1;
}
