/**
 * A live feed of decisions as Server-Sent Events, one subscriber a response.
 */
import type { DecisionRecord } from "../core/decision.ts";
import type { Clock } from "../ports.ts";
import type { DecisionLog } from "./decision_log.ts";
import { viewDecision } from "./decision_view.ts";

const PING_MS = 15_000;
/** A reader that does not read loses events instead of making the proxy keep them. */
const MAX_QUEUED_EVENTS = 256;

export function serveDecisionFeed(decisions: DecisionLog, clock: Clock): Response {
  const encoder = new TextEncoder();
  let unsubscribe = (): void => {};
  let ping: { cancel(): void } | null = null;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (text: string): void => {
        if ((controller.desiredSize ?? 0) > -MAX_QUEUED_EVENTS) controller.enqueue(encoder.encode(text));
      };
      const beat = (): void => {
        send(": ping\n\n");
        ping = clock.schedule(clock.now() + PING_MS, beat);
      };
      send("retry: 2000\n\n");
      ping = clock.schedule(clock.now() + PING_MS, beat);
      unsubscribe = decisions.subscribe((record: DecisionRecord) => {
        send(`event: request\ndata: ${JSON.stringify(viewDecision(record))}\n\n`);
      });
    },
    cancel() {
      unsubscribe();
      ping?.cancel();
    },
  });
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" },
  });
}
