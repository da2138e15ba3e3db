/**
 * `holdfast login …`: sign in at Codex or Claude, and keep the login where Holdfast uses it.
 */
import { createUpstream } from "../upstream/http_client.ts";
import { readProxyEnvironment } from "../upstream/egress_proxy.ts";
import type { Config } from "../config_types.ts";
import { readBaseUrl } from "../config_values.ts";
import { StoreFailure, type Upstream } from "../ports.ts";
import { type Call, type Command, EXIT, problem, type Report } from "./command.ts";
import { loginAtClaude } from "./login_claude.ts";
import { loginAtCodex } from "./login_codex.ts";
import { withConfig } from "./management_client.ts";

export const LOGIN: Command = {
  name: "login",
  summary: "Sign in at Codex or Claude",
  examples: ["holdfast login codex", "holdfast login claude"],
  subcommands: [
    {
      name: "codex",
      summary: "Sign in with a ChatGPT account, by a code typed into any browser",
      details:
        "The login is saved in auth-dir; a running Holdfast uses it at once. With --browser the login page answers to this machine, on port 1455.",
      options: [
        { name: "browser", value: null, summary: "Open the login page here instead of showing a code" },
        {
          name: "issuer",
          value: "URL",
          summary: "Another authorization server than https://auth.openai.com",
        },
        {
          name: "callback-port",
          value: "PORT",
          summary: "Where --browser is answered; other issuers than OpenAI's",
        },
      ],
      examples: ["holdfast login codex", "holdfast login codex --browser"],
      run: (call) => run(call, loginAtCodex),
    },
    {
      name: "claude",
      summary: "Sign in with a Claude subscription, by a code pasted from the browser",
      details:
        "The login is saved beside the database, and the lines that name it in the configuration are printed. Anthropic reserves subscription logins for its own programs; API keys have no such limit.",
      options: [
        {
          name: "authorize-url",
          value: "URL",
          summary: "Another login page than https://claude.ai/oauth/authorize",
        },
        { name: "token-url", value: "URL", summary: "Another token endpoint than Anthropic's" },
      ],
      examples: ["holdfast login claude"],
      run: (call) => run(call, loginAtClaude),
    },
  ],
};

export interface LoginContext {
  readonly call: Call;
  readonly config: Config;
  readonly upstream: Upstream;
  /** Tells the person at the terminal what to do; stdout is for the result alone. */
  readonly say: (text: string) => void;
}

function run(call: Call, login: (context: LoginContext) => Promise<Report>): Promise<Report> {
  return withConfig(call, async ({ config }) => {
    const { host } = call;
    for (const name of ["issuer", "authorize-url", "token-url"]) {
      const value = call.option(name);
      const reading = value === null ? null : readBaseUrl(value);
      if (reading !== null && !reading.ok) {
        return problem(EXIT.usage, "usage", `--${name} ${reading.problem}`);
      }
    }
    const environment = readProxyEnvironment((name) => host.env(name));
    const upstream = createUpstream({ clock: host.clock, proxyUrl: config.proxyUrl, environment });
    try {
      return await login({ call, config, upstream, say: (text) => host.stderr.write(`${text}\n`) });
    } catch (error) {
      if (error instanceof StoreFailure) return problem(EXIT.failed, "not_saved", error.message);
      throw error;
    } finally {
      upstream.close();
    }
  });
}
