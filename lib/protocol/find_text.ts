/**
 * Finding text in bytes at the speed of the machine.
 *
 * The engine searches its own strings many bytes at a time, but typed arrays one by one: decoding a window of bytes and
 * searching the string takes a third of the time. Where the window holds the text, its bytes tell the place.
 */

/** Most of the time what is looked for is near; a long string of base64 is worth larger windows. */
const FIRST_WINDOW_BYTES = 1_024;
/** Measured: what stays in the processor's cache is fastest. */
const LARGEST_WINDOW_BYTES = 16_384;

/** ASCII stays itself, one character a byte, also between bytes that are no text: each of those shows as a character. */
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Offset of the first place at or after `from` where `text` stands, or -1.
 *
 * @param text  ASCII, at least one character.
 */
export function indexOfText(bytes: Uint8Array, text: string, from = 0): number {
  const overlap = text.length - 1;
  let windowBytes = FIRST_WINDOW_BYTES;
  for (let at = from; at + overlap < bytes.length;) {
    const window = bytes.subarray(at, at + windowBytes + overlap);
    const decoded = DECODER.decode(window);
    const found = decoded.indexOf(text);
    // As many characters as bytes: each stands at the place of its byte.
    if (found !== -1) return at + (decoded.length === window.length ? found : placeOf(window, text));
    at += windowBytes;
    windowBytes = Math.min(windowBytes * 4, LARGEST_WINDOW_BYTES);
  }
  return -1;
}

/** In bytes that hold it. */
function placeOf(bytes: Uint8Array, text: string): number {
  let at = -1;
  do at = bytes.indexOf(text.charCodeAt(0), at + 1); while (!standsAt(bytes, text, at));
  return at;
}

function standsAt(bytes: Uint8Array, text: string, at: number): boolean {
  for (let index = 1; index < text.length; index++) {
    if (bytes[at + index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
