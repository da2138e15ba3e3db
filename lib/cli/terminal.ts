/**
 * Colours for people at a terminal; plain text everywhere else, and where NO_COLOR is set.
 */
export interface Painter {
  strong(text: string): string;
  faint(text: string): string;
  good(text: string): string;
  warn(text: string): string;
  bad(text: string): string;
}

export function painter(): Painter {
  const coloured = !Deno.noColor && Deno.stdout.isTerminal();
  const paint = (code: string) => (text: string): string => coloured ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { strong: paint("1"), faint: paint("2"), good: paint("32"), warn: paint("33"), bad: paint("31") };
}
