// The commands as a person types them: real processes of `muster`, and what they print.
import { spawn } from 'node:child_process'
import { MUSTER } from '../run/built-programs.ts'

export type Ended = { code: number | null; signal: NodeJS.Signals | null; output: string }
export type Command = { kill: (signal: NodeJS.Signals) => void; ended: Promise<Ended> }

export function startCommand(args: readonly string[], env: Record<string, string>): Command {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [MUSTER, ...args], {
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  const ended = new Promise<Ended>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal, output })),
  )
  return { kill: (signal) => void child.kill(signal), ended }
}

export function runCommand(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  return startCommand(args, env).ended
}
