/**
 * Codex logins (wire-facts 4.5): a device code, or a browser on this machine.
 */
import { maskEmail, parseCredentialFile } from "../core/credential.ts";
import { readJwtClaims } from "../core/jwt.ts";
import { saveCodexLogin } from "./auth_dir.ts";
import { exchangeCode, makePkce, type ReceivedTokens, wordError } from "./authorization.ts";
import { startCallbackServer } from "./callback_server.ts";
import { answer, EXIT, problem, type Report } from "./command.ts";
import { callOnce, describeCause } from "./http.ts";
import type { LoginContext } from "./login.ts";

const ISSUER = "https://auth.openai.com";
const CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann";
const SCOPE = "openid profile email offline_access";
/** The redirect address registered for the client. */
const CALLBACK_PORT = 1455;
const CALLBACK_PATH = "/auth/callback";
/** A device code is good for 15 minutes; nobody looks at a login page for longer either. */
const LOGIN_LIMIT_MS = 900_000;
const DEFAULT_POLL_SECONDS = 5;

export function loginAtCodex(context: LoginContext): Promise<Report> {
  const issuer = (context.call.option("issuer") ?? ISSUER).replace(/\/+$/, "");
  return context.call.flag("browser") ? byBrowser(context, issuer) : byDeviceCode(context, issuer);
}

async function byDeviceCode(context: LoginContext, issuer: string): Promise<Report> {
  const { call, upstream, say } = context;
  const { clock } = call.host;
  const accounts = `${issuer}/api/accounts/deviceauth`;
  const asked = await callOnce(upstream, clock, {
    method: "POST",
    url: `${accounts}/usercode`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ client_id: CLIENT_ID }),
  });
  if (!asked.ok) return notReached(asked.cause, issuer);
  const { status, json } = asked;
  if (status === 404) {
    return problem(
      EXIT.failed,
      "device_code_off",
      "Device codes are switched off here: holdfast login codex --browser",
    );
  }
  const deviceId = text(json?.["device_auth_id"]);
  const userCode = text(json?.["user_code"]) ?? text(json?.["usercode"]);
  if (status !== 200 || deviceId === null || userCode === null) {
    return problem(
      EXIT.failed,
      "refused",
      `${new URL(issuer).host} gives no device code${wordError(status, json)}`,
    );
  }
  say(`Open ${issuer}/codex/device in a browser, sign in, and enter the code\n\n  ${userCode}\n\nWaiting …`);
  const pollMs = readPollSeconds(json?.["interval"]) * 1_000;
  const untilMs = clock.now() + LOGIN_LIMIT_MS;
  while (clock.now() + pollMs <= untilMs) {
    await clock.sleepUntil(clock.now() + pollMs, null);
    const polled = await callOnce(upstream, clock, {
      method: "POST",
      url: `${accounts}/token`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ device_auth_id: deviceId, user_code: userCode }),
    });
    // Not entered yet, or the way is blocked for a moment: the code stays good.
    if (
      !polled.ok || polled.status === 403 || polled.status === 404 || polled.status === 429 ||
      polled.status >= 500
    ) {
      continue;
    }
    const code = text(polled.json?.["authorization_code"]);
    const verifier = text(polled.json?.["code_verifier"]);
    if (polled.status !== 200 || code === null || verifier === null) {
      return problem(EXIT.failed, "refused", `The login was refused${wordError(polled.status, polled.json)}`);
    }
    return await finish(context, issuer, { code, verifier, redirect: `${issuer}/deviceauth/callback` });
  }
  return problem(EXIT.failed, "timeout", "The code was not entered within 15 minutes; please start again");
}

