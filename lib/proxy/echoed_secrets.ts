/**
 * Keys an upstream sends back: some answer a refused request with that request's head.
 *
 * The words of a refusal go to the client where the request itself is at fault (design.md 6), so what the attempt had
 * to show is taken out of them first.
 */
import { Buffer } from "node:buffer";
import type { ErrorFacts } from "../core/evidence.ts";
import type { Credential } from "../ports.ts";
import type { RelayAnswer } from "./attempt_runner.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const HIDDEN = "[redacted]";
/** What is shorter would be found in words that have nothing to do with it. */
const SHORTEST_SECRET_CHARACTERS = 8;

/** Takes what this credential shows an upstream out of bytes; the same bytes where there is nothing of it. */
export function hideInBytes(bytes: Bytes, credential: Credential): Bytes {
  // One character a byte, so that everything else stays as it came, whatever its encoding.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
  const hidden = hideInText(text, credential);
  return hidden === text ? bytes : new Uint8Array(Buffer.from(hidden, "latin1"));
}

export function hideInText(text: string, credential: Credential): string {
  let hidden = text;
  for (const secret of secretsOf(credential)) hidden = hidden.replaceAll(secret, HIDDEN);
  return hidden;
}

/** Everything of a failed attempt that a client might be shown. */
export function hideInRelay(relay: RelayAnswer, credential: Credential): RelayAnswer {
  if (relay.kind === "passed") return relay;
  const hide = (bytes: Bytes): Bytes => hideInBytes(bytes, credential);
  const facts = hideInFacts(relay.facts, credential);
  return relay.kind === "http" ? { ...relay, facts, bytes: hide(relay.bytes) } : {
    ...relay,
    facts,
    held: relay.held.map(hide),
    failureFrame: relay.failureFrame === null ? null : hide(relay.failureFrame),
  };
}

function hideInFacts(facts: ErrorFacts, credential: Credential): ErrorFacts {
  const hide = (text: string | null): string | null => text === null ? null : hideInText(text, credential);
  return {
    ...facts,
    code: hide(facts.code),
    type: hide(facts.type),
    message: hide(facts.message),
    param: hide(facts.param),
    detailCode: hide(facts.detailCode),
  };
}

/** The longest first: one may begin as another does. */
function secretsOf(credential: Credential): string[] {
  const all = credential.kind === "api_key" ? [credential.apiKey] : [
    credential.tokens.accessToken,
    credential.tokens.refreshToken ?? "",
    credential.tokens.idToken ?? "",
    credential.accountHeader ?? "",
  ];
  return all.filter((secret) => secret.length >= SHORTEST_SECRET_CHARACTERS)
    .sort((a, b) => b.length - a.length);
}
