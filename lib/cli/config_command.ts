/**
 * `holdfast config …`: checks the file, shows what is in effect, gives the editors' schema, takes over others' files.
 */
import { join, resolve } from "node:path";
import { configJsonSchema, describeConfig, formatConfig, formatMistake, parseConfig } from "../config.ts";
import { readPath } from "../config_values.ts";
import { readYaml, writeYaml } from "../config_yaml.ts";
import { parseCredentialFile } from "../core/credential.ts";
import { answer, type Call, type Command, EXIT, problem, type Report } from "./command.ts";
import { convertConfig, type Converted, type ForeignKind, guessKind } from "./foreign_config.ts";
import { environmentOf, type Host } from "./host.ts";
import { withConfig } from "./management_client.ts";
import { writeNewPrivateFile } from "./private_file.ts";
import { loadConfig } from "./settings.ts";
import type { Style } from "./terminal.ts";

const FILE = { name: "FILE", summary: "configuration; left out: the one in use", required: false };

export const CONFIG: Command = {
  name: "config",
  summary: "Check, show and convert configurations",
  implied: "check",
  examples: [
    "holdfast config check",
    "holdfast config import ~/CLIProxyAPI/config.yaml --output holdfast.yaml",
  ],
  subcommands: [
    {
      name: "check",
      summary: "Name every mistake of the configuration at once",
      positionals: [FILE],
      examples: ["holdfast config check", "holdfast config check holdfast.yaml --json"],
      run: (call) => Promise.resolve(checkConfig(call)),
    },
    {
      name: "show",
      summary: "The configuration in effect, defaults filled in, secrets hidden",
      positionals: [FILE],
      examples: ["holdfast config show"],
      run: (call) =>
        withConfig(
          call,
          ({ config }) => Promise.resolve(answer(describeConfig(config), () => formatConfig(config))),
          namedFile(call),
        ),
    },
    {
      name: "schema",
      summary: "The JSON Schema of the configuration, for editors",
      examples: ["holdfast config schema > config.schema.json"],
      run: () => {
        const schema = configJsonSchema();
        return Promise.resolve(answer(schema, () => `${JSON.stringify(schema, null, 2)}\n`));
      },
    },
    {
      name: "import",
      summary: "Convert a configuration of codex-oauth-proxy or CLIProxyAPI",
      details:
        "Prints the new configuration, keys included. What has no counterpart is named, with the reason.",
      positionals: [{ name: "FILE", summary: "the other program's configuration", required: true }],
      options: [
        {
          name: "from",
          value: "PROGRAM",
          summary: "Which program wrote it; left out: told by its keys",
          choices: ["codex-oauth-proxy", "cliproxyapi"],
        },
        {
          name: "output",
          value: "FILE",
          summary: "Write there (mode 0600) instead of printing; must not exist yet",
        },
      ],
      examples: [
        "holdfast config import /etc/codex-oauth-proxy/config.yaml",
        "holdfast config import config.yaml --from cliproxyapi --output holdfast.yaml",
      ],
      run: (call) => Promise.resolve(importConfig(call)),
    },
  ],
};

function namedFile(call: Call): string | null {
  return call.positional(0) === "" ? call.option("config") : call.positional(0);
}

function checkConfig(call: Call): Report {
  const load = loadConfig(namedFile(call), call.host);
  if (load.ok) {
    const { path, warnings } = load.loaded;
    return answer({ ok: true, path, mistakes: [], warnings }, ({ paint }) => {
      const fine = path === null ? "There is no file; the defaults are used" : `${path} is fine`;
      return `${paint.good(fine)}\n${warnings.map((warning) => `${paint.warn(warning)}\n`).join("")}`;
    });
  }
  if (load.mistakes.length === 0) return problem(EXIT.usage, "config_unreadable", load.message);
  const json = { ok: false, path: load.path, mistakes: load.mistakes, warnings: [] };
  return answer(json, ({ paint }) => {
    const count = load.mistakes.length;
    const told = load.mistakes.map((mistake) =>
      `  ${formatMistake(mistake).replace("Cannot parse config: ", "")}\n`
    );
    return `${paint.bad(`${load.path} has ${count} mistake${count === 1 ? "" : "s"}`)}\n${told.join("")}`;
  }, EXIT.usage);
}

function importConfig(call: Call): Report {
  const path = resolve(call.host.workingDir, call.positional(0));
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "there is no such file" : "it cannot be read";
    return problem(EXIT.usage, "file_unreadable", `Cannot read ${call.positional(0)}: ${why}`);
  }
  const reading = readYaml(text);
  const value = reading.ok ? reading.value ?? {} : null;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const why = reading.ok ? "it holds no mapping of keys to values" : reading.problem;
    return problem(EXIT.failed, "not_yaml", `Cannot convert ${call.positional(0)}: ${why}`);
  }
  const source = value as Record<string, unknown>;
  const kind = call.option("from") as ForeignKind | null ?? guessKind(source);
  if (kind === null) {
    return problem(
      EXIT.usage,
      "unknown_program",
      "Nothing tells which program wrote this file; say it with --from",
    );
  }
  const converted = convertConfig(kind, source, findClaudeFiles(source["auth-dir"], call.host));
  return finishImport(call, kind, converted);
}

function finishImport(call: Call, kind: ForeignKind, converted: Converted): Report {
  const yaml = `${converted.dropped.map(({ path, why }) => `# not carried over: ${path} ${why}\n`).join("")}${
    writeYaml(converted.file)
  }`;
  const parsed = parseConfig(yaml, environmentOf(call.host));
  const mistakes = parsed.ok ? [] : parsed.mistakes;
  const output = call.option("output");
  if (output !== null) {
    const refused = writeNewPrivateFile(resolve(call.host.workingDir, output), yaml);
    if (refused !== null) return problem(EXIT.failed, "not_written", `Cannot write ${output}: ${refused}`);
  }
  const json = {
    from: kind,
    config: converted.file,
    dropped: converted.dropped,
    mistakes,
    written_to: output,
  };
  const text = ({ paint }: Style): string => {
    const wrong = mistakes.map(formatMistake);
    // Printed alone, the text is a configuration from its first to its last line.
    if (output === null) return yaml + wrong.map((mistake) => `# mistake: ${mistake}\n`).join("");
    const left = converted.dropped.map(({ path, why }) => `  ${path} ${why}\n`).join("");
    const told = wrong.map((mistake) => `${paint.bad(mistake)}\n`).join("");
    return `Wrote ${output}${left === "" ? "" : "; not carried over:"}\n${left}${told}`;
  };
  return answer(json, text, mistakes.length === 0 ? EXIT.ok : EXIT.failed);
}

/** Claude logins in the other program's folder: there they are found, here they are named. */
function findClaudeFiles(folder: unknown, host: Host): string[] {
  const reading = typeof folder === "string" ? readPath(folder, environmentOf(host)) : null;
  if (reading === null || !reading.ok) return [];
  try {
    return [...Deno.readDirSync(reading.value)]
      .filter((entry) => entry.isFile && entry.name.endsWith(".json"))
      .map((entry) => join(reading.value, entry.name))
      .filter((path) => {
        const parsed = parseCredentialFile(Deno.readTextFileSync(path));
        return parsed.kind === "credential" && parsed.record.kind === "anthropic";
      })
      .sort();
  } catch {
    // No such folder on this machine: the configuration is converted all the same.
    return [];
  }
}
