// Completion scripts for bash, zsh and fish, made from the program. They contain every command and option, so completing
// starts no process of muster.
import type { CommandEntry } from './commands.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

export function completionScript(shell: Shell, entries: readonly CommandEntry[]): string {
  return { bash, zsh, fish }[shell](entries)
}

/** Words that may follow a command: the commands below it and its options. */
function wordsOf({ children, options }: CommandEntry): { word: string; description: string }[] {
  return [
    ...children.map(({ name, description }) => ({ word: name, description })),
    ...options.flatMap(({ names, description }) => names.map((word) => ({ word, description }))),
  ]
}

/** Options with a fixed set of values, as `PATH OPTION`. */
function choicesOf(entries: readonly CommandEntry[]): { key: string; choices: string[] }[] {
  return entries.flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .flatMap(({ names, choices }) => names.map((name) => ({ key: `${path} ${name}`, choices }))),
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The path of the command that the words before the cursor name. `words`: an array of the shell, `last`: its last index. */
function findPath(entries: readonly CommandEntry[], loop: string): string {
  const paths = entries.map(({ path }) => path).filter((path) => path !== '')
  return `  local path='' word
  ${loop}
    case "\${path:+$path }$word" in
      ${paths.map(quoted).join('|')}) path="\${path:+$path }$word" ;;
    esac
  done`
}

function bash(entries: readonly CommandEntry[]): string {
  const choices = choicesOf(entries).map(
    ({ key, choices }) => `    ${quoted(key)}) words=${quoted(choices.join(' '))} ;;`,
  )
  const words = entries.map((entry) => {
    const list = wordsOf(entry).map(({ word }) => word)
    return `      ${quoted(entry.path)}) words=${quoted(list.join(' '))} ;;`
  })
  return `# bash completion of muster. Put into ~/.bashrc: source <(muster completion bash)
_muster() {
${findPath(entries, `for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`)}
  local words=''
  case "$path \${COMP_WORDS[COMP_CWORD-1]}" in
${choices.join('\n')}
    *) case $path in
${words.join('\n')}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _muster muster
`
}

function zsh(entries: readonly CommandEntry[]): string {
  const choices = choicesOf(entries).map(
    ({ key, choices }) => `    ${quoted(key)}) compadd -- ${choices.map(quoted).join(' ')} ;;`,
  )
  const described = entries.map((entry) => {
    const list = wordsOf(entry).map(({ word, description }) => quoted(`${word.replaceAll(':', '\\:')}:${description}`))
    return `      ${quoted(entry.path)}) found=(${list.join(' ')}) ;;`
  })
  return `#compdef muster
# zsh completion of muster. Put into ~/.zshrc, after compinit: source <(muster completion zsh)
_muster() {
${findPath(entries, `for word in \${words[2,CURRENT-1]}; do`)}
  local -a found
  case "$path \${words[CURRENT-1]}" in
${choices.join('\n')}
    *) case $path in
${described.join('\n')}
    esac
    _describe muster found || _files ;;
  esac
}
compdef _muster muster
`
}

function fish(entries: readonly CommandEntry[]): string {
  const paths = entries.map(({ path }) => path).filter((path) => path !== '')
  const lines = entries.flatMap(({ path, children, options }) => {
    const at = `complete -c muster -n "test (__muster_path) = '${path}'"`
    return [
      ...children.map(({ name, description }) => `${at} -f -a ${name} -d ${quoted(description)}`),
      ...options.map(({ names, description, takes_value, choices }) => {
        const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
        const values = choices.length > 0 ? ` -x -a ${quoted(choices.join(' '))}` : takes_value ? ' -r' : ''
        return `${at} ${flags.join(' ')}${values} -d ${quoted(description)}`
      }),
    ]
  })
  return `# fish completion of muster. Put into ~/.config/fish/config.fish: muster completion fish | source
function __muster_path
  set -l path ''
  for word in (commandline -opc)[2..]
    set -l next (string trim "$path $word")
    switch $next
      case ${paths.map(quoted).join(' ')}
        set path $next
    end
  end
  echo -n "$path"
end
${lines.join('\n')}
`
}
