/**
 * Keeps the arguments of a tool call a JSON object, also where the model broke off or wrote nonsense.
 *
 * Anthropic clients get arguments in pieces and parse what they add up to; one stray character would end their turn
 * with an error of the SDK. Whole arguments pass unchanged. A text that breaks off is completed; from the first
 * character that cannot stand there the rest is left out.
 */

type State =
  | "start"
  | "value"
  | "first_value"
  | "key"
  | "first_key"
  | "colon"
  | "next"
  | "string"
  | "number"
  | "word";

const SPACE = /[ \t\r\n]/;
const NUMBER_START = /[-0-9]/;
/** Every beginning of a JSON number. */
const NUMBER_PREFIX = /^-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE](?:[+-]?\d*))?)?|[eE][+-]?\d*)?)?$/;
const WORDS = ["true", "false", "null"];
const ESCAPES = /["\\/bfnrtu]/;

export class JsonMender {
  /** Closing characters of what is open, innermost last. */
  readonly #closers: ("}" | "]")[] = [];
  #state: State = "start";
  /** Commas and space that only count once something follows. */
  #held = "";
  #token = "";
  /** A key was begun and its colon has not come. */
  #isKey = false;
  /** A colon was told and its value has not come. */
  #owesValue = false;
  /** Inside a string: characters of an escape sequence that is not whole. */
  #escape = "";
  /** Nothing more counts: the object is whole, or something came that cannot stand there. */
  #stopped = false;

  /** @returns what of the piece may be told now. */
  push(piece: string): string {
    let out = "";
    for (let at = 0; at < piece.length && !this.#stopped; at++) {
      // The inside of strings is most of all arguments: taken in one slice.
      if (this.#state === "string" && this.#escape === "") {
        const run = plainRun(piece, at);
        out += piece.slice(at, run);
        if (run === piece.length) break;
        at = run;
      }
      out += this.#take(piece[at]!);
    }
    return out;
  }

  /** What must follow so that the told text is an object. */
  end(): string {
    if (this.#state === "start") return "{}";
    let out = this.#state === "string" ? this.#endString() : this.#endToken();
    if (this.#isKey) out += ":null";
    else if (this.#owesValue) out += "null";
    return out + this.#closers.reverse().join("");
  }

  #take(char: string): string {
    switch (this.#state) {
      case "string":
        return this.#takeInString(char);
      case "number":
      case "word":
        return this.#takeInToken(char);
      default:
        return SPACE.test(char) ? this.#hold(char) : this.#takeStructure(char);
    }
  }

  #hold(char: string): string {
    this.#held += char;
    return "";
  }

  #takeStructure(char: string): string {
    const state = this.#state;
    if (state === "start") return char === "{" ? this.#open("}", "first_key") : this.#stop();
    if (state === "colon") {
      if (char !== ":") return this.#stop();
      this.#isKey = false;
      this.#owesValue = true;
      this.#state = "value";
      return this.#release(char);
    }
    const closer = this.#closers.at(-1);
    if (char === closer && (state === "next" || state === "first_key" || state === "first_value")) {
      return this.#close(char);
    }
    if (state === "next") {
      if (char !== ",") return this.#stop();
      this.#state = closer === "}" ? "key" : "value";
      return this.#hold(char);
    }
    if (state === "key" || state === "first_key") {
      if (char !== '"') return this.#stop();
      this.#isKey = true;
      this.#state = "string";
      return this.#release(char);
    }
    return this.#openValue(char);
  }

  #openValue(char: string): string {
    if (char === "{") return this.#open("}", "first_key");
    if (char === "[") return this.#open("]", "first_value");
    if (char === '"') this.#state = "string";
    else if (NUMBER_START.test(char)) this.#state = "number";
    else if (WORDS.some((word) => word.startsWith(char))) this.#state = "word";
    else return this.#stop();
    if (char !== '"') this.#token = char;
    this.#owesValue = false;
    return this.#release(char);
  }

  #open(closer: "}" | "]", state: State): string {
    this.#closers.push(closer);
    this.#state = state;
    this.#owesValue = false;
    return this.#release(closer === "}" ? "{" : "[");
  }

  #close(char: string): string {
    this.#closers.pop();
    this.#state = "next";
    if (this.#closers.length === 0) this.#stopped = true;
    return this.#release(char);
  }

  #takeInString(char: string): string {
    if (this.#escape !== "") {
      const escape = this.#escape + char;
      const legal = escape.length === 2 ? ESCAPES.test(char) : /[0-9a-fA-F]/.test(char);
      if (!legal) return this.#stop();
      const whole = escape.length === 6 || (escape.length === 2 && char !== "u");
      this.#escape = whole ? "" : escape;
      return char;
    }
    if (char === "\\") this.#escape = char;
    else if (char === '"') this.#state = this.#isKey ? "colon" : "next";
    // A raw control character is no JSON, but what was meant is plain.
    else if (char < " ") return JSON.stringify(char).slice(1, -1);
    return char;
  }

  #takeInToken(char: string): string {
    const token = this.#token + char;
    const goesOn = this.#state === "number"
      ? NUMBER_PREFIX.test(token)
      : WORDS.some((word) => word.startsWith(token));
    if (goesOn) {
      this.#token = token;
      return char;
    }
    const rest = this.#endToken();
    this.#state = "next";
    // `tru]` or `1.]`: the token is completed, and nothing after it counts.
    return rest === "" ? this.#take(char) : rest + this.#stop();
  }

  #endToken(): string {
    const token = this.#token;
    this.#token = "";
    if (token === "") return "";
    const word = WORDS.find((one) => one.startsWith(token));
    if (word !== undefined) return word.slice(token.length);
    return /\d$/.test(token) ? "" : "0";
  }

  #endString(): string {
    const escape = this.#escape;
    this.#escape = "";
    if (escape.startsWith("\\u")) return "0".repeat(6 - escape.length) + '"';
    return escape === "\\" ? '\\"' : '"';
  }

  #stop(): string {
    this.#stopped = true;
    this.#held = "";
    return "";
  }

  #release(char: string): string {
    const out = this.#held + char;
    this.#held = "";
    return out;
  }
}

/** Index of the first character from `at` on that is special inside a string. */
function plainRun(text: string, at: number): number {
  for (let index = at; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x22 || code === 0x5c || code < 0x20) return index;
  }
  return text.length;
}

/** The arguments of a call as a JSON object's text. */
export function mendArguments(text: string): string {
  const mender = new JsonMender();
  return mender.push(text) + mender.end();
}
