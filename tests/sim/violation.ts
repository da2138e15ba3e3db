/** A broken invariant. `id` is its name in the table of `invariants.ts`. */
export class Violation extends Error {
  override readonly name = "Violation";
  constructor(readonly id: string, message: string) {
    super(`${id}: ${message}`);
  }
}

export function violate(id: string, message: string): never {
  throw new Violation(id, message);
}

/** @param describe  called only when the invariant is broken. */
export function must(holds: boolean, id: string, describe: () => string): asserts holds {
  if (!holds) violate(id, describe());
}
