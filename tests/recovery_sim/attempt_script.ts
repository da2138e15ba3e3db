/** What the upstream does with one attempt, drawn from a seed: how it begins, where it is cut, how it ends. */
import type { NoResponseCause } from "../../lib/core/evidence.ts";
import { joinBytes } from "../../lib/proxy/answer_stream.ts";
import { Dice } from "../sim/dice.ts";
import type { Weather } from "./scene.ts";
import {
  answerDocument,
  answerEvents,
  failureEvent,
  type FailureMeaning,
  frameBytes,
  malformedEvent,
  paddingEvent,
  unknownEvent,
  type WireEvent,
  type WireProtocol,
  type WireStyle,
} from "./wire_events.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Frame {
  readonly event: WireEvent;
  readonly bytes: Bytes;
}

/** How a body ends after its last byte: in order, broken, or not at all. */
export type BodyEnd = "close" | "reset" | "hang";

export interface Chunk {
  readonly bytes: Bytes;
  /** After the chunk before it. */
  readonly delayMs: number;
}

interface Body {
  /** All that is ever sent. */
  readonly bytes: Bytes;
  readonly chunks: readonly Chunk[];
  readonly end: BodyEnd;
  /** From the last byte to the end. */
  readonly endDelayMs: number;
  readonly headDelayMs: number;
}

export type AttemptScript =
  | {
    readonly kind: "no_head";
    readonly cause: NoResponseCause;
    readonly pooled: boolean;
    readonly headDelayMs: number;
  }
  /** Read, and never answered. */
  | { readonly kind: "silence" }
  | {
    readonly kind: "refusal";
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
    readonly headDelayMs: number;
  }
  | Body & { readonly kind: "stream"; readonly frames: readonly Frame[] }
  | Body & {
    readonly kind: "document";
    /** Null where the length is not declared. */
    readonly length: number | null;
    readonly says: "answer" | "error" | "page";
    readonly meaning: FailureMeaning | null;
    readonly isWhole: boolean;
  };

export interface AttemptTask {
  readonly seed: number;
  readonly stream: number;
  /** Counts from 1 within the request. */
  readonly number: number;
  readonly protocol: WireProtocol;
  readonly asksForStream: boolean;
  readonly weather: Weather;
}

/** Text that is in nothing but this attempt. */
export function markerOf(stream: number, number: number): string {
  return `s${stream}a${number}z`;
}

export const MARKER = /s\d+a\d+z/g;

export function drawAttempt(task: AttemptTask): AttemptScript {
  const dice = new Dice(task.seed, "attempt", task.stream, task.number);
  const headDelayMs = dice.chance(0.5) ? 0 : dice.span(1, 3_000);
  if (dice.chance(task.weather.good)) {
    return task.asksForStream
      ? drawStream(dice, task, headDelayMs, true)
      : drawDocument(dice, task, headDelayMs, true);
  }
  const kind = dice.weighted<"no_head" | "silence" | "refusal" | "body">([
    [12, "no_head"],
    [1, "silence"],
    [task.weather.refusals, "refusal"],
    [75, "body"],
  ]);
  switch (kind) {
    case "no_head":
      return {
        kind,
        cause: dice.pick(
          ["refused", "connect_timeout", "dns", "reset_before_head", "reset_before_head"] as const,
        ),
        pooled: dice.chance(0.2),
        headDelayMs,
      };
    case "silence":
      return { kind };
    case "refusal":
      return drawRefusal(dice, task, headDelayMs);
    case "body":
      return task.asksForStream
        ? drawStream(dice, task, headDelayMs, false)
        : drawDocument(dice, task, headDelayMs, false);
  }
}

function drawRefusal(dice: Dice, task: AttemptTask, headDelayMs: number): AttemptScript {
  const marker = markerOf(task.stream, task.number);
  const status = dice.weighted<number>([
    [2, 408],
    [4, 500],
    [4, 502],
    [4, 503],
    [3, 504],
    [3, 529],
    [2, 400],
    [1, 413],
    [1, 422],
    [4, 401],
    [3, 429],
    [1, 402],
  ]);
  const headers: Record<string, string> = {};
  if (status === 429) headers["retry-after"] = String(dice.int(1, 90));
  if (status === 503 && dice.chance(0.4)) headers["retry-after"] = String(dice.int(1, 60));
  const error = { message: `refused ${marker}`, type: null, code: null };
  const text = JSON.stringify(task.protocol === "messages" ? { type: "error", error } : { error });
  return { kind: "refusal", status, headers, text, headDelayMs };
}

