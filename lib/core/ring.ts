/**
 * The order in which a pool's members serve: weighted, deterministic, frozen for each request.
 *
 * Weights are spread evenly (smooth weighted round robin), so 3:1 reads a a b a and not a a a b.
 */
import type { Target } from "./domain.ts";

export const WEIGHT_LIMIT = 100;
export const RING_SLOT_LIMIT = 256;

export interface RingMember extends Target {
  readonly weight: number;
}

/**
 * Expands members into slots.
 *
 * @throws RangeError for a weight outside 1..100 or more than 256 slots; the configuration checks both before.
 */
export function expandRing(members: readonly RingMember[]): readonly Target[] {
  let total = 0;
  for (const { weight } of members) {
    if (!Number.isInteger(weight) || weight < 1 || weight > WEIGHT_LIMIT) {
      throw new RangeError(`Cannot expand ring: weight must be 1..${WEIGHT_LIMIT}, got ${weight}`);
    }
    total += weight;
  }
  if (total > RING_SLOT_LIMIT) {
    throw new RangeError(`Cannot expand ring: weights must sum to at most ${RING_SLOT_LIMIT}, got ${total}`);
  }
  const credit = members.map(() => 0);
  const slots: Target[] = [];
  for (let slot = 0; slot < total; slot++) {
    let chosen = 0;
    for (let at = 0; at < members.length; at++) {
      credit[at]! += members[at]!.weight;
      if (credit[at]! > credit[chosen]!) chosen = at;
    }
    credit[chosen]! -= total;
    slots.push({ provider: members[chosen]!.provider, model: members[chosen]!.model });
  }
  return slots;
}

/** Every member once, in the order the ring meets them from the cursor on. */
export function readRing(slots: readonly Target[], cursor: number): readonly Target[] {
  const order: Target[] = [];
  for (let step = 0; step < slots.length; step++) {
    const slot = slots[(cursor + step) % slots.length]!;
    if (!order.some((target) => target.provider === slot.provider && target.model === slot.model)) {
      order.push(slot);
    }
  }
  return order;
}
