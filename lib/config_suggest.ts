/**
 * "Did you mean": the nearest of a few known words.
 */

/** Words longer than this are not typing mistakes of a key; comparing them costs for nothing. */
const LONGEST_WORD = 64;
/** From this length on, a word that only lacks or adds an end (`poll-interval`, `warning`) counts as meant. */
const SHORTEST_STEM = 4;

/**
 * The candidate that was most likely meant.
 *
 * `maxRetryInterval`, `max_retry_interval` and `Max-Retry-Interval` are the same word as `max-retry-interval`.
 * Otherwise up to a third of the candidate's letters may differ; the first of equally near ones wins.
 *
 * @returns `null` when nothing is near enough.
 */
export function suggest(word: string, candidates: Iterable<string>): string | null {
  if (word.length === 0 || word.length > LONGEST_WORD) return null;
  const folded = foldWord(word);
  let best: string | null = null;
  let bestDistance = Infinity;
  for (const candidate of candidates) {
    const target = foldWord(candidate);
    const distance = sharesStem(folded, target) ? 1 : editDistance(folded, target);
    const limit = Math.max(1, Math.floor(target.length / 3));
    if (distance <= limit && distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Kebab-case, lower case: the form in which spellings of one word are equal. */
export function foldWord(word: string): string {
  return word.replace(/([a-z0-9])([A-Z])/g, "$1-$2").replace(/[_\s]+/g, "-").toLowerCase();
}

function sharesStem(a: string, b: string): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short.length >= SHORTEST_STEM && short.length < long.length && long.startsWith(short);
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, beforeLast[j - 2]! + 1);
      }
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
