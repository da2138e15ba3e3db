/**
 * What the rules find while they walk a file: mistakes that refuse it, warnings that do not.
 */
import { formatPath, type Mistake, plainMistake, valueMistake } from "./config_mistakes.ts";
import type { KeyPath } from "./config_keys.ts";
import type { FileConfig } from "./config_schema.ts";
import type { ConfigEnvironment, Reading } from "./config_values.ts";

/** The file where any value may be missing: left out, or removed because its shape was already wrong. */
export type PartialFile = Partially<FileConfig>;
type Partially<T> = T extends readonly (infer E)[] ? (Partially<E> | undefined)[]
  : T extends object ? { [K in keyof T]?: Partially<T[K]> | undefined }
  : T;

/** A list's entry in a {@link PartialFile}. */
export type PartialEntry<K extends "providers" | "models" | "pools"> = NonNullable<
  NonNullable<PartialFile[K]>[number]
>;

/** Where each value of something that must be unique was first seen, by value. */
export type Seen = Map<string, string>;

export class Findings {
  readonly mistakes: Mistake[] = [];
  readonly warnings: string[] = [];
  readonly environment: ConfigEnvironment;
  readonly #removed: (path: KeyPath) => boolean;

  /** @param removed  true for places whose value was wrong and is missing from the file. */
  constructor(environment: ConfigEnvironment, removed: (path: KeyPath) => boolean) {
    this.environment = environment;
    this.#removed = removed;
  }

  /** False where the value was wrong: neither it nor its default is something to judge by. */
  isSound(path: KeyPath): boolean {
    return !this.#removed(path);
  }

  /** The value as its reader gives it; `null`, with the mistake noted, when it cannot be read. */
  take<T>(
    path: KeyPath,
    text: string,
    reader: (text: string, environment: ConfigEnvironment) => Reading<T>,
  ): T | null {
    if (!this.isSound(path)) return null;
    const reading = reader(text, this.environment);
    if (reading.ok) return reading.value;
    this.refuse(path, reading.problem, text);
    return null;
  }

  /** A mistake that shows the value, as far as it may be shown. */
  refuse(path: KeyPath, problem: string, value: unknown, suggestion: string | null = null): void {
    this.mistakes.push(valueMistake(path, problem, value, suggestion));
  }

  /** A mistake whose value says nothing further. */
  refusePlainly(path: KeyPath, problem: string): void {
    this.mistakes.push(plainMistake(path, problem));
  }

  warn(path: KeyPath, problem: string): void {
    this.warnings.push(`"${formatPath(path)}" ${problem}`);
  }

  /** Notes a value that may be there once; repeating it is a mistake. */
  takeOnce(path: KeyPath, value: string, seen: Seen): void {
    const other = seen.get(value);
    if (other === undefined) seen.set(value, formatPath(path));
    else this.refuse(path, `must not repeat "${other}"`, value);
  }
}
