/**
 * `holdfast completions`: a script for the shell, made of the table of commands.
 */
import { answer, type Command, COMMON_OPTIONS, type Option } from "./command.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** @param all  every command, asked for when the script is made: this one is among them. */
export function completionsCommand(all: () => readonly Command[]): Command {
  return {
    name: "completions",
    summary: "Print a script that completes commands and options in a shell",
    positionals: [{ name: "SHELL", summary: "one of", required: true, choices: SHELLS }],
    examples: [
      "source <(holdfast completions bash)",
      "holdfast completions zsh > ~/.zfunc/_holdfast",
      "holdfast completions fish > ~/.config/fish/completions/holdfast.fish",
    ],
    run: (call) => {
      const shell = call.positional(0);
      const script = { bash, zsh, fish }[shell as typeof SHELLS[number]](all());
      return Promise.resolve(answer({ shell, script }, () => script));
    },
  };
}

/** One place on the command line: the words so far, and what may follow. */
interface Place {
  readonly path: readonly string[];
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
  /** Values of the first positional, where there is a list of them. */
  readonly choices: readonly string[];
}

function placesOf(commands: readonly Command[]): Place[] {
  const place = (path: readonly string[], command: Command): Place => ({
    path,
    commands: command.subcommands ?? [],
    options: [...command.options ?? [], ...COMMON_OPTIONS],
    choices: command.positionals?.[0]?.choices ?? [],
  });
  return commands.flatMap((command) => [
    place([command.name], command),
    ...(command.subcommands ?? []).map((one) => place([command.name, one.name], one)),
  ]);
}

export function bash(commands: readonly Command[]): string {
  const words = (place: Place) =>
    [
      ...place.commands.map(({ name }) => name),
      ...place.choices,
      ...place.options.map(({ name }) => `--${name}`),
    ]
      .join(" ");
  const cases = placesOf(commands).toReversed().map((place) =>
    `    "${place.path.join(" ")}"*) words="${words(place)}" ;;`
  );
  return `# bash completion of holdfast
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" line words
  case "$previous" in
    --config|--file|--output) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  line="\${COMP_WORDS[*]:1:COMP_CWORD-1} "
  case "$line" in
${cases.join("\n")}
    *) words="${[...commands.map(({ name }) => name), "--version", "--help"].join(" ")}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _holdfast holdfast
`;
}

export function zsh(commands: readonly Command[]): string {
  const described = (rows: readonly { readonly name: string; readonly summary: string }[], mark = "") =>
    rows.map(({ name, summary }) => `'${mark}${name}:${quoted(summary)}'`).join(" ");
  const places = placesOf(commands);
  const cases = places.map((place) =>
    `    "${place.path.join(" ")}") flags=(${described(place.options, "--")}); names=(${
      described(place.commands)
    }); values=(${place.choices.join(" ")}) ;;`
  );
  const choices = places.flatMap(({ path, options }) =>
    options.flatMap((option) =>
      option.choices === undefined
        ? []
        : `    "${path.join(" ")} --${option.name}") compadd -- ${option.choices.join(" ")}; return ;;`
    )
  );
  const parents = commands.filter(({ subcommands }) => subcommands !== undefined).map(({ name }) => name);
  return `#compdef holdfast
# zsh completion of holdfast
_holdfast() {
  local place="$words[2]" previous="$words[CURRENT-1]"
  # Not "commands" and "options": zsh has parameters of those names.
  local -a flags names values
  if (( CURRENT == 2 )); then
    names=(${described(commands)})
    _describe -t commands command names
    return
  fi
  if [[ "$place" == (${parents.join("|")}) ]] && (( CURRENT > 3 )); then place="$words[2] $words[3]"; fi
  case "$previous" in
    --config|--file|--output) _files; return ;;
  esac
  case "$place $previous" in
${choices.join("\n")}
  esac
  case "$place" in
${cases.join("\n")}
  esac
  if [[ "$words[CURRENT]" == -* ]]; then
    _describe -o option flags
  elif (( $#names )); then
    _describe -t commands command names
  elif (( $#values )); then
    compadd -- $values
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_holdfast" ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

export function fish(commands: readonly Command[]): string {
  const lines = [
    "# fish completion of holdfast",
    "complete -c holdfast -n __fish_use_subcommand -l version -d 'Print the version'",
    ...commands.map(({ name, summary }) =>
      `complete -c holdfast -f -n __fish_use_subcommand -a ${name} -d '${quoted(summary)}'`
    ),
  ];
  for (const { path, commands: inner, options, choices } of placesOf(commands)) {
    const [first, second] = path;
    const names = commands.find(({ name }) => name === first)?.subcommands?.map(({ name }) => name) ?? [];
    const seen = `__fish_seen_subcommand_from ${first}`;
    const condition = second === undefined
      ? names.length === 0 ? seen : `${seen}; and not __fish_seen_subcommand_from ${names.join(" ")}`
      : `${seen}; and __fish_seen_subcommand_from ${second}`;
    for (const { name, summary } of inner) {
      lines.push(`complete -c holdfast -f -n '${condition}' -a ${name} -d '${quoted(summary)}'`);
    }
    if (choices.length > 0) lines.push(`complete -c holdfast -f -n '${condition}' -a '${choices.join(" ")}'`);
    for (const option of options) {
      const values = option.value === null
        ? ""
        : option.choices === undefined
        ? " -r"
        : ` -x -a '${option.choices.join(" ")}'`;
      lines.push(
        `complete -c holdfast -n '${condition}' -l ${option.name}${values} -d '${quoted(option.summary)}'`,
      );
    }
  }
  return `${lines.join("\n")}\n`;
}

/** For text between single quotes of any of the shells; zsh also reads colons and brackets there. */
function quoted(text: string): string {
  return text.replaceAll("'", "").replaceAll(":", ",");
}
