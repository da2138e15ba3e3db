/**
 * `deno task compile`: one binary, where Deno's base binary can be fetched; a plain word where it cannot.
 */
const target = Deno.args.find((arg) => arg.startsWith("--target=")) ?? null;
const output = Deno.args.find((arg) => arg.startsWith("--output="))?.slice("--output=".length) ??
  "dist/holdfast";
const args = [
  "compile",
  "--unstable-no-legacy-abort",
  "--allow-net",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-sys",
  ...(target === null ? [] : [target.replace("=", " ").split(" ")].flat()),
  "--output",
  output,
  "main.ts",
];
const { code, stderr } = await new Deno.Command(Deno.execPath(), { args, stdout: "inherit", stderr: "piped" })
  .output();
const text = new TextDecoder().decode(stderr);
if (code === 0) {
  console.log(`Compiled ${output}`);
} else if (/download|dl\.deno\.land|error sending request|connect/i.test(text)) {
  console.error(
    "Cannot compile here: Deno's base binary could not be downloaded. " +
      "Use `deno task bundle` (one JavaScript file for any Deno 2.9), or compile where the download site can be reached.",
  );
  Deno.exit(2);
} else {
  console.error(text);
  Deno.exit(code);
}
