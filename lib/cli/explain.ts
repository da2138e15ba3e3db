/**
 * `holdfast explain`: one request told from its first attempt to its answer. `holdfast why`: who would serve a model.
 */
import type { DecisionRecord } from "../core/decision.ts";
import { type DecisionResult, type StoryLine, tellDecision, tellDuration } from "../proxy/decision_words.ts";
import { answer, type Command, EXIT, problem, type Report } from "./command.ts";
import { type Management, MANAGEMENT_OPTIONS, withManagement } from "./management_client.ts";
import { type Painter, printable, relativeTime, type Style, table } from "./terminal.ts";

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
    readonly id: string;
    readonly account: string;
    readonly provider: string;
    readonly model: string | null;
    readonly round: number;
    readonly cause: string;
    readonly probe: string;
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly outcome: string | null;
    readonly status: number | null;
    readonly row: number | null;
  }[];
  readonly notes: readonly string[];
  readonly moved_to: string | null;
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

/** In the same words as the status page: both read the record, neither adds to it. */
function showDecision(decision: DecisionJson): Report {
  return answer(decision, (style) => {
    const { paint, nowMs } = style;
    const story = tellDecision(readRecord(decision), (account) => account);
    const startMs = Date.parse(decision.at);
    const after = decision.ended_at === null
      ? ""
      : ` after ${tellDuration(Date.parse(decision.ended_at) - startMs)}`;
    const about = [
      decision.request_id,
      decision.route,
      decision.model ?? "no model",
      relativeTime(decision.at, nowMs),
    ];
    const lines = [
      paint[TITLES[story.result]](printable(story.title + after)),
      ...(story.because === null ? [] : [printable(story.because)]),
      paint.faint(printable(about.join("  "))),
      "",
      ...story.lines.map(({ atMs, text, tone }) =>
        `  ${`+${tellDuration(atMs - startMs)}`.padEnd(12)}${paintLine(printable(text), tone, paint)}`
      ),
    ];
    return `${lines.join("\n")}\n${showCandidates(decision, style)}`;
  });
}

const TITLES: Readonly<Record<DecisionResult, keyof Painter>> = {
  served: "good",
  refused: "warn",
  left: "warn",
  failed: "bad",
};

function paintLine(text: string, tone: StoryLine["tone"], paint: Painter): string {
  switch (tone) {
    case "good":
      return paint.good(text);
    case "bad":
      return paint.warn(text);
    case "wait":
      return paint.faint(text);
    case "plain":
      return text;
  }
}

/** The record that management's JSON was made of. */
function readRecord(json: DecisionJson): DecisionRecord {
  const ms = (iso: string): number => Date.parse(iso);
  return {
    requestId: json.request_id,
    atMs: ms(json.at),
    route: json.route,
    model: json.model,
    tenant: json.tenant,
    status: json.status,
    code: json.code,
    rule: json.rule,
    rounds: json.rounds,
    endedAtMs: json.ended_at === null ? null : ms(json.ended_at),
    waits: json.waits.map(({ from, until, reason }) => ({ fromMs: ms(from), untilMs: ms(until), reason })),
    // Shown as a table of their own.
    candidates: [],
    attempts: json.attempts.map((attempt) => ({
      id: attempt.id,
      account: attempt.account,
      provider: attempt.provider,
      model: attempt.model,
      round: attempt.round,
      cause: attempt.cause,
      probe: attempt.probe,
      startedAtMs: ms(attempt.started_at),
      endedAtMs: attempt.ended_at === null ? null : ms(attempt.ended_at),
      outcome: attempt.outcome,
      status: attempt.status,
      row: attempt.row,
    })),
    notes: [...json.notes],
    movedTo: json.moved_to,
  };
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
