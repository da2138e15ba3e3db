/**
 * When the memory of a request's body may go: once its owner does not need it, and no connection still sends it.
 *
 * An upstream may answer before it has the whole request, and an attempt that was given up may be in the middle of a
 * write.
 */
import { freeBytes } from "../core/byte_memory.ts";

type Bytes = Uint8Array<ArrayBuffer>;

interface Use {
  senderCount: number;
  isForgotten: boolean;
}

const USES = new WeakMap<ArrayBuffer, Use>();

/** Runs `send` with bytes that stay until it is over. */
export async function whileSent(bytes: Bytes, send: () => Promise<void>): Promise<void> {
  const { buffer } = bytes;
  let use = USES.get(buffer);
  if (use === undefined) USES.set(buffer, use = { senderCount: 0, isForgotten: false });
  use.senderCount++;
  try {
    await send();
  } finally {
    if (--use.senderCount === 0) {
      USES.delete(buffer);
      if (use.isForgotten) freeBytes(bytes);
    }
  }
}

/** Nobody will send these bytes any more. */
export function forgetBytes(bytes: Bytes): void {
  const use = USES.get(bytes.buffer);
  if (use === undefined) freeBytes(bytes);
  else use.isForgotten = true;
}
