/**
 * Records to rows and back, described once: a shape names each field and what it must be.
 *
 * The same check guards both directions. Storing a wrong value is the caller's mistake (TypeError, RangeError);
 * finding one on disk is a poisoned row (StoreFailure naming table, key and column), never a default.
 */
import { StoreFailure } from "../ports.ts";

export type SqlValue = number | string | null;
/** A row as SQLite gives it when integers are read in full width. */
export type RawRow = Readonly<Record<string, number | bigint | string | null | Uint8Array>>;

/** What one field must be, and how it looks in a column. */
export interface Field<T> {
  /** Completes "must be …" in messages. */
  readonly must: string;
  /** Its value is never shown in a message. */
  readonly isSecret?: boolean;
  accepts(value: unknown): value is T;
  toSql(value: T): SqlValue;
  /** Undoes `toSql`; anything it cannot read it hands on for `accepts` to refuse. */
  fromSql(value: unknown): unknown;
}

/** One field for each property of `T`; the order of the properties is the order of the columns. */
export type Shape<T> = { readonly [K in keyof T]-?: Field<T[K]> };

// deno-lint-ignore no-control-regex
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;
/** Last moment a JavaScript date can hold. */
const LATEST_MS = 8_640_000_000_000_000;

const asIs = (value: unknown) => value;

export function text<T extends string = string>(minLength: number, maxLength: number): Field<T> {
  return {
    must: `text of ${minLength}..${maxLength} characters without control characters`,
    accepts: (value): value is T =>
      typeof value === "string" && value.length >= minLength && value.length <= maxLength &&
      !CONTROL_CHARACTER.test(value) && value.isWellFormed(),
    toSql: (value) => value,
    fromSql: asIs,
  };
}

export function secret(field: Field<string>): Field<string> {
  return { ...field, isSecret: true };
}

export function integer(min: number, max: number): Field<number> {
  return {
    must: `an integer ${min}..${max}`,
    accepts: (value): value is number =>
      Number.isSafeInteger(value) && value as number >= min &&
      value as number <= max,
    toSql: (value) => value,
    fromSql: asIs,
  };
}

export const TIME_MS: Field<number> = { ...integer(0, LATEST_MS), must: "a time in UTC epoch ms" };
export const COUNT: Field<number> = integer(0, Number.MAX_SAFE_INTEGER);

export const FLAG: Field<boolean> = {
  must: "true or false (1 or 0 in the row)",
  accepts: (value): value is boolean => typeof value === "boolean",
  toSql: (value) => value ? 1 : 0,
  fromSql: (value) => value === 1 ? true : value === 0 ? false : value,
};

export const FINITE: Field<number> = {
  must: "a finite number",
  accepts: (value): value is number => typeof value === "number" && Number.isFinite(value),
  toSql: (value) => value,
  fromSql: asIs,
};

export function oneOf<T extends string>(...words: readonly T[]): Field<T> {
  return {
    must: `one of ${words.join(", ")}`,
    accepts: (value): value is T => words.includes(value as T),
    toSql: (value) => value,
    fromSql: asIs,
  };
}

/** Text that a parser of ours must also accept. */
export function parsed(must: string, parses: (value: string) => boolean): Field<string> {
  return {
    must,
    accepts: (value): value is string => typeof value === "string" && parses(value),
    toSql: (value) => value,
    fromSql: asIs,
  };
}

export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    must: `${field.must}, or null`,
    accepts: (value): value is T | null => value === null || field.accepts(value),
    toSql: (value) => value === null ? null : field.toSql(value),
    fromSql: (value) => value === null ? null : field.fromSql(value),
  };
}

/** A nested record, as JSON text with exactly the shape's keys. */
export function record<T>(shape: Shape<T>): Field<T> {
  const keys = keysOf(shape);
  return {
    must: `an object of ${keys.join(", ")}`,
    accepts: (value): value is T =>
      typeof value === "object" && value !== null && Object.keys(value).length === keys.length &&
      keys.every((key) => shape[key].accepts((value as T)[key])),
    toSql: (value) => JSON.stringify(value),
    fromSql: parseJson,
  };
}

