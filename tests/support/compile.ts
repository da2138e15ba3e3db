/**
 * `deno task compile [--target=TRIPLE] [--all]`: one binary, or all five with checksums, where Deno's base binaries can
 * be fetched; a plain word where they cannot.
 */
const TARGETS = [
  "x86_64-unknown-linux-gnu",
  "aarch64-unknown-linux-gnu",
  "x86_64-apple-darwin",
  "aarch64-apple-darwin",
  "x86_64-pc-windows-msvc",
] as const;

const PERMISSIONS = ["--allow-net", "--allow-read", "--allow-write", "--allow-env", "--allow-sys"];

const all = Deno.args.includes("--all");
const named = Deno.args.find((arg) => arg.startsWith("--target="))?.slice("--target=".length) ?? null;
const targets: readonly (string | null)[] = all ? TARGETS : [named];
if (named !== null && !TARGETS.some((target) => target === named)) {
  console.error(`Cannot compile: the target must be one of ${TARGETS.join(", ")}, got ${named}`);
  Deno.exit(2);
}

await Deno.mkdir("dist", { recursive: true });
const sums: string[] = [];
for (const target of targets) {
  const file = `dist/holdfast${target === null ? "" : `-${target}`}${
    target?.includes("windows") ? ".exe" : ""
  }`;
  await compile(target, file);
  sums.push(`${await sha256(file)}  ${file.slice("dist/".length)}`);
  console.log(`Compiled ${file}`);
}
await Deno.writeTextFile("dist/SHA256SUMS", sums.join("\n") + "\n");

async function compile(target: string | null, file: string): Promise<void> {
  const args = ["compile", "--v8-flags=--max-semi-space-size=12", ...PERMISSIONS];
  if (target !== null) args.push("--target", target);
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args, "--output", file, "main.ts"],
    stdout: "inherit",
    stderr: "piped",
  }).output();
  if (code === 0) return;
  const text = new TextDecoder().decode(stderr);
  if (/download|error sending request|connect|denort/i.test(text)) {
    console.error(
      "Cannot compile here: Deno's base binary could not be downloaded. " +
        "Use `deno task bundle` (one JavaScript file for any Deno 2.9), or compile where the download site can be reached.",
    );
    Deno.exit(2);
  }
  console.error(text);
  Deno.exit(code);
}

async function sha256(file: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(file));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
