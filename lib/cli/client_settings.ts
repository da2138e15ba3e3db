/**
 * Ready-to-paste settings for the clients, printed once with the first key and by the demo's `--keep`.
 */
export function clientSettings(
  url: string,
  key: string,
  title = "A client key was made. It is shown this once and kept only as a hash",
): string {
  return `
${title}:

  ${key}

Codex CLI, in ~/.codex/config.toml, with HOLDFAST_KEY set to the key:

  model_provider = "holdfast"
  [model_providers.holdfast]
  name = "Holdfast"
  base_url = "${url}/v1"
  env_key = "HOLDFAST_KEY"
  wire_api = "responses"
  requires_openai_auth = false

Claude Code, in the environment:

  export ANTHROPIC_BASE_URL=${url}
  export ANTHROPIC_AUTH_TOKEN=${key}
`;
}
