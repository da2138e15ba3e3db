/**
 * `holdfast explain`: one request told from its first attempt to its answer. `holdfast why`: who would serve a model.
 */
import { answer, type Command, EXIT, problem, type Report } from "./command.ts";
import { type Management, MANAGEMENT_OPTIONS, withManagement } from "./management_client.ts";
import { duration, type Painter, printable, relativeTime, type Style, table } from "./terminal.ts";

interface BlockJson {
  readonly block: string | null;
  readonly until: string | null;
  readonly source: string | null;
}

/** As `GET /v0/management/requests/{id}` gives it. */
interface DecisionJson {
  readonly request_id: string;
  readonly at: string;
  readonly ended_at: string | null;
  readonly route: string;
  readonly model: string | null;
  readonly tenant: string;
  readonly status: number | null;
  readonly code: string | null;
  readonly rule: string | null;
  readonly rounds: number;
  readonly waits: readonly { readonly from: string; readonly until: string; readonly reason: string }[];
  readonly candidates: readonly (BlockJson & { readonly account: string })[];
  readonly attempts: readonly {
    readonly account: string;
    readonly model: string | null;
    readonly round: number;
    readonly cause: string;
    readonly probe: string;
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly outcome: string | null;
    readonly status: number | null;
  }[];
  readonly notes: readonly string[];
}

export const EXPLAIN: Command = {
  name: "explain",
  summary: "Tell what happened to a request, attempt by attempt",
  details:
    "Every answer carries its id as x-request-id. The last 1,000 requests are known, also those refused without any attempt.",
  positionals: [{ name: "REQUEST", summary: "request id; left out: the last request", required: false }],
  options: MANAGEMENT_OPTIONS,
  examples: ["holdfast explain", "holdfast explain req_8kTz1… --json"],
  run: (call) => withManagement(call, (management) => explain(management, call.positional(0))),
};

export const WHY: Command = {
  name: "why",
  summary: "Tell who would serve a model now, and why the others would not",
  positionals: [{ name: "MODEL", summary: "model, alias, pool or provider/model", required: true }],
  options: [
    ...MANAGEMENT_OPTIONS,
    {
      name: "protocol",
      value: "NAME",
      summary: "Of the client that asks; it decides where an unlisted name goes",
      choices: ["responses", "chat", "messages"],
    },
  ],
  examples: ["holdfast why gpt-5.5", "holdfast why claude-opus-4-8 --protocol messages"],
  run: (call) =>
    withManagement(call, (management) => why(management, call.positional(0), call.option("protocol"))),
};

async function explain(management: Management, id: string): Promise<Report> {
  if (id !== "" && id !== "last") {
    const found = await management.call("GET", `requests/${encodeURIComponent(id)}`);
    return found.ok ? showDecision(found.json as unknown as DecisionJson) : found.report;
  }
  const latest = await management.call("GET", "requests?limit=1");
  if (!latest.ok) return latest.report;
  const [decision] = latest.json["requests"] as readonly DecisionJson[];
  if (decision === undefined) return problem(EXIT.notFound, "not_found", "No request has come yet");
  return showDecision(decision);
}

function showDecision(decision: DecisionJson): Report {
  return answer(decision, (style) => {
    const lines = [
      headline(decision, style.paint),
      style.paint.faint(
        `${decision.request_id}  ${decision.route}  ${printable(decision.model ?? "no model")}  ${
          relativeTime(decision.at, style.nowMs)
        }`,
      ),
      "",
      ...storyOf(decision, style.paint).map((line) => `  ${line}`),
      ...decision.notes.map((note) => `  ${note.replaceAll("_", " ")}`),
    ];
    return `${lines.join("\n")}\n${showCandidates(decision, style)}`;
  });
}

function headline(decision: DecisionJson, paint: Painter): string {
  const { status, code, attempts } = decision;
  const after = decision.ended_at === null
    ? ""
    : ` after ${duration(Date.parse(decision.ended_at) - Date.parse(decision.at))}`;
  if (status === null) return paint.warn("Still under way");
  if (status === 0) return paint.warn(`The client left${after}`);
  const last = attempts.at(-1);
  if (code === null) return paint.good(`Served by ${last?.account ?? "nobody"} with ${status}${after}`);
  const rule = decision.rule === null ? "" : `, because ${decision.rule.replaceAll("_", " ")}`;
  const tried = attempts.length === 0 ? ", nothing was sent" : "";
  return paint.bad(`Answered ${status} ${code}${after}${rule}${tried}`);
}

