/** The Markdown table of what each client saw, told at the end and written where `HOLDFAST_CLIENT_TABLE` says. */
import type { PoolClient, Seen } from "./pool_clients.ts";

export class ClientTable {
  readonly #clients: readonly PoolClient[];
  readonly #rows = new Map<string, Map<string, readonly Seen[]>>();

  constructor(clients: readonly PoolClient[]) {
    this.#clients = clients;
  }

  note(scenario: string, client: PoolClient, seen: readonly Seen[]): void {
    const row = this.#rows.get(scenario) ?? new Map();
    this.#rows.set(scenario, row.set(client.name, seen));
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  toString(): string {
    const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
    const names = this.#clients.map(({ name }) => name);
    return [
      line(["what happens upstream", ...names]),
      line(Array.from({ length: names.length + 1 }, () => "---")),
      ...[...this.#rows].map(([scenario, row]) =>
        line([scenario, ...names.map((name) => (row.get(name) ?? []).map(tellSeen).join("; then "))])
      ),
      "",
    ].join("\n");
  }

  publish(): void {
    console.log(`\n${this}`);
    const path = Deno.env.get("HOLDFAST_CLIENT_TABLE");
    if (path !== undefined && path !== "") Deno.writeTextFileSync(path, `${this}`);
  }
}

/** Ports and request ids differ from run to run, and say nothing. */
function tellSeen({ code, text }: Seen): string {
  const shown = text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:…").replaceAll(/req_[\w-]+/g, "req_…")
    .slice(0, 300);
  return code === 0 ? `"${shown}"` : `exit ${code}: "${shown}"`;
}
