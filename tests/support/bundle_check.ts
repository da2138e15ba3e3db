/**
 * The single-file check: bundle, start it in an empty folder with an empty cache and no configuration discovery,
 * serve one request through it. Exit code 0 only if a client got its answer.
 */
import { fromFileUrl, join } from "./paths.ts";

const root = fromFileUrl(new URL("../../", import.meta.url));
const folder = await Deno.makeTempDir({ prefix: "holdfast-bundle-" });
try {
  const file = join(folder, "holdfast.js");
  await run(root, ["bundle", "--platform", "deno", "-o", file, "main.ts"], {});
  const empty = join(folder, "empty");
  await Deno.mkdir(empty);
  // The demo is the whole product over simulated providers: it ends by itself, with 0 only if every client was served.
  const output = await run(
    empty,
    [
      "run",
      "--v8-flags=--max-semi-space-size=12",
      "-A",
      "--no-remote",
      "--no-npm",
      "--no-config",
      file,
      "demo",
    ],
    { DENO_DIR: join(folder, "cache"), XDG_STATE_HOME: join(folder, "state"), HOME: empty, NO_COLOR: "1" },
  );
  if (!output.includes("every client was served")) {
    throw new Error(`The demo said nothing of success:\n${output}`);
  }
  const bytes = (await Deno.stat(file)).size;
  console.log(
    `ok: one file of ${Math.round(bytes / 1024)} KiB serves from an empty folder with an empty cache`,
  );
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function run(cwd: string, args: string[], env: Record<string, string>): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd, env, stdout: "piped", stderr: "piped" });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (code !== 0) throw new Error(`deno ${args.join(" ")} ended with ${code}:\n${text.slice(-4000)}`);
  return text;
}
