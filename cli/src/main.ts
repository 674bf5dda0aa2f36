#!/usr/bin/env node
// The `muster` command: runs the program, and turns errors into exit codes.
import { CommanderError } from 'commander'
import { EXIT, reportError } from './failure.ts'
import { createProgram } from './program.ts'
import { ProcessTerminal } from './terminal.ts'

const terminal = new ProcessTerminal(process.env)
const program = createProgram(terminal).hook('preAction', (_program, command) => terminal.configure(command.opts()))

// `muster games | head` closes the pipe: the reader has what it wanted. A platform goes on, and ends its database in order.
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    if (!terminal.outlives_output) process.exit(EXIT.done)
  })
}

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}

/** Prints the error, unless commander has done so. */
function exitCodeOf(error: unknown): number {
  // Commander has printed the help, the version or the mistake.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
  const report = reportError(error)
  if (report === null) throw error
  if (terminal.is_json) process.stderr.write(`${JSON.stringify({ error: report.json })}\n`)
  else process.stderr.write(`${report.text}\n`)
  return report.exit_code
}
