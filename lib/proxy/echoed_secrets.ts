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

export type Hide = (bytes: Bytes) => Bytes;

/** Takes the secrets of this credential out of bytes; the same bytes where there are none. */
export function hiding(credential: Credential): Hide {
  const secrets = secretsOf(credential);
  return (bytes) => {
    // One character a byte, so that everything else stays as it came, whatever its encoding.
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
    const hidden = hideText(text, secrets);
    return hidden === text ? bytes : new Uint8Array(Buffer.from(hidden, "latin1"));
  };
}

/** The same for text. */
export function hidingInText(credential: Credential): (text: string) => string {
  const secrets = secretsOf(credential);
  return (text) => hideText(text, secrets);
}

/** The same for everything of a failed attempt that a client might be shown. */
export function hideInRelay(relay: RelayAnswer, credential: Credential): RelayAnswer {
  if (relay.kind === "passed") return relay;
  const hide = hiding(credential);
  const facts = hideInFacts(relay.facts, secretsOf(credential));
  return relay.kind === "http" ? { ...relay, facts, bytes: hide(relay.bytes) } : {
    ...relay,
    facts,
    held: relay.held.map(hide),
    failureFrame: relay.failureFrame === null ? null : hide(relay.failureFrame),
  };
}

function hideInFacts(facts: ErrorFacts, secrets: readonly string[]): ErrorFacts {
  const hide = (text: string | null): string | null => text === null ? null : hideText(text, secrets);
  return {
    ...facts,
    code: hide(facts.code),
    type: hide(facts.type),
    message: hide(facts.message),
    param: hide(facts.param),
    detailCode: hide(facts.detailCode),
  };
}

function hideText(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const secret of secrets) if (hidden.includes(secret)) hidden = hidden.replaceAll(secret, HIDDEN);
  return hidden;
}

function secretsOf(credential: Credential): string[] {
  const all = credential.kind === "api_key" ? [credential.apiKey] : [
    credential.tokens.accessToken,
    credential.tokens.refreshToken ?? "",
    credential.tokens.idToken ?? "",
    credential.accountHeader ?? "",
  ];
  return all.filter((secret) => secret.length >= SHORTEST_SECRET_CHARACTERS);
}
