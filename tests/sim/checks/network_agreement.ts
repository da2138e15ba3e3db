/** Compares the pause and its probe with what the evidence so far allows (P1, P2, P16, P17). */
import type { NetworkView } from "../../../lib/proxy/pool_runtime.ts";
import type { NetworkOracle } from "../oracle/network_oracle.ts";
import { must, violate } from "../violation.ts";
import type { PoolEvent } from "./pool_event.ts";

export function requireNetworkAgreement(
  view: NetworkView | null,
  oracle: NetworkOracle,
  { name, label }: PoolEvent,
): void {
  const { pause, lease } = oracle;
  if (view === null || pause === null) {
    if (view !== null) violate(label("P16"), `a pause opened by ${name}, but the evidence does not suffice`);
    if (pause !== null) violate(label("P2"), `the pause ended by ${name}, but nothing proved the network`);
    return;
  }
  must(view.openedAtMs === pause.openedAtMs, label("P16"), () => `the pause opened anew by ${name}`);
  must(
    view.untilMs === pause.untilMs,
    label("P2"),
    () => `the pause ends at ${view.untilMs}, not ${pause.untilMs}, after ${name}`,
  );
  must(
    (view.probe?.attempt ?? null) === (lease?.attempt ?? null),
    label("P1"),
    () =>
      `the network probe is ${view.probe?.attempt ?? "idle"}, not ${lease?.attempt ?? "idle"}, after ${name}`,
  );
  must(
    view.probe === null || view.probe.leaseUntilMs === lease!.untilMs,
    "P35",
    () => "the network lease has another end",
  );
  must(
    view.evidence.map(({ attempt }) => attempt).join() ===
      pause.evidence.map(({ attempt }) => attempt).join(),
    "P17",
    () => `the pause rests on ${view.evidence.length} rows, not ${pause.evidence.length}`,
  );
}
