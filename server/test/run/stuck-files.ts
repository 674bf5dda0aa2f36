// Ends test files whose event loop is blocked, which file-watchdog.ts in their own process cannot do.
import { childrenOf, signal } from '../../src/node/procfs.ts'
import { commandOf, killDescendants } from '../support/process-tree.ts'
import { EXIT_MS_MAX, FILE_MS_MAX } from './limits.ts'

const POLL_MS = 2_000

/** Watches the children of the runner, each of which is a test file, until the function that it returns is called. */
export function watchForStuckFiles(runner_pid: number): () => void {
  if (process.platform !== 'linux') return () => undefined
  /** By the pid of each file's process; a pid is not used again so soon. */
  const seen_ms = new Map<number, number>()
  const poll = setInterval(() => {
    const now_ms = performance.now()
    const pids = childrenOf(runner_pid)
    for (const pid of seen_ms.keys()) if (!pids.includes(pid)) seen_ms.delete(pid)
    for (const pid of pids) {
      if (!seen_ms.has(pid)) seen_ms.set(pid, now_ms)
      if (now_ms - seen_ms.get(pid)! > FILE_MS_MAX + EXIT_MS_MAX) end(pid)
    }
  }, POLL_MS)
  return () => clearInterval(poll)
}

function end(pid: number): void {
  const limit_s = (FILE_MS_MAX + EXIT_MS_MAX) / 1000
  console.error(`${commandOf(pid).at(-1)} has not ended within ${limit_s} s, and its event loop is blocked.`)
  for (const line of killDescendants(pid)) console.error(`  ${line}`)
  signal(pid, 'SIGKILL')
}