/** Attempts and waits in the order of time. */
function storyOf(decision: DecisionJson, paint: Painter): string[] {
  const events = [
    ...decision.attempts.map((attempt) => ({
      atMs: Date.parse(attempt.started_at),
      text: tellAttempt(attempt, paint),
    })),
    ...decision.waits.map((wait) => ({
      atMs: Date.parse(wait.from),
      text: paint.faint(
        `waited ${duration(Date.parse(wait.until) - Date.parse(wait.from))} (${
          wait.reason.replaceAll("_", " ")
        })`,
      ),
    })),
  ];
  const startMs = Date.parse(decision.at);
  return events.toSorted((a, b) => a.atMs - b.atMs)
    .map(({ atMs, text }) => `${`+${duration(atMs - startMs)}`.padEnd(10)} ${text}`);
}

function tellAttempt(attempt: DecisionJson["attempts"][number], paint: Painter): string {
  const took = attempt.ended_at === null
    ? "under way"
    : `after ${duration(Date.parse(attempt.ended_at) - Date.parse(attempt.started_at))}`;
  const why = attempt.cause === "first" ? "" : ` (${attempt.cause.replaceAll("_", " ")})`;
  const probe = attempt.probe === "none" ? "" : ` (probe: ${attempt.probe})`;
  const status = attempt.status === null ? "" : ` [${attempt.status}]`;
  const outcome = (attempt.outcome ?? "").replaceAll("_", " ").replace(":", ": ");
  const told = attempt.outcome === "success" ? paint.good("served") : paint.warn(outcome + status);
  return `${attempt.account}${why}${probe}  ${told} ${took}`;
}

function showCandidates(decision: DecisionJson, style: Style): string {
  const blocked = decision.candidates.filter(({ block }) => block !== null);
  if (blocked.length === 0) return "";
  return `\n${
    table(
      ["NOT TRIED OR DONE WITH", "WHY", "UNTIL"],
      blocked.map((
        candidate,
      ) => [candidate.account, blockText(candidate), relativeTime(candidate.until, style.nowMs)]),
      style,
    )
  }`;
}

function blockText({ block, source }: BlockJson): string {
  if (block === null) return "";
  const why = source === null || source === block ? block : `${block} (${source})`;
  return why.replaceAll("_", " ");
}

/** As `GET /v0/management/why` gives it. */
interface WhyJson {
  readonly model: string;
  readonly resolved_by: "pool" | "alias" | "provider" | "list" | "default";
  readonly targets: readonly { readonly provider: string; readonly model: string }[];
  readonly served_now: boolean;
  readonly next_at: string | null;
  readonly candidates: readonly (BlockJson & {
    readonly account: string;
    readonly model: string | null;
    readonly fallback: boolean;
  })[];
}

const RESOLVED: Readonly<Record<WhyJson["resolved_by"], string>> = {
  pool: "a pool of the configuration",
  alias: "an alias of the configuration",
  provider: "named with its provider",
  list: "listed by the provider",
  default: "listed by nobody, so it goes where the client's protocol goes",
};

async function why(management: Management, model: string, protocol: string | null): Promise<Report> {
  const query = new URLSearchParams({ model, ...(protocol === null ? {} : { protocol }) });
  const found = await management.call("GET", `why?${query}`);
  if (!found.ok) return found.report;
  const told = found.json as unknown as WhyJson;
  return answer(told, (style) => {
    const targets = told.targets.map(({ provider, model }) => `${provider}/${model}`).join(", ");
    const free = told.candidates.filter(({ block }) => block === null).length;
    return [
      `${style.paint.strong(printable(told.model))} is ${RESOLVED[told.resolved_by]}: ${printable(targets)}`,
      verdict(told, free, style),
      "",
      table(
        ["ACCOUNT", "MODEL", "NOW", "BACK"],
        told.candidates.map((candidate) => [
          candidate.account,
          (candidate.model ?? "") + (candidate.fallback ? " (fallback)" : ""),
          candidate.block === null
            ? { text: "can serve", paint: "good" }
            : { text: blockText(candidate), paint: "warn" },
          relativeTime(candidate.until, style.nowMs),
        ]),
        style,
      ),
    ].join("\n");
  }, told.served_now ? EXIT.ok : EXIT.failed);
}

function verdict(told: WhyJson, free: number, { paint, nowMs }: Style): string {
  if (free > 0) return paint.good(`${free} of ${told.candidates.length} accounts can serve it now`);
  if (told.candidates.length === 0) return paint.bad("No account could ever serve it");
  if (told.next_at === null) return paint.bad("Nobody can serve it until somebody acts");
  return paint.bad(`Nobody can serve it now; the first is back ${relativeTime(told.next_at, nowMs)}`);
}
