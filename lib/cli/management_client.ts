/**
 * Talks to the running Holdfast of a configuration, with its admin key.
 */
import { isLoopbackHost } from "../core/ip_address.ts";
import type { Config } from "../config_types.ts";
import { NO_PROXY_ENVIRONMENT } from "../upstream/egress_proxy.ts";
import { createUpstream } from "../upstream/http_client.ts";
import { type Call, EXIT, problem, type Report } from "./command.ts";
import { callOnce, type SmallAnswer } from "./http.ts";
import { loadConfig, type LoadedConfig } from "./settings.ts";

/** Longer than it takes to list ten thousand accounts. */
const TIMEOUT_MS = 15_000;
const ANSWER_LIMIT_BYTES = 67_108_864;

export type Json = Record<string, unknown>;

export type ManagementAnswer =
  | { readonly ok: true; readonly json: Json }
  | { readonly ok: false; readonly report: Report };

export interface Management {
  readonly url: string;
  /** @param path  below `/v0/management/` */
  call(method: string, path: string, body?: Json): Promise<ManagementAnswer>;
}

export const MANAGEMENT_OPTIONS = [
  {
    name: "url",
    value: "URL",
    summary: "The running Holdfast; left out: where the configuration says (or HOLDFAST_URL)",
  },
] as const;

/** Where the process of this configuration listens, as this machine reaches it; null for a port nobody can know. */
export function localUrl(config: Config): string | null {
  if (config.port === 0) return null;
  const host = config.host === "0.0.0.0" ? "127.0.0.1" : config.host === "::" ? "::1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${config.port}`;
}

/** Reads the configuration and runs `work`; a mistake in the file is the report. */
export function withConfig(
  call: Call,
  work: (loaded: LoadedConfig) => Promise<Report>,
  named: string | null = call.option("config"),
): Promise<Report> {
  const load = loadConfig(named, call.host);
  if (load.ok) return work(load.loaded);
  return Promise.resolve(problem(EXIT.usage, "config_invalid", load.message));
}

/** Runs `work` with the running Holdfast's management; what keeps us from it is the report. */
export function withManagement(
  call: Call,
  work: (management: Management) => Promise<Report>,
): Promise<Report> {
  return withConfig(call, ({ config }) => {
    const opened = openManagement(call, config);
    return "report" in opened ? Promise.resolve(opened.report) : opened.use(work);
  });
}

export function openManagement(
  call: Call,
  config: Config,
): { readonly report: Report } | { use<T>(work: (management: Management) => Promise<T>): Promise<T> } {
  const named = call.option("url") ?? call.host.env("HOLDFAST_URL") ?? null;
  const url = (named ?? localUrl(config) ?? "").replace(/\/+$/, "");
  if (!URL.canParse(url)) {
    const why = named === null
      ? 'The port is chosen at start ("port: 0"): say where Holdfast listens with --url'
      : "--url must be a URL like http://127.0.0.1:8317";
    return { report: problem(EXIT.usage, "no_address", why) };
  }
  const { protocol, hostname } = new URL(url);
  // What the configuration says is this machine, whichever of its addresses it is.
  const isHere = named === null || isLoopbackHost(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && isHere)) {
    const why = "The admin key is sent over https, or to this machine itself; use https or an ssh tunnel";
    return { report: problem(EXIT.usage, "insecure_address", why) };
  }
  const key = call.host.env("HOLDFAST_ADMIN_KEY") ?? config.adminApiKey;
  if (key === "") {
    const why = 'There is no admin key: set "admin-api-key" in the configuration, or HOLDFAST_ADMIN_KEY';
    return { report: problem(EXIT.refused, "no_admin_key", why) };
  }
  const { clock } = call.host;
  return {
    async use(work) {
      const upstream = createUpstream({
        clock,
        proxyUrl: isHere ? "direct" : config.proxyUrl,
        environment: NO_PROXY_ENVIRONMENT,
      });
      try {
        return await work({
          url,
          async call(method, path, body) {
            const answer = await callOnce(upstream, clock, {
              method,
              url: `${url}/v0/management/${path}`,
              headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
              ...(body === undefined ? {} : { body: JSON.stringify(body) }),
              timeoutMs: TIMEOUT_MS,
              limitBytes: ANSWER_LIMIT_BYTES,
            });
            return readAnswer(answer, url);
          },
        });
      } finally {
        upstream.close();
      }
    },
  };
}

function readAnswer(answer: SmallAnswer, url: string): ManagementAnswer {
  if (!answer.ok) {
    const why = answer.cause === "refused"
      ? `Holdfast is not running at ${url}; start it with: holdfast serve`
      : `Holdfast does not answer at ${url} (${answer.cause.replaceAll("_", " ")})`;
    return { ok: false, report: problem(EXIT.notRunning, "not_running", why) };
  }
  const { status, json } = answer;
  if (json === null) {
    const why = `What answers at ${url} is not Holdfast`;
    return { ok: false, report: problem(EXIT.notRunning, "not_holdfast", why) };
  }
  if (status < 300) return { ok: true, json };
  const { code, message } = readError(json);
  return { ok: false, report: wordRefusal(status, code, message, url) };
}

function wordRefusal(status: number, code: string, message: string, url: string): Report {
  if (status === 401) {
    return problem(
      EXIT.refused,
      code,
      `The Holdfast at ${url} has another admin key; a changed "admin-api-key" counts after a reload`,
    );
  }
  if (status === 404) {
    const off = message.startsWith("Management is off");
    return problem(off ? EXIT.refused : EXIT.notFound, off ? "management_off" : code, message);
  }
  return problem(EXIT.failed, code, message);
}

function readError(json: Json): { code: string; message: string } {
  const error = typeof json["error"] === "object" && json["error"] !== null ? json["error"] as Json : {};
  const { code, message } = error;
  return {
    code: typeof code === "string" ? code : "refused",
    message: typeof message === "string" ? message : "Holdfast refuses the call",
  };
}
