/**
 * Header fields of one message: names in lower case, in the order they came, repeats joined by a comma.
 *
 * Not the runtime's `Headers`: walking one sorts the whole list again at every step, and each value is checked and
 * converted several times on its way through; a request has three such lists.
 */
import type { HeaderLookup } from "./evidence.ts";

/** Fields as they are read; the runtime's `Headers` are such a list too. */
export interface HeaderList extends HeaderLookup {
  has(name: string): boolean;
  forEach(callback: (value: string, name: string) => void): void;
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** What would end the field, or is no byte. */
const IMPOSSIBLE = /[\0\r\n\u0100-\uffff]/;
/** Visible characters, blanks and obs-text; above all no CR, LF or NUL. RFC 9110 section 5.5. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const OUTER_BLANKS = /^[\t ]+|[\t ]+$/g;

/** Whether a field may be sent on; what is read may hold more (control characters), and is let pass. */
export function isLegalField(name: string, value: string): boolean {
  return NAME.test(name) && VALUE.test(value);
}

export class HeaderFields implements HeaderList {
  readonly #values = new Map<string, string>();

  /** @throws TypeError as `append` does */
  static from(source: Readonly<Record<string, string>> | HeaderList): HeaderFields {
    const fields = new HeaderFields();
    // A list's names and values have been looked at when it was made.
    if (isList(source)) source.forEach((value, name) => fields.#add(name, value));
    else for (const name in source) fields.append(name, source[name]!);
    return fields;
  }

  /**
   * Names and values in turn, as they came over a wire whose reader let only legal ones pass.
   */
  static fromWire(raw: readonly string[]): HeaderFields {
    const fields = new HeaderFields();
    for (let at = 0; at + 1 < raw.length; at += 2) fields.#add(raw[at]!.toLowerCase(), raw[at + 1]!);
    return fields;
  }

  /** Names are asked for, set and deleted in lower case. */
  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** @throws TypeError without the value, when there can be no such field */
  append(name: string, value: string): void {
    this.#add(name.toLowerCase(), legalValue(name, value));
  }

  /** @throws TypeError without the value, when there can be no such field */
  set(name: string, value: string): void {
    this.#values.set(name, legalValue(name, value));
  }

  /** Appends a field whose name is in lower case, unless there can be no such field. */
  appendLegal(name: string, value: string): void {
    if (isLegalField(name, value)) this.#add(name, trimmed(value));
  }

  #add(name: string, value: string): void {
    const known = this.#values.get(name);
    this.#values.set(name, known === undefined ? value : `${known}, ${value}`);
  }

  delete(name: string): void {
    this.#values.delete(name);
  }

  forEach(callback: (value: string, name: string) => void): void {
    this.#values.forEach(callback);
  }

  [Symbol.iterator](): Iterator<[string, string]> {
    return this.#values[Symbol.iterator]();
  }
}

/** Whether the names can be seen, and not only asked for. */
export function isWalkable(headers: HeaderLookup): headers is HeaderList {
  return "forEach" in headers;
}

function isList(source: Readonly<Record<string, string>> | HeaderList): source is HeaderList {
  return typeof source.forEach === "function";
}

function legalValue(name: string, value: string): string {
  if (!NAME.test(name)) throw new TypeError("Cannot use a header field: its name is none");
  if (IMPOSSIBLE.test(value)) throw new TypeError(`Cannot use a header field: the value of ${name} is none`);
  return trimmed(value);
}

function trimmed(value: string): string {
  const last = value.length - 1;
  if (last < 0 || (value.charCodeAt(0) > 0x20 && value.charCodeAt(last) > 0x20)) return value;
  return value.replace(OUTER_BLANKS, "");
}
