/**
 * Values of a file nobody promised anything about, read without a complaint.
 */
export type Mapping = Record<string, unknown>;

export function asMapping(value: unknown): Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Mapping : {};
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}

export function listOrNothing(list: readonly unknown[]): readonly unknown[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** False for what only repeats that nothing is set. */
export function isSaying(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === false || value === 0) return false;
  if (Array.isArray(value)) return value.length > 0;
  return typeof value !== "object" || Object.values(value).some(isSaying);
}

/** `1h`, `90m`, `1h30m` (Go's durations) in whole minutes, at least one. */
export function readMinutes(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(value.trim());
  if (match === null || value.trim() === "") return null;
  const [hours, minutes, seconds] = match.slice(1).map((part) => Number(part ?? 0));
  return Math.max(1, Math.round(hours! * 60 + minutes! + seconds! / 60));
}
