/**
 * The settings with which clients use Holdfast, ready to paste.
 */
export const CODEX_KEY_VARIABLE = "HOLDFAST_KEY";

/** What Codex reads in its `config.toml`: the provider, and that it is the one to use. */
export function codexProvider(url: string): Readonly<Record<string, string | boolean>> {
  return {
    name: "Holdfast",
    base_url: `${url}/v1`,
    env_key: CODEX_KEY_VARIABLE,
    wire_api: "responses",
    requires_openai_auth: false,
  };
}

/** What Claude Code reads from its environment, or from `env` of its `settings.json`. */
export function claudeCodeVariables(url: string, key: string): Readonly<Record<string, string>> {
  return { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: key };
}

/** What the OpenAI SDKs read from the environment. */
export function openaiVariables(url: string, key: string): Readonly<Record<string, string>> {
  return { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key };
}

export function codexToml(url: string): string {
  const lines = Object.entries(codexProvider(url)).map(([name, value]) =>
    `${name} = ${JSON.stringify(value)}`
  );
  return ['model_provider = "holdfast"', "", "[model_providers.holdfast]", ...lines].join("\n") + "\n";
}

export function shellExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables).map(([name, value]) => `export ${name}=${shellWord(value)}\n`).join("");
}

/**
 * Printed once with the first key, and by the demo's `--keep`.
 *
 * @param program  how Holdfast is called here.
 */
export function clientSettings(
  url: string,
  key: string,
  program: string,
  title = "A client key was made. It is shown this once and kept only as a hash",
): string {
  return `
${title}:

  ${key}

Codex CLI, in ~/.codex/config.toml, with ${CODEX_KEY_VARIABLE} set to the key:

${indent(codexToml(url))}
Claude Code, in the environment:

${indent(shellExports(claudeCodeVariables(url, key)))}
With ${CODEX_KEY_VARIABLE} set to the key, these put them there:

  ${program} clients codex --write
  ${program} clients claude-code --write
`;
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}

export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
