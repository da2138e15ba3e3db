/** P8, P9, C23: what a client has is one attempt's, whole and in order, or an error and none of anybody's. */
import { joinBytes } from "../../../lib/proxy/answer_stream.ts";
import { must } from "../../sim/violation.ts";
import { MARKER, markerOf } from "../attempt_script.ts";
import type { ClientResult } from "../client.ts";
import { type Play, playAlone, sendsOf, traceOf } from "../play.ts";
import { predict, readScriptedStream, type StreamReading } from "../prediction.ts";
import type { Send } from "../scripted_upstream.ts";
import { START_MARKS } from "../wire_events.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export const KEEPALIVE = ": keep-alive\n\n";

export async function checkDelivery(play: Play, client: ClientResult): Promise<void> {
  const { stream, status } = client;
  const text = decode(client.bytes);
  if (status === null) {
    must(client.bytes.length === 0, "P11", () => `${client.requestId} was never answered, yet has bytes`);
    return;
  }
  const told = toldSend(play, client);
  const mayShow = told === null ? null : markerOf(stream.number, told.number);
  for (const marker of new Set(text.match(MARKER) ?? [])) {
    must(
      marker === mayShow,
      "P8",
      () => `${client.requestId} shows ${marker}, its answer is ${mayShow}: ${text}`,
    );
  }
  if (status !== 200) {
    if (client.end === "whole") JSON.parse(text);
    must(
      client.headers!.get("content-type") === "application/json",
      "P8",
      () => `${status} is no JSON: ${text}`,
    );
    return;
  }
  must(told !== null, "P8", () => `${client.requestId} got a 200 that no attempt gave`);
  const attempt = client.headers!.get("x-attempt");
  must(attempt === null || attempt === String(told.number), "P8", () => `headers of attempt ${attempt}`);
  if (!stream.wantsStream) return await checkDocument(play, client, told);
  must((text.match(START_MARKS[stream.client])?.length ?? 0) <= 1, "P8", () => `two beginnings: ${text}`);
  checkHeldBack(play, client, told, text);
  if (told.protocol === stream.client) checkOwnBytes(client, told);
  else await checkTranslated(play, client, told);
}

/** The attempt whose answer the client was given: the one that committed, or was relayed. */
function toldSend(play: Play, client: ClientResult): Send | null {
  let attempt: string | null = null;
  for (const event of traceOf(play, client).events) {
    if (event.kind === "commit") attempt = event.launch.attempt;
    if (event.kind === "step" && event.step.kind === "relay") attempt = event.step.launch.attempt;
  }
  return sendsOf(play, client).find((send) => send.attempt === attempt) ?? null;
}

/** Same protocol on both sides: byte for byte. */
function checkOwnBytes(client: ClientResult, send: Send): void {
  if (send.script.kind !== "stream") {
    // A document where a stream was asked for is passed on as it is.
    must(
      startsWith(bytesOf(send), client.bytes),
      "P8",
      () => `${client.requestId}: not the document's bytes`,
    );
    return;
  }
  const reading = readScriptedStream(send.script);
  const kept = reading.kept.length === 0
    ? new Uint8Array()
    : joinBytes(reading.kept.map(({ bytes }) => bytes));
  const got = encode(decode(client.bytes).replaceAll(KEEPALIVE, ""));
  const told = () =>
    `${client.requestId} attempt ${send.number}: ${JSON.stringify(decode(got))}, not ${
      JSON.stringify(decode(kept))
    }`;
  must(startsWith(got.length < kept.length ? kept : got, got.length < kept.length ? got : kept), "P8", told);
  if (client.end !== "whole") return;
  must(got.length >= kept.length, "P8", told);
  const rest = got.subarray(kept.length);
  if (reading.verdict === "success") {
    must(isClosedForm(rest, reading.unclosed), "P8", told);
  } else if (reading.failing !== null) {
    must(isSame(rest, reading.failing.bytes), "P9", told);
  } else checkOwnWords(client, reading, decode(rest));
}

/** A failure that no event told of is told by us, after whole events alone. */
function checkOwnWords(client: ClientResult, { unclosed }: StreamReading, rest: string): void {
  const told = () => `${client.requestId} does not tell how it ended: ${JSON.stringify(rest)}`;
  // What lacked its blank line alone was an event too, and got one.
  const event = decode(unclosed).replace(/[\r\n]+$/, "");
  must(rest.startsWith(event), "P9", told);
  const words = rest.slice(event.length).replace(/^[\r\n]+/, "");
  must(
    /^(event|data): ?/.test(words) && /stream_incomplete|upstream_unavailable|"type":"error"/.test(words),
    "P9",
    told,
  );
}

