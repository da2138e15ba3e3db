/**
 * The house rules a machine can see: who imports whom, and what the pure core may not touch.
 */
import { assertEquals } from "@std/assert";

const LAYERS: Readonly<Record<string, readonly string[]>> = {
  core: ["core"],
  protocol: ["protocol", "core"],
  providers: ["providers", "core", "protocol", "ports"],
  upstream: ["upstream", "ports", "core", "protocol/headers"],
  store: ["store", "ports", "core"],
  runtime: ["runtime", "ports"],
  proxy: ["proxy", "ports", "core", "protocol", "providers", "config_types"],
};

/** Words that mean clock, chance or I/O; the pure layers may not contain them outside comments. */
const IMPURE =
  /\b(Date\.now|new Date\(\)|Math\.random|performance\.now|setTimeout|setInterval|Deno\.|console\.|crypto\.subtle|fetch\()/;
const PURE = ["core", "protocol", "providers"];

const root = new URL("../", import.meta.url);

function* sourceFiles(folder: URL): Generator<URL> {
  for (const entry of Deno.readDirSync(folder)) {
    const child = new URL(entry.name + (entry.isDirectory ? "/" : ""), folder);
    if (entry.isDirectory) yield* sourceFiles(child);
    else if (entry.name.endsWith(".ts")) yield child;
  }
}

const files = [...sourceFiles(new URL("lib/", root))].map((url) => ({
  path: url.pathname.slice(root.pathname.length),
  text: Deno.readTextFileSync(url),
}));

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");
}

interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function importsOf(text: string): Import[] {
  return [
    ...text.matchAll(
      /(?:^|\n)\s*(import|export)(\s+type)?\b[^"';]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)/g,
    ),
  ]
    .map((match) => ({ specifier: match[3] ?? match[4]!, typeOnly: match[2] !== undefined }));
}

Deno.test("every relative import in lib/ names its file in full", () => {
  const wrong = files.flatMap(({ path, text }) =>
    importsOf(text)
      .filter(({ specifier }) => specifier.startsWith(".") && !/\.(ts|html|json|css|js)$/.test(specifier))
      .map(({ specifier }) => `${path}: ${specifier}`)
  );
  assertEquals(wrong, []);
});

Deno.test("each layer of lib/ imports only from the layers below it", () => {
  const wrong: string[] = [];
  for (const { path, text } of files) {
    const allowed = LAYERS[path.split("/")[1]!];
    if (allowed === undefined) continue;
    for (const { specifier } of importsOf(text)) {
      if (!specifier.startsWith(".")) continue;
      const target = new URL(specifier, new URL(path, root)).pathname.slice(
        root.pathname.length + "lib/".length,
      );
      const fits = allowed.some((prefix) => target.startsWith(`${prefix}/`) || target === `${prefix}.ts`);
      if (!fits) wrong.push(`${path} imports ${target}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("the pure layers hold no clock, chance or I/O", () => {
  const wrong: string[] = [];
  for (const { path, text } of files) {
    if (!PURE.includes(path.split("/")[1]!)) continue;
    const code = withoutComments(text);
    const found = IMPURE.exec(code);
    if (found !== null) wrong.push(`${path}: ${found[0]}`);
    for (const { specifier, typeOnly } of importsOf(code)) {
      if (!specifier.startsWith(".") && !typeOnly) wrong.push(`${path}: ${specifier}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("node:sqlite is imported in one file", () => {
  const importers = files.filter(({ text }) =>
    importsOf(text).some(({ specifier }) => specifier === "node:sqlite")
  );
  assertEquals(importers.map(({ path }) => path), ["lib/store/database.ts"]);
});

Deno.test("no file of lib/ is left unfinished or names the machine it was made on", () => {
  const unfinished = new RegExp(["TO" + "DO", "FIX" + "ME", "not impl" + "emented"].join("|"), "i");
  const wrong = files.filter(({ text }) =>
    unfinished.test(text) || /["'`](\/work|\/root|\/farm)\//.test(text)
  );
  assertEquals(wrong.map(({ path }) => path), []);
});

/** Files in which a caller's key, cookie or state is looked at. */
const KEY_READERS = [
  "lib/cli/callback_server.ts",
  "lib/proxy/admin_sessions.ts",
  "lib/proxy/admission.ts",
  "lib/proxy/management.ts",
  "lib/proxy/own_tokens.ts",
  "lib/proxy/status.ts",
  "lib/proxy/user_routes.ts",
];

const SECRET = "\\b(?:[a-z]*[kK]ey|token|secret|session|cookie|state)";

/** Comparisons of something secret with anything but nothing. */
function secretsCompared(code: string): string[] {
  const patterns = [
    `${SECRET} *[!=]==? *([^\\s;)]+)`,
    `([^\\s(!]+) *[!=]==? *${SECRET}\\b`,
    `${SECRET}\\.(?:startsWith|endsWith|includes|localeCompare)\\(([^)]*)`,
  ];
  return patterns.flatMap((pattern) => [...code.matchAll(new RegExp(pattern, "g"))])
    .filter(([, other]) => !/^(?:null|undefined|"")$/.test(other!))
    .map(([found]) => found);
}

Deno.test("the search for compared secrets finds them", () => {
  const found = [
    "if (key !== null && key === wanted) {}",
    "return wanted === token;",
    "key.startsWith(wanted)",
    'adminKey !== header.get("x")',
    "if (id === null || cookie == theirs) {}",
  ].map((code) => secretsCompared(code).length);
  assertEquals(found, [1, 1, 1, 1, 1]);
});

Deno.test("whatever a caller shows as a key is compared as a digest, in constant time, and nowhere else", () => {
  const readers = files.filter(({ text }) => /readClientKey\(|readCookie\(|digest\.equal\(/.test(text));
  assertEquals(readers.map(({ path }) => path).filter((path) => !KEY_READERS.includes(path)), []);
  const wrong = KEY_READERS.flatMap((path) =>
    secretsCompared(withoutComments(files.find((file) => file.path === path)!.text)).map((found) =>
      `${path}: ${found}`
    )
  );
  assertEquals(wrong, []);
  const digest = files.find(({ path }) => path === "lib/runtime/digest.ts")!.text;
  assertEquals(/equal\(a, b\) \{[^}]*timingSafeEqual\(left, right\)/.test(digest), true);
});

Deno.test("no answer of ours carries a header that opens it to other origins", () => {
  const wrong = files.filter(({ path, text }) =>
    path !== "lib/protocol/headers.ts" && /access-control-allow/i.test(withoutComments(text))
  );
  assertEquals(wrong.map(({ path }) => path), []);
});
