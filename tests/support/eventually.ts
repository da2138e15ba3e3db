/** Waits for something real sockets bring about and nothing announces; bounded, so that a miss is a failure. */
export async function eventually(holds: () => boolean, limitMs = 20_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`Waited ${limitMs} ms in vain for: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
