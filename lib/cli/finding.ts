/** What the doctor says of one thing it looked at. */
export interface Finding {
  /** What was looked at; a fixed snake_case word. */
  readonly check: string;
  readonly verdict: "ok" | "warning" | "fault";
  /** What is the case, as a sentence. */
  readonly message: string;
  /** What to do about it; null where there is nothing. */
  readonly remedy: string | null;
}

export function ok(check: string, message: string): Finding {
  return { check, verdict: "ok", message, remedy: null };
}

export function warning(check: string, message: string, remedy: string | null = null): Finding {
  return { check, verdict: "warning", message, remedy };
}

export function fault(check: string, message: string, remedy: string | null = null): Finding {
  return { check, verdict: "fault", message, remedy };
}
