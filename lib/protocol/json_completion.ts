/**
 * Tells whether the text fed so far is one complete JSON value, each byte looked at once.
 *
 * For framing only: brackets are counted, not matched by kind, so `[DONE]` counts as complete too.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SCALAR = /^(?:null|true|false|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$/;
/** Longer unquoted scalars are no JSON any protocol here sends. */
const SCALAR_LIMIT = 40;

export class JsonCompletion {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #state: "before" | "inside" | "scalar" | "after" | "broken" = "before";
  #scalar = "";

  feed(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    while (at < end) {
      if (this.#inString) {
        at = this.#skipString(bytes, at, end);
        continue;
      }
      const byte = bytes[at++]!;
      if (byte === QUOTE) this.#openString();
      else if (byte === 0x7b || byte === 0x5b) this.#openLevel();
      else if (byte === 0x7d || byte === 0x5d) this.#closeLevel();
      else if (byte > 0x20 && this.#depth === 0) this.#takeScalar(byte);
    }
  }

  isComplete(): boolean {
    return this.#state === "after" || (this.#state === "scalar" && SCALAR.test(this.#scalar));
  }

  #openString(): void {
    if (this.#depth === 0) this.#state = this.#state === "before" ? "inside" : "broken";
    this.#inString = true;
  }

  #openLevel(): void {
    if (this.#depth === 0) this.#state = this.#state === "before" ? "inside" : "broken";
    this.#depth++;
  }

  #closeLevel(): void {
    if (this.#depth === 0) this.#state = "broken";
    else if (--this.#depth === 0 && this.#state === "inside") this.#state = "after";
  }

  #takeScalar(byte: number): void {
    if (this.#state === "before") this.#state = "scalar";
    else if (this.#state !== "scalar") this.#state = "broken";
    if (this.#scalar.length <= SCALAR_LIMIT) this.#scalar += String.fromCharCode(byte);
  }

  #skipString(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const byte = bytes[at++]!;
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        if (this.#depth === 0 && this.#state === "inside") this.#state = "after";
        return at;
      }
    }
    return at;
  }
}
