/** One call of the pool, as the checks after it must know it. */
import type { RequestOracle } from "../oracle/request_oracle.ts";

export interface PoolEvent {
  readonly name: string;
  /** Which invariant a difference breaks: the field's own, unless the call was to change nothing at all. */
  readonly label: (fieldId: string) => string;
  /** The request that may be leaving a provider it struck. */
  readonly leaving: RequestOracle | null;
}

export function event(name: string, leaving: RequestOracle | null = null): PoolEvent {
  return { name, leaving, label: (id) => id };
}

/** A call that may change nothing but what the oracle says; any difference breaks this invariant. */
export function framed(name: string, invariant: string): PoolEvent {
  return { name, leaving: null, label: () => invariant };
}

/** The first look after a restart. */
export function restarted(name: string): PoolEvent {
  return { name, leaving: null, label: afterRestart };
}

function afterRestart(id: string): string {
  switch (id) {
    case "P19":
      return "P23";
    case "P25":
      return "P25";
    case "TABLE":
    case "P18":
    case "P41":
      return "P24";
    default:
      return "P29";
  }
}
