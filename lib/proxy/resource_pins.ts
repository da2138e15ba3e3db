/**
 * Files and calls live on the account that made them: what comes later for one of them goes there (design.md 4).
 *
 * Only the digest of an id is kept. An id nobody knows goes to any account, which will say so.
 */
import type { AccountId } from "../core/domain.ts";
import type { UpstreamResponse } from "../ports.ts";
import { findMember, readStringValue, scanTopLevel } from "../protocol/json_scan.ts";
import type { RouteMatch } from "../protocol/route.ts";
import { readWhole, streamBody } from "./answer_body.ts";
import type { ProxyDeps } from "./deps.ts";
import type { AnswerContent } from "./answer.ts";

/** Uploads are finished within minutes and calls end within hours; a day covers both. */
const PIN_MS = 86_400_000;
/** The answer that names a new file is a few hundred bytes. */
const FILE_ANSWER_BYTES = 65_536;
const ID_CHARACTERS = /^[A-Za-z0-9_.-]{1,200}$/;

type Kind = "file" | "call";

/** The account that made what this request is about; `null` for other requests and for ids nobody knows. */
export function findPin(deps: ProxyDeps, match: RouteMatch, search: string, nowMs: number): AccountId | null {
  switch (match.route.name) {
    case "files_uploaded":
      return match.id === null ? null : deps.accounts.pinned(digest(deps, "file", match.id), nowMs);
    case "realtime_ws": {
      const call = new URLSearchParams(search).get("call_id");
      return call === null ? null : deps.accounts.pinned(digest(deps, "call", call), nowMs);
    }
    default:
      return null;
  }
}

/**
 * Remembers what the account has just made, before the client hears of it.
 *
 * @returns the body to pass on: the same bytes, for a file's answer read once.
 * @throws whatever reading the body throws; StoreFailure
 */
export async function pinAnswer(
  deps: ProxyDeps,
  match: RouteMatch,
  account: AccountId,
  response: UpstreamResponse,
): Promise<AnswerContent> {
  switch (match.route.name) {
    case "files":
      return await pinFile(deps, account, response);
    case "realtime_calls": {
      const call = readCallId(response.headers.get("location"));
      if (call !== null) pin(deps, "call", call, account);
      return passed(response);
    }
    default:
      return passed(response);
  }
}

function passed({ body }: UpstreamResponse): AnswerContent {
  return body === null ? null : streamBody(body, [], () => {});
}

async function pinFile(
  deps: ProxyDeps,
  account: AccountId,
  response: UpstreamResponse,
): Promise<AnswerContent> {
  const { body } = response;
  if (body === null) return null;
  const read = await readWhole(body, response.contentLength, FILE_ANSWER_BYTES);
  if (!read.whole) return streamBody(body, read.begun, () => {});
  const id = readFileId(read.bytes);
  if (id !== null) pin(deps, "file", id, account);
  return read.bytes;
}

function readFileId(bytes: Uint8Array<ArrayBuffer>): string | null {
  const scan = scanTopLevel(bytes);
  return scan.ok ? readStringValue(bytes, findMember(scan.members, "file_id")) : null;
}

/** `…/rtc_<id>`, absolute or not, with the segments before it repeated or not (wire-facts 5.5). */
function readCallId(location: string | null): string | null {
  const path = location?.split(/[?#]/, 1)[0] ?? "";
  return path.split("/").findLast((segment) => segment !== "") ?? null;
}

function pin(deps: ProxyDeps, kind: Kind, id: string, account: AccountId): void {
  if (ID_CHARACTERS.test(id)) deps.accounts.pin(digest(deps, kind, id), account, deps.clock.now() + PIN_MS);
}

/** Not by tenant: whoever knows the id may ask for it, and a key that is renewed meanwhile keeps its uploads. */
function digest(deps: ProxyDeps, kind: Kind, id: string): string {
  return deps.digest.sha256(`${kind}\0${id}`);
}
