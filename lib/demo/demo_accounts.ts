/**
 * The four simulated accounts of the demo, as credential files and as scripts of the simulated provider.
 */
import { created, failed, failure, json, ok, stream } from "./simulated_replies.ts";
import type { SimulatedProvider } from "./simulated_provider.ts";

export interface DemoAccount {
  readonly name: string;
  readonly trait: string;
  readonly token: string;
}

export const DEMO_MODEL = "gpt-simulated";

export const DEMO_ACCOUNTS: readonly DemoAccount[] = [
  { name: "anna", trait: "out of quota", token: "demo-token-anna" },
  { name: "bert", trait: "fails with 503", token: "demo-token-bert" },
  { name: "cleo", trait: "does not have the model", token: "demo-token-cleo" },
  { name: "dora", trait: "healthy", token: "demo-token-dora" },
];

/** A flat codex file, as people put them into auth-dir. */
export function demoCredential(account: DemoAccount): string {
  return JSON.stringify({
    type: "codex",
    id_token: unsignedToken({
      email: `${account.name}@example.test`,
      "https://api.openai.com/auth": {
        chatgpt_account_id: account.name,
        chatgpt_user_id: "demo",
        chatgpt_plan_type: "plus",
      },
    }),
    access_token: account.token,
    refresh_token: `${account.token}-refresh`,
    account_id: account.name,
    email: `${account.name}@example.test`,
    expired: "2099-01-01T00:00:00Z",
    last_refresh: "2026-01-01T00:00:00Z",
  });
}

/** The shape of an id token, for the claims in it; nobody checks its signature. */
export function unsignedToken(claims: Record<string, unknown>): string {
  const part = (value: unknown): string =>
    btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${part({ alg: "none" })}.${part(claims)}.`;
}

/** What each account answers; `nowMs` dates the quota's reset. */
export function scriptDemo(provider: SimulatedProvider, nowMs: number): void {
  const [anna, bert, cleo, dora] = DEMO_ACCOUNTS.map(({ token }) => provider.account(token));
  anna!.otherwise(failure(429, {
    type: "usage_limit_reached",
    message: "The usage limit has been reached",
    extra: { plan_type: "plus", resets_at: Math.floor(nowMs / 1000) + 7200, resets_in_seconds: 7200 },
  }));
  // One overloaded answer, then well again: its cooldown ends while the demo runs.
  bert!.script(
    failure(503, { code: "server_is_overloaded", message: "Our servers are currently overloaded." }),
  )
    .otherwise(ok("Hello from bert, who is well again."));
  cleo!.otherwise(
    json(
      { detail: `The '${DEMO_MODEL}' model is not supported when using Codex with a ChatGPT account.` },
      400,
    ),
  );
  dora!.script(
    ok("Hello from dora."),
    ok("Hello again from dora."),
    ok("Turn one, from dora."),
    ok("Turn two, still dora."),
    // Fails after its first event: nothing of it may reach the client.
    stream([created("resp_lost"), failed("server_error")]),
  ).otherwise(ok("Hello from dora."));
}