async function byBrowser(context: LoginContext, issuer: string): Promise<Report> {
  const { call, say } = context;
  const { host } = call;
  const pkce = makePkce(host.ids, host.digest);
  const wanted = Number(call.option("callback-port") ?? CALLBACK_PORT);
  if (!Number.isInteger(wanted) || wanted < 0 || wanted > 65_535) {
    return problem(EXIT.usage, "usage", "--callback-port must be 0..65535");
  }
  let server: ReturnType<typeof startCallbackServer>;
  try {
    server = startCallbackServer({
      port: wanted,
      path: CALLBACK_PATH,
      state: pkce.state,
      clock: host.clock,
      digest: host.digest,
      limitMs: LOGIN_LIMIT_MS,
    });
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    const why =
      `Port ${wanted} is taken, perhaps by another login; end that one, or sign in with a code: holdfast login codex`;
    return problem(EXIT.failed, "port_taken", why);
  }
  const redirect = `http://localhost:${server.port}${CALLBACK_PATH}`;
  const url = `${issuer}/oauth/authorize?${new URLSearchParams({
    response_type: "code",
    client_id: CLIENT_ID,
    redirect_uri: redirect,
    scope: SCOPE,
    code_challenge: pkce.challenge,
    code_challenge_method: "S256",
    state: pkce.state,
    id_token_add_organizations: "true",
    codex_cli_simplified_flow: "true",
    originator: "codex_cli_rs",
  })}`;
  const opened = await host.openBrowser(url);
  say(
    opened
      ? `A browser was opened. If nothing shows, open\n\n  ${url}\n\nWaiting …`
      : `Open this address in a browser on this machine:\n\n  ${url}\n\nWaiting …`,
  );
  const callback = await server.arrived;
  await server[Symbol.asyncDispose]();
  switch (callback.kind) {
    case "timeout":
      return problem(EXIT.failed, "timeout", "Nobody signed in within 15 minutes; please start again");
    case "refused":
      return problem(EXIT.failed, "refused", `The login was refused (${callback.reason})`);
    case "code":
      return await finish(context, issuer, { code: callback.code, verifier: pkce.verifier, redirect });
  }
}

interface Grant {
  readonly code: string;
  readonly verifier: string;
  readonly redirect: string;
}

async function finish(context: LoginContext, issuer: string, grant: Grant): Promise<Report> {
  const { call, upstream, config } = context;
  const exchanged = await exchangeCode(upstream, call.host.clock, {
    url: `${issuer}/oauth/token`,
    encoding: "form",
    fields: {
      grant_type: "authorization_code",
      code: grant.code,
      redirect_uri: grant.redirect,
      client_id: CLIENT_ID,
      code_verifier: grant.verifier,
    },
  });
  if (!exchanged.ok) return problem(EXIT.failed, "refused", `Cannot sign in: ${exchanged.problem}`);
  const text = credentialText(exchanged.tokens, call.host.clock.now());
  const parsed = parseCredentialFile(text);
  if (parsed.kind !== "credential" || parsed.record.accountId === null) {
    return problem(
      EXIT.failed,
      "no_account",
      "The login names no ChatGPT account, so Codex would not accept it",
    );
  }
  const { record } = parsed;
  const saved = await saveCodexLogin(config.authDir, text, `codex-${record.accountId!.slice(0, 8)}`);
  const email = record.email === null ? null : maskEmail(record.email);
  const json = {
    kind: "codex",
    account_id: record.accountId,
    email,
    plan: record.plan,
    path: saved.path,
    result: saved.result,
  };
  return answer(json, ({ paint }) => {
    const who = email === null ? "" : ` as ${email}`;
    const plan = record.plan === null ? "" : ` (${record.plan})`;
    const once = record.tokens.refreshToken === null
      ? `${paint.warn("No refresh token came with it: it cannot be renewed")}\n`
      : "";
    return `${
      paint.good(`Signed in${who}${plan}`)
    }\nSaved in ${saved.path}; a running Holdfast uses it at once\n${once}`;
  });
}

/** A flat file: one account each, so that many lie in one folder. */
function credentialText(tokens: ReceivedTokens, nowMs: number): string {
  const claims = [tokens.idToken, tokens.accessToken].map((token) =>
    token === null ? null : readJwtClaims(token)
  );
  const claim = (name: "accountId" | "email") =>
    claims.map((one) => one?.[name] ?? null).find((value) => value !== null);
  return `${
    JSON.stringify(
      {
        type: "codex",
        id_token: tokens.idToken ?? "",
        access_token: tokens.accessToken,
        refresh_token: tokens.refreshToken ?? "",
        account_id: claim("accountId") ?? "",
        email: claim("email") ?? "",
        last_refresh: new Date(nowMs).toISOString(),
        ...(tokens.expiresAtMs === null ? {} : { expired: new Date(tokens.expiresAtMs).toISOString() }),
      },
      null,
      2,
    )
  }\n`;
}

function notReached(cause: string, issuer: string): Report {
  return problem(EXIT.failed, "unreachable", `Cannot sign in: ${describeCause(cause, new URL(issuer).host)}`);
}

/** Whole seconds, as text or number; 1..60, because both less and more would be a mistake of the server's. */
function readPollSeconds(value: unknown): number {
  const seconds = Number(value ?? DEFAULT_POLL_SECONDS);
  return Number.isFinite(seconds) && seconds >= 1 ? Math.min(60, Math.ceil(seconds)) : DEFAULT_POLL_SECONDS;
}

/** Printable ASCII without blanks: these go into URLs, bodies and terminals. */
function text(value: unknown): string | null {
  return typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value) ? value : null;
}
