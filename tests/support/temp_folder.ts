/** A folder of its own for a test, gone with its content at the end of the block. */
export class TempFolder implements Disposable {
  readonly path: string;

  constructor() {
    this.path = Deno.makeTempDirSync({ prefix: "holdfast-" });
  }

  /** @returns the path of `name` inside */
  file(name: string): string {
    return `${this.path}/${name}`;
  }

  /** Sorted names of what lies in it, or in a folder inside. */
  names(inside = "."): string[] {
    return [...Deno.readDirSync(this.file(inside))].map((entry) => entry.name).sort();
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}
