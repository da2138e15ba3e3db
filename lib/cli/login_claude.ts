/**
 * Claude logins (wire-facts 6.8): a page in any browser, and a code to paste here.
 */
import { dirname, join } from "node:path";
import { maskEmail } from "../core/credential.ts";
import { mergeTokens } from "../core/credential_merge.ts";
import { StoreFailure } from "../ports.ts";
import { anthropicTokenUrl } from "../proxy/account_entries.ts";
import { createCredentialFiles } from "../store/credential_files.ts";
import type { Config } from "../config_types.ts";
import { writeYaml } from "../config_yaml.ts";
import { exchangeCode, makePkce, type ReceivedTokens } from "./authorization.ts";
import { answer, EXIT, problem, type Report } from "./command.ts";
import type { LoginContext } from "./login.ts";
import { writeNewPrivateFile } from "./private_file.ts";

const AUTHORIZE_URL = "https://claude.ai/oauth/authorize";
const CLIENT_ID = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
/** The page that shows the code to be pasted; registered for the client. */
const REDIRECT_URL = "https://platform.claude.com/oauth/code/callback";
const SCOPES = "user:profile user:inference user:sessions:claude_code user:mcp_servers user:file_upload";

export async function loginAtClaude(context: LoginContext): Promise<Report> {
  const { call, config, upstream, say } = context;
  const { host } = call;
  const pkce = makePkce(host.ids, host.digest);
  const url = `${call.option("authorize-url") ?? AUTHORIZE_URL}?${new URLSearchParams({
    code: "true",
    client_id: CLIENT_ID,
    response_type: "code",
    redirect_uri: REDIRECT_URL,
    scope: SCOPES,
    code_challenge: pkce.challenge,
    code_challenge_method: "S256",
    state: pkce.state,
  })}`;
  await host.openBrowser(url);
  say(`Open this address in a browser, and sign in:\n\n  ${url}\n`);
  const pasted = readPasted(await host.ask("Paste the code shown there: ") ?? "");
  if (pasted === null) return problem(EXIT.failed, "no_code", "There was no code to sign in with");
  if (pasted.state !== null && pasted.state !== pkce.state) {
    return problem(EXIT.failed, "wrong_state", "This code belongs to another login; please start again");
  }
  const exchanged = await exchangeCode(upstream, host.clock, {
    url: call.option("token-url") ?? tokenUrl(config),
    encoding: "json",
    fields: {
      grant_type: "authorization_code",
      code: pasted.code,
      state: pkce.state,
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URL,
      code_verifier: pkce.verifier,
    },
    headers: { "anthropic-beta": "oauth-2025-04-20" },
  });
  if (!exchanged.ok) return problem(EXIT.failed, "refused", `Cannot sign in: ${exchanged.problem}`);
  return await finish(context, exchanged.tokens);
}

/** `code`, `code#state`, or the whole address the browser ended at. @returns null when there is no code in it. */
export function readPasted(text: string): { readonly code: string; readonly state: string | null } | null {
  const trimmed = text.trim();
  if (URL.canParse(trimmed) && trimmed.includes("://")) {
    const url = new URL(trimmed);
    const code = url.searchParams.get("code") ?? "";
    const state = url.searchParams.get("state") ?? url.hash.slice(1);
    return isCode(code) ? { code, state: state === "" ? null : state } : null;
  }
  const [code = "", state = ""] = trimmed.split("#", 2);
  return isCode(code) ? { code, state: state === "" ? null : state } : null;
}

function isCode(text: string): boolean {
  return /^[\x21-\x7e]{1,4096}$/.test(text);
}

function tokenUrl(config: Config): string {
  const configured = config.providers.find(({ kind }) => kind === "anthropic");
  return anthropicTokenUrl(configured?.baseUrl ?? "https://api.anthropic.com");
}

async function finish({ call, config }: LoginContext, tokens: ReceivedTokens): Promise<Report> {
  const account = asMapping(tokens.json["account"]);
  const organization = asMapping(tokens.json["organization"]);
  const nowMs = call.host.clock.now();
  const path = join(dirname(config.databasePath), "logins", `claude-${shortId(account["uuid"])}.json`);
  const login = `${
    JSON.stringify(
      {
        type: "claude",
        access_token: tokens.accessToken,
        refresh_token: tokens.refreshToken ?? "",
        email: word(account["email_address"]) ?? "",
        account_uuid: word(account["uuid"]) ?? "",
        organization_uuid: word(organization["uuid"]) ?? "",
        last_refresh: new Date(nowMs).toISOString(),
        ...(tokens.expiresAtMs === null ? {} : { expired: new Date(tokens.expiresAtMs).toISOString() }),
      },
      null,
      2,
    )
  }\n`;
  await save(path, login, tokens, nowMs);
  const isConfigured = config.providers.some(({ accounts }) =>
    accounts.some((account) => account.credentialsPath === path)
  );
  const provider = isConfigured
    ? null
    : { id: "claude", kind: "anthropic", accounts: [{ id: "login", credentials: path }] };
  const address = word(account["email_address"]);
  const email = address === null ? null : maskEmail(address);
  return answer({ kind: "anthropic", email, path, provider }, ({ paint }) => {
    const next = provider === null
      ? "It is in the configuration already; a running Holdfast uses it at once\n"
      : `\nFor the configuration:\n\n${writeYaml({ providers: [provider] })}`;
    return `${paint.good(`Signed in${email === null ? "" : ` as ${email}`}`)}\nSaved in ${path}\n${next}`;
  });
}

/** The same account again: its file keeps its name, so that the configuration stays right. @throws StoreFailure */
async function save(path: string, login: string, tokens: ReceivedTokens, nowMs: number): Promise<void> {
  const refused = writeNewPrivateFile(path, login);
  if (refused === null) return;
  if (refused !== "it exists already") throw new StoreFailure("save the login", `${refused} (${path})`);
  await createCredentialFiles().update(path, (present) => mergeTokens(present, tokens, nowMs) ?? login);
}

function shortId(uuid: unknown): string {
  const text = word(uuid)?.replaceAll(/[^A-Za-z0-9]/g, "").slice(0, 8) ?? "";
  return text === "" ? "login" : text;
}

function word(value: unknown): string | null {
  return typeof value === "string" && /^[\x21-\x7e]{1,256}$/.test(value) ? value : null;
}

function asMapping(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}
