// The processes that a test file started.
import { readFileSync } from 'node:fs'
import { isGone, signal, treeOf } from '../../src/node/procfs.ts'

const TREE_SIZE_MAX = 1_000
const COMMAND_LENGTH_MAX = 200

/** Ends all that this process started, as far as each process has not left its parent. Returns a line about each. */
export function killDescendants(pid: number): string[] {
  if (process.platform !== 'linux') return []
  const [, ...descendants] = treeOf(pid, TREE_SIZE_MAX)
  const lines = descendants.map((descendant) => {
    const command = commandOf(descendant).join(' ').replaceAll('\n', ' ').slice(0, COMMAND_LENGTH_MAX)
    return `process ${descendant}: ${command}`
  })
  for (const descendant of descendants) signal(descendant, 'SIGKILL')
  return lines
}

/** The words of its command line; none when it has ended. */
export function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}
