/** What a quota window is called: by its length, because slots and fields differ from plan to plan. */

/** `18000000` -> `5h`, a week -> `7d`; the slot's name where the length is unknown. */
export function nameWindow(lengthMs: number | null, slot: string): string {
  if (lengthMs === null) return slot;
  const minutes = Math.round(lengthMs / 60_000);
  if (minutes % 1_440 === 0) return `${minutes / 1_440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}
