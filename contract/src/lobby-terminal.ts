// The terminal of a server whose config has `terminal: true`. Node has no call that makes one, so the program `script` of
// util-linux does: it runs a command in a terminal, copies its input and output, and ends with its exit code.

/** Size of the terminal. Wide, because servers break their lines at its width. */
export const TERMINAL_ROWS = 50
export const TERMINAL_COLUMNS = 200
/** TERM of the server, as container engines set it. */
export const TERMINAL_TYPE = 'xterm'

/** The command that runs this one in a terminal, on a machine with the `script` of util-linux. */
export function inTerminal(command: readonly string[]): string[] {
  const size = `stty rows ${TERMINAL_ROWS} cols ${TERMINAL_COLUMNS}`
  return ['script', '-qefc', `${size}; exec ${command.map(quoteForShell).join(' ')}`, '/dev/null']
}

/** One word for a shell. Throws when the text contains a NUL. */
export function quoteForShell(text: string): string {
  if (text.includes('\0')) throw new Error('A text for a shell contains a NUL.')
  return `'${text.replaceAll("'", `'\\''`)}'`
}
