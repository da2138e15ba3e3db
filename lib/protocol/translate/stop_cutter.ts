/**
 * Stop sequences for upstreams that have no field for them: the answer is cut where the upstream would have stopped.
 *
 * The Responses API knows none. Everything after the first sequence, tool calls too, is left out, and the answer ends
 * as whole; the upstream's own count of tokens stays.
 */
import type { HubStep } from "./hub_reader.ts";
import { isObject, type JsonObject, readList, readText } from "./json.ts";

/** The member of a hub Response that names the stop sequence which ended it; no Responses upstream sends one. */
export const STOP_SEQUENCE = "stop_sequence";

/** @returns the response with everything from the first stop sequence on left out, and the sequence named. */
export function cutResponse(response: JsonObject, sequences: readonly string[]): JsonObject {
  if (sequences.length === 0) return response;
  const output: JsonObject[] = [];
  for (const item of readList(response.output)) {
    if (!isObject(item)) continue;
    const cut = item.type === "message" ? cutMessage(item, sequences) : null;
    output.push(cut?.item ?? item);
    if (cut !== null) return { ...response, ...endedBy(cut.sequence), output };
  }
  return response;
}

function cutMessage(item: JsonObject, sequences: readonly string[]) {
  const content: JsonObject[] = [];
  for (const part of readList(item.content)) {
    if (!isObject(part)) continue;
    const text = readText(part.text) ?? "";
    const found = findStop(text, sequences);
    if (found === null) {
      content.push(part);
      continue;
    }
    content.push({ ...part, text: text.slice(0, found.at) });
    return { item: { ...item, content }, sequence: found.sequence };
  }
  return null;
}

function endedBy(sequence: string): JsonObject {
  return { status: "completed", incomplete_details: null, [STOP_SEQUENCE]: sequence };
}

/**
 * The sequence that is whole first, as a model that writes the text would meet it; of two whole at once the longer.
 * Only such a rule gives the same answer wherever a stream's pieces end.
 */
function findStop(
  text: string,
  sequences: readonly string[],
): { readonly at: number; readonly sequence: string } | null {
  let best: { at: number; end: number; sequence: string } | null = null;
  for (const sequence of sequences) {
    const at = text.indexOf(sequence);
    if (at < 0) continue;
    const end = at + sequence.length;
    if (best === null || end < best.end || (end === best.end && at < best.at)) best = { at, end, sequence };
  }
  return best;
}

type TextStep = HubStep & { readonly kind: "text" };

/** The same for a stream: text that may be the start of a sequence waits until it is known. */
export class StopCutter {
  readonly #sequences: readonly string[];
  #held: TextStep | null = null;
  #cutBy: string | null = null;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
  }

  filter(step: HubStep): HubStep[] {
    if (step.kind === "end") {
      if (this.#cutBy === null) return [...this.#release(), step];
      return [{ ...step, response: { ...step.response, ...endedBy(this.#cutBy) } }];
    }
    if (step.kind === "fail") return this.#cutBy === null ? [...this.#release(), step] : [step];
    if (this.#cutBy !== null) return [];
    if (step.kind !== "text") return [...this.#release(), step];
    const held = this.#held;
    if (held === null || (held.item === step.item && held.part === step.part)) return this.#text(step);
    return [...this.#release(), ...this.#text(step)];
  }

  #text(step: TextStep): HubStep[] {
    const text = (this.#held?.delta ?? "") + step.delta;
    const logprobs = [...this.#held?.logprobs ?? [], ...step.logprobs];
    this.#held = null;
    const found = findStop(text, this.#sequences);
    if (found !== null) {
      this.#cutBy = found.sequence;
      return found.at === 0 ? [] : [{ ...step, delta: text.slice(0, found.at), logprobs }];
    }
    const safe = text.length - this.#beginning(text);
    if (safe < text.length) this.#held = { ...step, delta: text.slice(safe), logprobs: [] };
    return safe === 0 ? [] : [{ ...step, delta: text.slice(0, safe), logprobs }];
  }

  /** Length of the longest end of the text with which some sequence begins. */
  #beginning(text: string): number {
    let longest = 0;
    for (const sequence of this.#sequences) {
      for (let length = Math.min(sequence.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(sequence.slice(0, length))) longest = length;
      }
    }
    return longest;
  }

  #release(): HubStep[] {
    const held = this.#held;
    this.#held = null;
    return held === null ? [] : [held];
  }
}
