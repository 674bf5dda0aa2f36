// The exit code that clients require of every lobby that has stopped, of what its run's row says.

/** As a shell reports it. */
const NO_SUCH_PROGRAM = 127
const UNKNOWN = -1

export function exitCodeOf(run: { exit_code: number | null; exit_reason: string | null }): number {
  return run.exit_code ?? (run.exit_reason === 'no_such_file' ? NO_SUCH_PROGRAM : UNKNOWN)
}