function drawTexts(dice: Dice, task: AttemptTask): string[] {
  const marker = markerOf(task.stream, task.number);
  const count = dice.chance(0.1) ? dice.int(30, 120) : dice.int(1, 8);
  return Array.from({ length: count }, (_, at) => {
    const filler = dice.pick(FILLERS);
    return `${at === 0 || dice.chance(0.3) ? marker : ""} ${filler.repeat(dice.chance(0.05) ? 40 : 1)}${at}`;
  });
}

/** Everything that a cut could fall into: several bytes a character, escapes, the marks of the framing itself. */
const FILLERS = ["word", "é北🚀", '"quoted\\"', "\n\ndata: [DONE]\n\n", "event: error\r\n", "{[}]", "\u2028"];

function drawStream(dice: Dice, task: AttemptTask, headDelayMs: number, good: boolean): AttemptScript {
  const marker = markerOf(task.stream, task.number);
  const events = answerEvents(task.protocol, marker, drawTexts(dice, task));
  addNoise(dice, task, events);
  let end: BodyEnd = "close";
  let cutShare = 1;
  if (!good) {
    switch (
      dice.weighted<"cut" | "failure" | "malformed" | "unknown" | "empty">([
        [45, "cut"],
        [30, "failure"],
        [6, "malformed"],
        [14, "unknown"],
        [5, "empty"],
      ])
    ) {
      case "cut":
        end = dice.weighted<BodyEnd>([[4, "close"], [4, "reset"], [2, "hang"]]);
        cutShare = dice.unit();
        break;
      case "failure":
        breakOff(dice, events, failureEvent(task.protocol, drawMeaning(dice, task.weather), marker));
        break;
      case "malformed":
        breakOff(dice, events, malformedEvent(marker));
        break;
      case "unknown":
        events.splice(dice.int(0, events.length - 1), 0, unknownEvent(task.protocol, marker));
        end = dice.weighted<BodyEnd>([[5, "close"], [3, "reset"], [1, "hang"]]);
        cutShare = dice.chance(0.5) ? 1 : dice.unit();
        if (cutShare === 1 && dice.chance(0.4)) {
          breakOff(dice, events, failureEvent(task.protocol, drawMeaning(dice, task.weather), marker));
        }
        break;
      case "empty":
        events.length = 0;
        end = dice.chance(0.5) ? "close" : "reset";
    }
  } else if (dice.chance(0.15)) {
    // What comes after the terminal is for nobody.
    events.push(...answerEvents(task.protocol, marker, ["late"]).slice(0, dice.int(1, 4)));
  }
  const style: WireStyle = {
    lineEnd: dice.weighted([[8, "\n"], [3, "\r\n"], [1, "\r"]] as const),
    spaced: dice.chance(0.8),
    ids: dice.chance(0.1),
  };
  const frames = events.map((event) => ({ event, bytes: frameBytes(event, style) }));
  const all = frames.length === 0 ? new Uint8Array() : joinBytes(frames.map(({ bytes }) => bytes));
  const bytes = all.slice(0, cutShare === 1 ? all.length : Math.floor(cutShare * all.length));
  return { kind: "stream", frames, ...drawBody(dice, bytes, end, headDelayMs) };
}

/** Drops what follows a random event, and puts this one in its place. */
function breakOff(dice: Dice, events: WireEvent[], last: WireEvent): void {
  events.length = dice.int(0, events.length - 1);
  // A chat answer that has said why it ends is over; a failure after that is another answer's.
  const finish = events.findIndex(({ role }) => role === "finish");
  if (finish >= 0) events.length = finish;
  events.push(last);
}

