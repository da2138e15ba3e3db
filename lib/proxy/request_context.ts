/**
 * Everything known of one client request while it is being served.
 */
import type { ClientProtocol, RequestId } from "../core/domain.ts";
import type { HeaderList } from "../core/header_fields.ts";
import type { RequestSpec } from "../core/retry_plan.ts";
import type { RouteMatch } from "../protocol/route.ts";
import type { BodyFields, RequestBody } from "./request_body.ts";
import type { Tenant } from "./admission.ts";

export interface RequestContext {
  readonly id: RequestId;
  readonly receivedAtMs: number;
  readonly method: string;
  /** Query including `?`, or "". */
  readonly search: string;
  readonly match: RouteMatch;
  readonly protocol: ClientProtocol;
  readonly headers: HeaderList;
  readonly tenant: Tenant;
  /** Let go at commit: nothing is sent again after it, and a stream may last for an hour. */
  body: RequestBody;
  /** Null when the body is not a JSON object or was not looked at. */
  readonly fields: BodyFields | null;
  /** What the client asked for; Codex is asked for a stream either way. */
  readonly wantsStream: boolean;
  readonly spec: RequestSpec;
  /** Aborted once, when the client is gone or the process ends. */
  readonly abort: AbortController;
}

/** Why a request is aborted when the process ends: its client may well be there still, and is told. */
export const SHUTTING_DOWN = new DOMException("The proxy is shutting down", "AbortError");

/** Why a request is aborted whose client sends its body too slowly: it is there, and is told. */
export const BODY_TOO_SLOW = new DOMException("The request body did not come in time", "TimeoutError");

export function isTooSlow({ abort }: RequestContext): boolean {
  return abort.signal.reason === BODY_TOO_SLOW;
}

export function isEndedByShutdown({ abort }: RequestContext): boolean {
  return abort.signal.reason === SHUTTING_DOWN;
}
