// The program of a guard (guard.ts). It reads on standard input which processes to guard. When the input ends, the command has
// ended, even by `kill -9`, and what is still guarded is ended.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

type Guarded = { target: number; signal: NodeJS.Signals; wait_ms: number }

const POLL_MS = 100

/** Returns whether the process, or the group, was there. */
function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

async function end({ target, signal, wait_ms }: Guarded): Promise<void> {
  const deadline_ms = performance.now() + wait_ms
  send(target, signal)
  while (send(target, 0)) {
    if (performance.now() > deadline_ms) {
      send(target, 'SIGKILL')
      return
    }
    await sleep(POLL_MS)
  }
}

// A terminal sends them to all of its processes; the command decides what ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
const guarded = new Map<number, Guarded>()
for await (const line of createInterface({ input: process.stdin })) {
  const one = JSON.parse(line) as { add: Guarded } | { remove: number }
  if ('add' in one) guarded.set(one.add.target, one.add)
  else guarded.delete(one.remove)
}
await Promise.all([...guarded.values()].map(end))