/** A short list of nested records, as JSON text. */
export function listOf<T>(shape: Shape<T>, maxLength: number): Field<readonly T[]> {
  const item = record(shape);
  return {
    must: `a list of at most ${maxLength} entries, each ${item.must}`,
    accepts: (value): value is readonly T[] =>
      Array.isArray(value) && value.length <= maxLength && value.every((entry) => item.accepts(entry)),
    toSql: (value) => JSON.stringify(value),
    fromSql: parseJson,
  };
}

/**
 * Column values of a record, in the order of its shape.
 *
 * @param what  the record's name, for messages
 * @throws TypeError, RangeError when a field is not what the shape says
 */
export function encode<T>(what: string, shape: Shape<T>, value: T): SqlValue[] {
  return keysOf(shape).map((key) => {
    requireField(`${what}.${key}`, shape[key], value[key]);
    return shape[key].toSql(value[key]);
  });
}

/** @throws TypeError, RangeError */
export function requireField<T>(name: string, field: Field<T>, value: T): void {
  if (field.accepts(value)) return;
  const mistake = typeof value === "number" || typeof value === "string" ? RangeError : TypeError;
  throw new mistake(`Cannot store ${name}: must be ${field.must}, got ${describeField(field, value)}`);
}

/**
 * The record a row holds.
 *
 * @param key  columns that tell the row from its neighbours, for the message
 * @throws StoreFailure naming table, key and column
 */
export function decode<T>(table: string, key: readonly string[], shape: Shape<T>, row: RawRow): T {
  const result: Partial<T> = {};
  for (const name of keysOf(shape)) {
    result[name] = decodeField(table, key, columnOf(name), shape[name], row);
  }
  return result as T;
}

/** @throws StoreFailure naming table, key and column */
export function decodeField<T>(
  table: string,
  key: readonly string[],
  column: string,
  field: Field<T>,
  row: RawRow,
): T {
  const stored = row[column];
  const value = field.fromSql(typeof stored === "bigint" ? narrow(stored) : stored);
  if (field.accepts(value)) return value;
  throw poisonedRow(table, key, row, `"${column}" must be ${field.must}, got ${describeField(field, value)}`);
}

export function poisonedRow(
  table: string,
  key: readonly string[],
  row: RawRow,
  problem: string,
): StoreFailure {
  const where = key.map((column) => `${column} = ${describe(row[column])}`).join(" and ");
  return new StoreFailure(
    `load table "${table}"`,
    `in the row where ${where}, ${problem}; nothing was changed: delete or correct that row, or restore a backup`,
  );
}

/** `INSERT … ON CONFLICT DO UPDATE` over the key columns and the shape's columns, in that order. */
export function upsertSql<T>(table: string, key: readonly string[], shape: Shape<T>): string {
  const columns = columnsOf(shape);
  const all = [...key, ...columns];
  const updates = columns.map((column) => `${column} = excluded.${column}`).join(", ");
  return `INSERT INTO ${table} (${all.join(", ")}) VALUES (${all.map(() => "?").join(", ")})
    ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${updates}`;
}

export function columnsOf<T>(shape: Shape<T>): string[] {
  return keysOf(shape).map(columnOf);
}

function keysOf<T>(shape: Shape<T>): (keyof T & string)[] {
  return Object.keys(shape) as (keyof T & string)[];
}

/** `untilMs` -> `until_ms` */
function columnOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function parseJson(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function describeField<T>(field: Field<T>, value: unknown): string {
  return field.isSecret ? "something else (not shown)" : describe(value);
}

/** Short enough for one line of a log, and quoted so that an empty text is seen. */
function describe(value: unknown): string {
  if (typeof value === "bigint") return `${value}`;
  const shown = JSON.stringify(value) ?? String(value);
  return shown.length <= 60 ? shown : `${shown.slice(0, 57)}...`;
}
