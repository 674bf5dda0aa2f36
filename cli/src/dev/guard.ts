// Ends the processes of a command that was killed. `kill -9` leaves a command no moment to end what it started, so another process
// does that: it holds the end of a pipe, which the system closes with the command.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./guard-program.ts', import.meta.url))
const HAS_GROUPS = process.platform !== 'win32'

type GuardOptions = {
  /** Whether the signals go to the whole group of the process, which must lead one. */
  is_group: boolean
  /** The request to end. */
  signal: NodeJS.Signals
  /** After this time the process is killed. */
  wait_ms: number
}

export class Guard {
  #program: ChildProcess | null = null

  /** Until the process has ended, or the guard is closed. */
  add(child: ChildProcess, { is_group, signal, wait_ms }: GuardOptions): void {
    if (child.pid === undefined) return
    const target = is_group && HAS_GROUPS ? -child.pid : child.pid
    this.#write({ add: { target, signal, wait_ms } })
    child.once('exit', () => this.#write({ remove: target }))
  }

  /** What is still guarded is ended. */
  async close(): Promise<void> {
    const program = this.#program
    if (program === null) return
    this.#program = null
    program.ref()
    const closed = once(program, 'close')
    program.stdin?.end()
    await closed
  }

  #write(message: object): void {
    if (this.#program === null && !('add' in message)) return
    this.#program ??= start()
    this.#program.stdin?.write(`${JSON.stringify(message)}\n`)
  }
}

/** In a group of its own, so that the signals of a terminal and the end of it do not reach it. */
function start(): ChildProcess {
  const program = spawn(process.execPath, [PROGRAM], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  // The command goes on without a guard that could not be started, or was killed.
  program.on('error', () => {})
  program.stdin.on('error', () => {})
  // A command that fails elsewhere ends without waiting for it.
  program.unref()
  ;(program.stdin as Socket).unref()
  return program
}
