/** The three clients a pool serves, as their users run them, and what these see of an answer or of its absence. */
import OpenAI from "openai";
import type { PoolRig } from "./pool_rig.ts";
import { runClaude, runCodex } from "./real_clients.ts";
import { CLIENT_KEY } from "./rig.ts";

/** What the person in front of the client sees. */
export interface Seen {
  /** Exit code; of a library: 0 for an answer, 1 for an exception. */
  readonly code: number;
  readonly text: string;
}

export interface PoolClient {
  readonly name: string;
  ask(pools: PoolRig, model: string): Promise<Seen>;
}

const PROMPT = "say pong";

const codex: PoolClient = {
  name: "Codex CLI",
  async ask({ rig }, model) {
    const run = await runCodex(
      { proxyUrl: rig.app.url, key: CLIENT_KEY, model, folder: rig.folder.path },
      PROMPT,
    );
    return { code: run.code, text: run.code === 0 ? run.stdout.trim() : lastComplaint(run.stderr) };
  },
};

const claude: PoolClient = {
  name: "Claude Code",
  async ask({ rig }, model) {
    const run = await runClaude({
      proxyUrl: rig.app.url,
      key: CLIENT_KEY,
      model,
      folder: rig.folder.path,
      // Ten tries of its own take minutes; two show as much.
      retries: 2,
    }, PROMPT);
    return { code: run.code, text: (run.stdout.trim() || run.stderr.trim()).replaceAll(/\s+/g, " ") };
  },
};

/** With its own retries as they come: two, after half a second and a second. */
const openai: PoolClient = {
  name: "`openai` package",
  async ask({ rig }, model) {
    const client = new OpenAI({ apiKey: CLIENT_KEY, baseURL: `${rig.app.url}/v1` });
    try {
      const answer = await client.chat.completions.create({
        model,
        messages: [{ role: "user", content: PROMPT }],
      });
      return { code: 0, text: answer.choices[0]?.message.content ?? "" };
    } catch (error) {
      return {
        code: 1,
        text: `${error instanceof Error ? `${error.constructor.name}: ${error.message}` : error}`,
      };
    }
  },
};

export const POOL_CLIENTS: readonly PoolClient[] = [codex, claude, openai];

/** Codex tells its reconnects too; the last line is what it ends with. */
function lastComplaint(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim()).filter((line) => /error/i.test(line));
  return lines.at(-1) ?? stderr.trim().slice(-300);
}
