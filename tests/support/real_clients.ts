/**
 * The real clients, installed once from npm into `.cache/clients` and run against a proxy on loopback.
 */
import { fromFileUrl } from "./paths.ts";

/** Pinned: what they send and how they react is part of the tests. */
const VERSIONS = { "@openai/codex": "0.171.0", "@anthropic-ai/claude-code": "2.1.332" } as const;
type ClientPackage = keyof typeof VERSIONS;

const CACHE = fromFileUrl(new URL("../../.cache/clients/", import.meta.url));

export interface ClientRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Installs the package when it is missing. @returns the path of its command. @throws Error when npm cannot. */
export async function installClient(name: ClientPackage): Promise<string> {
  const folder = `${CACHE}${name.replaceAll(/[^a-z]/g, "_")}`;
  const bin = `${folder}/node_modules/.bin/${name === "@openai/codex" ? "codex" : "claude"}`;
  if (await isInstalled(`${folder}/node_modules/${name}/package.json`, VERSIONS[name])) return bin;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.writeTextFile(`${folder}/package.json`, "{}");
  const npm = new Deno.Command("npm", {
    args: ["install", "--no-audit", "--no-fund", "--prefix", folder, `${name}@${VERSIONS[name]}`],
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stderr } = await npm.output();
  if (code !== 0) throw new Error(`Cannot install ${name}: ${new TextDecoder().decode(stderr).slice(-500)}`);
  return bin;
}

async function isInstalled(manifest: string, version: string): Promise<boolean> {
  try {
    return JSON.parse(await Deno.readTextFile(manifest)).version === version;
  } catch {
    return false;
  }
}

/** Lets a client run until somebody interrupts it, as Ctrl-C does. */
interface Interruption {
  readonly interruptWhen?: Promise<unknown>;
}

export interface CodexOptions extends Interruption {
  readonly proxyUrl: string;
  readonly key: string;
  readonly model: string;
  readonly websockets?: boolean;
  /** How often it reconnects a stream that broke; its own default is 5. */
  readonly streamRetries?: number;
  readonly folder: string;
}

/** One `codex exec` turn in a home and a working folder of its own. */
export async function runCodex(options: CodexOptions, prompt: string): Promise<ClientRun> {
  const bin = await installClient("@openai/codex");
  const home = `${options.folder}/codex-home`;
  const work = `${options.folder}/work`;
  await Deno.mkdir(home, { recursive: true });
  await Deno.mkdir(work, { recursive: true });
  await Deno.writeTextFile(
    `${home}/config.toml`,
    [
      `model = "${options.model}"`,
      `model_provider = "holdfast"`,
      `[model_providers.holdfast]`,
      `name = "Holdfast"`,
      `base_url = "${options.proxyUrl}/v1"`,
      `env_key = "HOLDFAST_KEY"`,
      `wire_api = "responses"`,
      `requires_openai_auth = false`,
      ...(options.websockets === true ? ["supports_websockets = true"] : []),
      ...(options.streamRetries === undefined ? [] : [`stream_max_retries = ${options.streamRetries}`]),
      "",
    ].join("\n"),
  );
  return await run(bin, ["exec", "--skip-git-repo-check", prompt], work, {
    CODEX_HOME: home,
    HOLDFAST_KEY: options.key,
    HOME: options.folder,
  }, options.interruptWhen);
}

export interface ClaudeOptions extends Interruption {
  readonly proxyUrl: string;
  readonly key: string;
  readonly model: string;
  readonly folder: string;
  readonly args?: readonly string[];
  /** How often it sends a failed request again by itself; its own default is 10. */
  readonly retries?: number;
}

/** One `claude -p` turn in a home and a working folder of its own. */
export async function runClaude(options: ClaudeOptions, prompt: string): Promise<ClientRun> {
  const bin = await installClient("@anthropic-ai/claude-code");
  const work = `${options.folder}/claude-work`;
  await Deno.mkdir(work, { recursive: true });
  return await run(bin, ["-p", prompt, "--model", options.model, ...(options.args ?? [])], work, {
    HOME: options.folder,
    CLAUDE_CONFIG_DIR: `${options.folder}/claude-home`,
    ANTHROPIC_BASE_URL: options.proxyUrl,
    ANTHROPIC_AUTH_TOKEN: options.key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    ...(options.retries === undefined ? {} : { CLAUDE_CODE_MAX_RETRIES: `${options.retries}` }),
    IS_SANDBOX: "1",
  }, options.interruptWhen);
}

const CLIENT_LIMIT_MS = 120_000;

async function run(
  bin: string,
  args: string[],
  cwd: string,
  env: Record<string, string>,
  interruptWhen?: Promise<unknown>,
): Promise<ClientRun> {
  const signal = AbortSignal.timeout(CLIENT_LIMIT_MS);
  const command = new Deno.Command(bin, {
    args,
    cwd,
    env: { PATH: Deno.env.get("PATH") ?? "", NO_COLOR: "1", ...env },
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal,
  });
  const child = command.spawn();
  interruptWhen?.then(() => child.kill("SIGINT")).catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
