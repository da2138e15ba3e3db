/** axe-core inside a page: what it would keep from people who see, hear or move differently. */
import axe from "axe-core";
import type { Page } from "playwright-core";

/** @returns one line a violation, naming the rule and the first elements; empty when there is none. */
export async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<AxeResults> } };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.slice(0, 3).map(({ html }) => html).join(" | ")}`
    );
  });
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}
