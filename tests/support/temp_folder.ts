/** A folder of its own for a test, gone with its content at the end of the block. */
export class TempFolder implements Disposable {
  readonly path: string;

  constructor(suffix = "") {
    this.path = Deno.makeTempDirSync({ prefix: "holdfast-", suffix });
  }

  /** @returns the path of `name` inside */
  file(name: string): string {
    return `${this.path}/${name}`;
  }

  names(): string[] {
    return [...Deno.readDirSync(this.path)].map((entry) => entry.name).sort();
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}
