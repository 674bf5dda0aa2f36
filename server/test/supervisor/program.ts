// The program without a supervisor, as in production: some roles in one process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ROLE_PROGRAM } from '../run/built-programs.ts'

export type Program = {
  /** Everything it printed. */
  output: () => string
  kill: (signal: NodeJS.Signals) => void
  /** Resolves when it has ended; null when a signal has ended it. */
  code: Promise<number | null>
}

export function runProgram(settings: Record<string, string>): Program {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [ROLE_PROGRAM], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  return {
    output: () => output,
    kill: (signal) => void child.kill(signal),
    code: once(child, 'close').then(([code]) => code as number | null),
  }
}
