/**
 * What a request written by hand came to: what its sender got, and what the upstream saw of it.
 *
 * Every probe carries a number in its body, so that probes may run side by side; what hides inside it or behind it
 * carries another word, so that a hit of it can only be a smuggled request.
 */
import { assert, assertEquals } from "@std/assert";
import { exchange, type RawAnswer } from "./raw_client.ts";
import { CLIENT_KEY, type Rig } from "./rig.ts";

/** The words of one probe. */
export interface Probe {
  /** A sound JSON body. */
  readonly body: string;
  /** `content-length` of that body. */
  readonly length: string;
  /** That body as one chunk with its last chunk. */
  readonly chunks: string;
  /** A sound request that the upstream must never see, because it is hidden in a body or behind one. */
  readonly hidden: string;
}

export interface Case {
  readonly name: string;
  /** The bytes as Latin-1 text. */
  readonly send: (probe: Probe) => string;
  /** Statuses of the answers in order, `last` behind one that says `connection: close`, `closed` where it was ended. */
  readonly want: string;
  /** Requests the upstream sees of it; 0 if absent. */
  readonly hits?: number;
  /** Hidden requests that are requests of their own by every reading: sent behind a body that is over. */
  readonly behind?: number;
}

export const POST = "POST /v1/responses HTTP/1.1";
export const HEADERS: readonly string[] = [
  "host: localhost",
  `authorization: Bearer ${CLIENT_KEY}`,
  "content-type: application/json",
];
export const CHUNKED = "transfer-encoding: chunked";

/** Lines of a head, the blank line, and what follows. */
export function message(lines: readonly string[], rest = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${rest}`;
}

let probes = 0;

function newProbe(): Probe & { readonly number: number } {
  const number = ++probes;
  const body = JSON.stringify({ model: "m1", input: `probe-${number}.` });
  const hidden = JSON.stringify({ model: "m1", input: `hidden-${number}.` });
  return {
    number,
    body,
    length: `content-length: ${body.length}`,
    chunks: `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    hidden: message([POST, ...HEADERS, `content-length: ${hidden.length}`], hidden),
  };
}

/** Sends every case on a connection of its own and compares what came of it, all at once. */
export async function runCases(rig: Rig, cases: readonly Case[]): Promise<void> {
  const got: Record<string, unknown> = {};
  const want: Record<string, unknown> = {};
  await Promise.all(cases.map(async (one) => {
    const probe = newProbe();
    const { answers, closed, text } = await exchange(rig.app.server.port, one.send(probe), {
      expected: one.want.match(/\d+/g)?.length ?? 0,
      limitMs: 2_000,
      // Ends with the connection, where it is to end.
      quietMs: one.want.endsWith("closed") ? 2_000 : 60,
    });
    const count = (word: string) =>
      rig.provider.hits.filter((hit) => hit.text().includes(`${word}-${probe.number}.`)).length;
    got[one.name] = {
      got: [...answers.map(wordAnswer), ...closed ? ["closed"] : []].join(" "),
      hits: count("probe"),
      hidden: count("hidden"),
      secret: /SENT-[A-Za-z0-9_-]+/.exec(text)?.[0] ?? null,
    };
    want[one.name] = { got: one.want, hits: one.hits ?? 0, hidden: one.behind ?? 0, secret: null };
  }));
  // By name: they end in any order.
  for (const { name } of cases) assertEquals({ [name]: got[name] }, { [name]: want[name] });
  assertNothingLeft(rig);
  const after = await rig.responses();
  assertEquals(after.status, 200, "the proxy serves as before");
  await after.body?.cancel();
}

/** The runtime's own refusals say it as well, and do it. */
function wordAnswer({ status, headers, body }: RawAnswer): string {
  return body !== "" && headers.get("connection") === "close" ? `${status} last` : String(status);
}

/** What the upstream may know: its own account's token, and nothing else that is secret. */
export function assertNothingLeft(rig: Rig): void {
  for (const hit of rig.provider.hits) {
    const seen = [hit.path, ...[...hit.headers].flat(), hit.text()].join("\n");
    for (const [secret] of seen.matchAll(/SENT-[A-Za-z0-9_-]+/g)) {
      assert(secret.startsWith("SENT-tok-"), `the upstream saw ${secret}`);
    }
  }
}
