/** What a client gets: a status, header fields, and a body that is there already or comes bit by bit. */
import { HeaderFields } from "../core/header_fields.ts";
import type { ByteSource } from "../ports.ts";

export interface AnswerInit {
  /** 200 unless told otherwise. */
  readonly status?: number;
  /** A list is taken over, not copied. */
  readonly headers?: HeaderFields | Readonly<Record<string, string>> | readonly (readonly [string, string])[];
}

const ENCODER = new TextEncoder();

/**
 * Bytes belong to the answer: the memory of many goes back when they are out. A source is asked for more whenever the
 * client has taken what there was.
 */
export type AnswerContent = Uint8Array<ArrayBuffer> | ByteSource | null;

export class Answer {
  readonly status: number;
  readonly headers: HeaderFields;
  readonly body: AnswerContent;

  /** @param body  a text goes out as UTF-8 */
  constructor(body: string | AnswerContent, init: AnswerInit = {}) {
    const { headers } = init;
    this.status = init.status ?? 200;
    this.headers = headers instanceof HeaderFields ? headers : fieldsOf(headers);
    this.body = typeof body === "string" ? ENCODER.encode(body) : body;
  }
}

function fieldsOf(
  headers: Readonly<Record<string, string>> | readonly (readonly [string, string])[] = {},
): HeaderFields {
  if (!isPairs(headers)) return HeaderFields.from(headers);
  const fields = new HeaderFields();
  for (const [name, value] of headers) fields.append(name, value);
  return fields;
}

function isPairs(headers: object): headers is readonly (readonly [string, string])[] {
  return Array.isArray(headers);
}
