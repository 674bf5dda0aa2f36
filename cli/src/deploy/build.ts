// Runs the `build` command of a folder before its files are read. What it prints goes to stderr, as notes do.
import { spawn } from 'node:child_process'
import { Failure } from '../failure.ts'
import { type Terminal, withoutToken } from '../terminal.ts'

export type BuildStep = { title: string; folder: string; command: string }

/** Throws a Failure when the command fails. Ctrl-C ends the command too. */
export async function runBuild(terminal: Terminal, { title, folder, command }: BuildStep): Promise<void> {
  terminal.note(`build ${title}: ${command}`)
  const child = spawn(command, { cwd: folder, shell: true, env: withoutToken(terminal.env), stdio: ['ignore', 2, 2] })
  // A terminal sends Ctrl-C to the command itself; elsewhere it is passed on.
  const end = (): void => void child.kill('SIGINT')
  terminal.signal.addEventListener('abort', end, { once: true })
  try {
    const outcome = await new Promise<string | null>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, by) => resolve(code === 0 ? null : `it ended with ${by ?? `exit code ${code}`}`))
    })
    terminal.signal.throwIfAborted()
    if (outcome !== null) {
      throw new Failure(`The build command of the ${title} failed: ${outcome}.`, {
        remedy: `Correct ${title}.build in muster.yaml, or run it by hand in ${folder}: ${command}`,
      })
    }
  } finally {
    terminal.signal.removeEventListener('abort', end)
  }
}
