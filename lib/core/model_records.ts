/** Small maps keyed by model: replaced on change, bounded, oldest first out. */

/** Model records of one kind per account (2A.1). */
export const MODEL_RECORD_LIMIT = 64;

export function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  const next = new Map(map);
  next.delete(key);
  return next;
}

/** Sets the key as the newest entry; at the limit the oldest goes. */
export function bounded<V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> {
  const next = new Map(map);
  next.delete(key);
  next.set(key, value);
  for (const oldest of next.keys()) {
    if (next.size <= MODEL_RECORD_LIMIT) break;
    next.delete(oldest);
  }
  return next;
}
