/**
 * `holdfast demo`: real requests through the real proxy, over four simulated accounts, told as they happen.
 */
import { startApp } from "../app.ts";
import type { App } from "../app_types.ts";
import { type ConfigEnvironment, parseConfig } from "../config.ts";
import type { Config } from "../config_types.ts";
import type { DecisionRecord } from "../core/decision.ts";
import { DEMO_ACCOUNTS, DEMO_MODEL, demoCredential, scriptDemo } from "../demo/demo_accounts.ts";
import { startSimulatedProvider } from "../demo/simulated_provider.ts";
import { createClock } from "../runtime/clock.ts";
import { viewDecision } from "../proxy/decision_view.ts";
import { clientSettings } from "./client_settings.ts";
import { answer, type Call, EXIT, type Report } from "./command.ts";
import { openOutside } from "./outside.ts";
import { painter } from "./terminal.ts";

const DEMO_KEY = "hf_demo_key";
const DEMO_ADMIN_KEY = "hf_demo_admin";

interface Scene {
  readonly title: string;
  readonly stream: boolean;
  readonly session: string | null;
}

const SCENES: readonly Scene[] = [
  { title: "A streaming client asks; three of four accounts cannot serve it", stream: true, session: null },
  { title: "The next client asks for JSON; what was learnt is remembered", stream: false, session: null },
  { title: "A conversation begins", stream: true, session: "demo-conversation" },
  { title: "The conversation goes on, on the same account", stream: true, session: "demo-conversation" },
  { title: "A stream fails before its first output; the client never sees it", stream: true, session: null },
  { title: "One more, as every day", stream: true, session: null },
];

/** What a scene came to: told while it plays, or given whole under `--json`. */
interface SceneResult {
  readonly title: string;
  readonly served: boolean;
  readonly status: number;
  readonly milliseconds: number;
  readonly decision: DecisionRecord | null;
}

type Say = (text: string) => void;

export async function runDemo(call: Call): Promise<Report> {
  const say: Say = call.json ? () => {} : (text) => call.host.stdout.write(`${text}\n`);
  const folder = await Deno.makeTempDir({ prefix: "holdfast-demo-" });
  const clock = createClock();
  const provider = await startSimulatedProvider({ clock });
  let app: App | null = null;
  try {
    scriptDemo(provider, clock.now());
    const authDir = `${folder}/accounts`;
    await Deno.mkdir(authDir);
    for (const account of DEMO_ACCOUNTS) {
      await Deno.writeTextFile(`${authDir}/${account.name}.json`, demoCredential(account));
    }
    app = await startApp(
      demoConfig(provider.url, authDir, folder),
      openOutside(demoConfig(provider.url, authDir, folder)),
    );
    introduce(app, say);
    const results: SceneResult[] = [];
    for (const [index, scene] of SCENES.entries()) results.push(await play(app, scene, index + 1, say));
    const served = results.filter((result) => result.served).length;
    const isGood = served === SCENES.length;
    const paint = painter();
    say(
      isGood
        ? paint.good(`\n${served} of ${SCENES.length}: every client was served.`)
        : paint.bad(`\nOnly ${served} of ${SCENES.length} clients were served.`),
    );
    if (call.flag("keep")) await keepRunning(app, call.host.program, say);
    const scenes = results.map(({ decision, ...result }) => ({
      ...result,
      decision: decision === null ? null : viewDecision(decision),
    }));
    return answer({ served, of: SCENES.length, scenes }, () => "", isGood ? EXIT.ok : EXIT.failed);
  } finally {
    await app?.stop(1_000);
    await provider.close();
    await Deno.remove(folder, { recursive: true });
  }
}

function demoConfig(providerUrl: string, authDir: string, folder: string): Config {
  const text = JSON.stringify({
    port: 0,
    "auth-dir": authDir,
    database: { path: `${folder}/state/holdfast.db` },
    "api-keys": [DEMO_KEY],
    "admin-api-key": DEMO_ADMIN_KEY,
    "proxy-url": "direct",
    "codex-base-url": `${providerUrl}/backend-api/codex`,
    "chatgpt-base-url": `${providerUrl}/backend-api`,
    "codex-refresh-token-url": `${providerUrl}/oauth/token`,
    quota: { "poll-interval-seconds": 0 },
    logging: { level: "error" },
  });
  const environment: ConfigEnvironment = { homeDir: folder, get: () => undefined };
  const parsed = parseConfig(text, environment);
  if (!parsed.ok) {
    throw new Error(
      `Cannot make the demo's configuration: ${
        parsed.mistakes.map((mistake) => JSON.stringify(mistake)).join("; ")
      }`,
    );
  }
  return parsed.config;
}

