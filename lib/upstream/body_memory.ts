/**
 * When the memory of a request's body may go: once its owner does not need it, and no connection still sends it.
 *
 * An upstream may answer before it has the whole request, and an attempt that was given up may be in the middle of a
 * write.
 */
import { freeBytes } from "../core/byte_memory.ts";
import { isBorrowed, returnBytes } from "../core/spare_buffers.ts";

type Bytes = Uint8Array<ArrayBuffer>;

interface Use {
  senderCount: number;
  isForgotten: boolean;
  /** A send failed: the system may still be writing from there. */
  isTorn: boolean;
}

const USES = new WeakMap<ArrayBuffer, Use>();

/** Runs `send` with bytes that stay until it is over. */
export async function whileSent(bytes: Bytes, send: () => Promise<void>): Promise<void> {
  const { buffer } = bytes;
  let use = USES.get(buffer);
  if (use === undefined) USES.set(buffer, use = { senderCount: 0, isForgotten: false, isTorn: false });
  use.senderCount++;
  try {
    await send();
  } catch (error) {
    use.isTorn = true;
    throw error;
  } finally {
    use.senderCount--;
    if (use.isForgotten) letGo(bytes, use);
  }
}

/** Nobody will send these bytes any more. */
export function forgetBytes(bytes: Bytes): void {
  const use = USES.get(bytes.buffer);
  if (use !== undefined) use.isForgotten = true;
  letGo(bytes, use);
}

/** What the system may still write from is never written to again: it goes to nobody else. */
function letGo(bytes: Bytes, use: Use | undefined): void {
  if (use !== undefined && use.senderCount > 0) return;
  if (isBorrowed(bytes) && use?.isTorn !== true) returnBytes(bytes);
  else freeBytes(bytes);
}