function addNoise(dice: Dice, task: AttemptTask, events: WireEvent[]): void {
  if (dice.chance(0.15)) {
    events.splice(dice.int(0, events.length - 1), 0, { role: "comment", name: "keep", data: null });
  }
  if (task.protocol !== "chat" && dice.chance(0.05)) {
    events.splice(dice.int(0, events.length - 1), 0, paddingEvent());
  }
}

function drawMeaning(dice: Dice, weather: Weather): FailureMeaning {
  return dice.weighted<FailureMeaning>([
    [7, "recoverable"],
    [2, "fault"],
    [weather.refusals / 10, "refused"],
    [weather.refusals / 10, "unauthorized"],
  ]);
}

function drawDocument(dice: Dice, task: AttemptTask, headDelayMs: number, good: boolean): AttemptScript {
  const marker = markerOf(task.stream, task.number);
  const texts = drawTexts(dice, task);
  let text = answerDocument(task.protocol, marker, texts);
  let says: "answer" | "error" | "page" = "answer";
  let meaning: FailureMeaning | null = null;
  let end: BodyEnd = "close";
  let cutShare = 1;
  if (!good) {
    const fault = dice.weighted<"cut" | "error" | "page">([[6, "cut"], [2, "error"], [1, "page"]]);
    if (fault === "cut") {
      cutShare = dice.unit();
      end = dice.weighted<BodyEnd>([[3, "close"], [3, "reset"], [1, "hang"]]);
    } else if (fault === "error") {
      says = "error";
      meaning = drawMeaning(dice, task.weather);
      const { data } = failureEvent(task.protocol === "responses" ? "chat" : task.protocol, meaning, marker);
      text = data!;
    } else {
      says = "page";
      text = `<html>${marker}</html>`;
    }
  }
  const all = new TextEncoder().encode(text);
  const bytes = all.slice(0, cutShare === 1 ? all.length : Math.floor(cutShare * all.length));
  return {
    kind: "document",
    length: dice.chance(0.5) ? all.length : null,
    says,
    meaning,
    isWhole: bytes.length === all.length,
    ...drawBody(dice, bytes, end, headDelayMs),
  };
}

function drawBody(dice: Dice, bytes: Bytes, end: BodyEnd, headDelayMs: number): Body {
  const pace = dice.weighted<readonly [chance: number, limitMs: number]>([
    [6, [0, 0]],
    [3, [0.5, 40]],
    [1, [0.2, 4_000]],
  ]);
  const delay = () => dice.chance(pace[0]) ? dice.span(1, pace[1]) : 0;
  const chunks = drawCuts(dice, bytes).map((chunk) => ({ bytes: chunk, delayMs: delay() }));
  return { bytes, chunks, end, endDelayMs: delay(), headDelayMs };
}

/** Never more pieces than a test of thousands of streams can afford. */
const MOST_CUTS = 60;

function drawCuts(dice: Dice, bytes: Bytes): Bytes[] {
  if (bytes.length === 0) return [];
  const manner = dice.weighted<"whole" | "few" | "many" | "each">([[2, "whole"], [4, "few"], [3, "many"], [
    1,
    "each",
  ]]);
  if (manner === "each" && bytes.length <= MOST_CUTS * 4) {
    return [...bytes].map((byte) => Uint8Array.of(byte));
  }
  const count = manner === "whole" ? 0 : manner === "few" ? dice.int(1, 4) : dice.int(5, MOST_CUTS);
  const cuts = [...new Set(Array.from({ length: count }, () => dice.int(1, bytes.length)))].sort((a, b) =>
    a - b
  );
  const pieces: Bytes[] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (to > from) pieces.push(bytes.slice(from, to));
    from = to;
  }
  return pieces;
}

/** The same bytes and the same end, in one piece and at once: nothing may come out otherwise for it. */
export function uncut(script: AttemptScript): AttemptScript {
  switch (script.kind) {
    case "no_head":
    case "refusal":
      return { ...script, headDelayMs: 0 };
    case "silence":
      return script;
    case "stream":
    case "document": {
      const chunks = script.bytes.length === 0 ? [] : [{ bytes: script.bytes, delayMs: 0 }];
      return { ...script, chunks, endDelayMs: 0, headDelayMs: 0 };
    }
  }
}