function introduce(app: App, say: Say): void {
  const paint = painter();
  say(`Holdfast listens on ${app.url} with four simulated accounts:\n`);
  for (const { name, trait } of DEMO_ACCOUNTS) say(`  ${name}  ${paint.faint(trait)}`);
}

/** One client call, and the decision behind it in words. */
async function play(app: App, scene: Scene, number: number, say: Say): Promise<SceneResult> {
  const paint = painter();
  say(`\n${paint.strong(`${number}. ${scene.title}`)}`);
  const known = app.decisions.latest(1)[0]?.requestId ?? null;
  const startedAtMs = performance.now();
  const response = await fetch(`${app.url}/v1/responses`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${DEMO_KEY}`,
      "content-type": "application/json",
      ...(scene.session === null ? {} : { "session-id": scene.session }),
    },
    body: JSON.stringify({ model: DEMO_MODEL, input: "Hello", stream: scene.stream }),
  });
  const body = await response.text();
  const tookMs = Math.round(performance.now() - startedAtMs);
  const record = await decisionAfter(app, known);
  if (record !== null) { for (const line of tellAttempts(record)) say(`   ${line}`); }
  const text = response.status === 200 ? readText(body, scene.stream) : null;
  if (text === null) say(`   ${paint.bad("client")}  got ${response.status}: ${body.slice(0, 200)}`);
  else say(`   ${paint.good("client")}  200 after ${tookMs} ms: "${text}"`);
  return {
    title: scene.title,
    served: text !== null,
    status: response.status,
    milliseconds: tookMs,
    decision: record,
  };
}

async function decisionAfter(app: App, known: string | null): Promise<DecisionRecord | null> {
  for (let turn = 0; turn < 50; turn++) {
    const latest = app.decisions.latest(1)[0];
    if (latest !== undefined && latest.requestId !== known) return latest;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return null;
}

function tellAttempts(record: DecisionRecord): string[] {
  const paint = painter();
  return record.attempts.map((attempt) => {
    const name = nameOf(attempt.account).padEnd(6);
    const status = attempt.status === null ? "" : ` (${attempt.status})`;
    const outcome = attempt.outcome ?? "under way";
    return outcome === "success"
      ? `${paint.good(name)}  serves`
      : `${paint.warn(name)}  ${outcome.replaceAll("_", " ")}${status}, passed over`;
  });
}

function nameOf(account: string): string {
  return DEMO_ACCOUNTS.find(({ name }) => account.includes(name))?.name ?? account;
}

/** The answer's text; null when it is no complete answer. */
export function readText(body: string, streamed: boolean): string | null {
  try {
    if (!streamed) {
      const json = JSON.parse(body) as { output: { content: { text: string }[] }[] };
      return json.output.flatMap((item) => item.content.map(({ text }) => text)).join("");
    }
    const events = body.split("\n\n").filter((frame) => frame.includes("data: "))
      .map((frame) =>
        JSON.parse(frame.slice(frame.indexOf("data: ") + 6)) as { type: string; delta?: string }
      );
    if (!events.some(({ type }) => type === "response.completed")) return null;
    return events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta ?? "")
      .join("");
  } catch {
    return null;
  }
}

async function keepRunning(app: App, program: string, say: Say): Promise<void> {
  say(clientSettings(app.url, DEMO_KEY, program, "The demo keeps running, with this client key"));
  say(`Status page: ${app.url}/status, with the admin key ${DEMO_ADMIN_KEY}`);
  say(`Models: ${DEMO_MODEL}. Ctrl-C ends it.`);
  const ended = Promise.withResolvers<void>();
  const stop = (): void => ended.resolve();
  Deno.addSignalListener("SIGINT", stop);
  Deno.addSignalListener("SIGTERM", stop);
  await ended.promise;
  Deno.removeSignalListener("SIGINT", stop);
  Deno.removeSignalListener("SIGTERM", stop);
}