async function checkTranslated(play: Play, client: ClientResult, send: Send): Promise<void> {
  const alone = await playAlone(play.scene, client, send.script);
  // Alone it may fail before anything of it could be shown.
  if (alone.status !== 200) return;
  const [got, want] = [normalized(client.bytes), normalized(alone.bytes)];
  const told = () =>
    `${client.requestId} attempt ${send.number}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`;
  if (client.end === "whole") must(got === want, "P8", told);
  else must(want.startsWith(got), "P8", told);
}

async function checkDocument(play: Play, client: ClientResult, send: Send): Promise<void> {
  must(
    predict(send.script) === "success",
    "P8",
    () => `${client.requestId} got what attempt ${send.number} never ended`,
  );
  if (client.end !== "whole") return;
  if (send.script.kind === "document" && send.protocol === client.stream.client) {
    must(isSame(client.bytes, bytesOf(send)), "P8", () => `${client.requestId}: ${decode(client.bytes)}`);
    return;
  }
  const alone = await playAlone(play.scene, client, send.script);
  const [got, want] = [normalized(client.bytes), normalized(alone.bytes)];
  must(got === want, "P8", () => `${client.requestId} attempt ${send.number}: ${got}, not ${want}`);
}

/** Nothing was given away before it might be, and no keep-alive in place of it (C23). */
function checkHeldBack(play: Play, client: ClientResult, send: Send, text: string): void {
  const { events, slot } = traceOf(play, client);
  const commit = events.find((event) => event.kind === "commit");
  if (commit?.kind !== "commit" || slot === null || send.script.kind !== "stream") return;
  const reading = readScriptedStream(send.script);
  const { givenWhenAnswered: given, bodyOverWhenAnswered: over } = client;
  const told = () =>
    `${client.requestId} was answered after ${given} bytes; attempt ${send.number} was clear at ${reading.clearAtBytes}`;
  const open = events.find((event) => event.kind === "end_recovery");
  if (open === undefined) {
    must(reading.clearAtBytes === Infinity ? over : given >= reading.clearAtBytes, "C23", told);
    must(!text.includes(KEEPALIVE), "C23", () => `${client.requestId} was kept alive while it was held back`);
  } else if (open.kind === "end_recovery" && events.indexOf(open) > lastLaunch(events)) {
    const isDue = open.note.endsWith("overflow")
      ? given > play.scene.config.maxBufferBytes || send.protocol !== client.stream.client
      : reading.unknownAtBytes !== null && (over || given >= reading.unknownAtBytes - 1);
    must(isDue, "C23", () => `${client.requestId} failed open (${open.note}) after ${given} bytes`);
  }
}

function lastLaunch(events: readonly { readonly kind: string }[]): number {
  return events.findLastIndex(({ kind }) => kind === "launch");
}

function bytesOf({ script }: Send): Bytes {
  return "bytes" in script ? script.bytes : new Uint8Array();
}

/** What came without its blank line, with one. */
function isClosedForm(got: Bytes, unclosed: Bytes): boolean {
  if (unclosed.length === 0) return got.length === 0;
  const bare = (bytes: Bytes) => decode(bytes).replace(/[\r\n]+$/, "");
  return bare(got) === bare(unclosed) && /(\n\n|\r\r|\r\n\r\n|\r\n\n)$/.test(decode(got));
}

/** Ids made here and the moment of translation differ from run to run; everything else must not. */
function normalized(bytes: Bytes): string {
  const names = new Map<string, string>();
  return decode(bytes).replaceAll(KEEPALIVE, "")
    .replaceAll(/simid\d{8}/g, (id) => {
      if (!names.has(id)) names.set(id, `id${names.size}`);
      return names.get(id)!;
    })
    .replaceAll(/"(created|created_at)":18\d{8}\b/g, '"$1":0');
}

function startsWith(whole: Bytes, start: Bytes): boolean {
  return start.length <= whole.length && isSame(whole.subarray(0, start.length), start);
}

function isSame(a: Bytes, b: Bytes): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

function decode(bytes: Bytes): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function encode(text: string): Bytes {
  return new TextEncoder().encode(text);
}
