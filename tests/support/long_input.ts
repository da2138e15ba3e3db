/**
 * Questions as long as real clients ask them, for tests in which a client leaves: a listener may notice the leaving of
 * a short request and miss that of a long one.
 */
export const LONG_INPUT = "a fair question ".repeat(512);
/** A conversation with a few files in it. */
export const VERY_LONG_INPUT = "a fair question ".repeat(6_400);
/** A header of a turn, longer than any first read of a connection. */
export const LONG_HEADER = { "x-codex-turn-metadata": "m".repeat(4_096) };
