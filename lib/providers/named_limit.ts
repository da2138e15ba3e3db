/** OpenAI's sentence about a rate limit, which names the model it is for. */

/** `Rate limit reached for gpt-5.1 in organization …`; the limits of one model are no other's (C21). */
const NAMED_MODEL =
  /rate limit reached for \S{1,128}(?: \(for limit \S{1,128}\))? in (?:organization|project)/i;

export function namesModelLimit(message: string | null): boolean {
  return NAMED_MODEL.test(message ?? "");
}
