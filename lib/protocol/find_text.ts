/**
 * Finding text in bytes at the speed of the machine.
 *
 * The engine searches its own strings many bytes at a time, but typed arrays one by one: decoding a window of bytes and
 * searching the string takes a third of the time where all is ASCII, as the longest strings of requests are (base64,
 * prose). Elsewhere decoding costs more than it saves, so the bytes are searched as they are.
 */

/** Most of the time what is looked for is near; a long string of base64 is worth large windows. */
const FIRST_WINDOW_BYTES = 1_024;
const LARGEST_WINDOW_BYTES = 65_536;
/** Text of several bytes a character shows itself within as many bytes. */
const SAMPLE_BYTES = 16;

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
    if (!beginsAscii(bytes, at)) return indexOfBytes(bytes, text, at);
    const window = bytes.subarray(at, at + windowBytes + overlap);
    const decoded = DECODER.decode(window);
    // As many characters as bytes: each character is one byte, at the same place.
    if (decoded.length !== window.length) return indexOfBytes(bytes, text, at);
    const found = decoded.indexOf(text);
    if (found !== -1) return at + found;
    at += windowBytes;
    windowBytes = Math.min(windowBytes * 4, LARGEST_WINDOW_BYTES);
  }
  return -1;
}

function beginsAscii(bytes: Uint8Array, from: number): boolean {
  const end = Math.min(bytes.length, from + SAMPLE_BYTES);
  for (let at = from; at < end; at++) if (bytes[at]! >= 0x80) return false;
  return true;
}

function indexOfBytes(bytes: Uint8Array, text: string, from: number): number {
  const first = text.charCodeAt(0);
  let at = bytes.indexOf(first, from);
  while (at !== -1 && !standsAt(bytes, text, at)) at = bytes.indexOf(first, at + 1);
  return at;
}

function standsAt(bytes: Uint8Array, text: string, at: number): boolean {
  for (let index = 1; index < text.length; index++) {
    if (bytes[at + index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
