// The PostgreSQL processes of one cluster, found by what the operating system says: a program named postgres or
// initdb whose working folder is the cluster's. So they are found after a kill -9 of the platform (the postmaster
// lives on) and of the postmaster (a busy backend lives on and keeps the shared memory, which blocks a new start).
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Account, requireProgram, runProgram } from './program.ts'

const POLL_MS = 20
/** A fast shutdown writes a checkpoint; the immediate one and the kill leave that to the next start. */
const POSTMASTER_STEPS = [
  { signal: 'SIGINT', wait_ms: 10_000 },
  { signal: 'SIGQUIT', wait_ms: 3_000 },
] as const
const BACKEND_STEPS = [
  { signal: 'SIGQUIT', wait_ms: 2_000 },
  { signal: 'SIGKILL', wait_ms: 5_000 },
] as const

// Run as the account itself: root in a container may lack the privilege to inspect another user's processes.
const SCRIPT = `
  for process in /proc/[0-9]*; do
    if [ "$process/cwd" -ef "$1" ]; then echo "\${process#/proc/} $(readlink "$process/exe")"; fi
  done`

/** The ids of the cluster's processes. */
export async function findProcesses(folder: string, account: Account): Promise<number[]> {
  if (process.platform !== 'linux') return findProcessesByOpenFiles(folder)
  const lines = await requireProgram('/bin/sh', ['-c', SCRIPT, 'sh', folder], { account })
  return lines.split('\n').flatMap((line) => {
    const match = /^(\d+) .*\/(postgres|initdb)( \(deleted\))?$/.exec(line)
    return match ? [Number(match[1])] : []
  })
}

/** macOS has no /proc, but `lsof`. It ends with 1 when it finds nothing. */
async function findProcessesByOpenFiles(folder: string): Promise<number[]> {
  const { stdout } = await runProgram('lsof', ['-a', '-d', 'cwd', '-c', '/^(postgres|initdb)$/', '-F', 'pn'])
  const ids: number[] = []
  let id = 0
  for (const line of stdout.split('\n')) {
    if (line.startsWith('p')) id = Number(line.slice(1))
    if (line === `n${folder}`) ids.push(id)
  }
  return ids
}

/** The process id in the cluster's postmaster.pid, alive or not; null when there is none. */
export async function readPostmasterId(folder: string): Promise<number | null> {
  const id = Number((await readPostmasterFile(folder))[0])
  return Number.isInteger(id) && id > 0 ? id : null
}

/** The lines of postmaster.pid: process id, folder, start, port, socket folder, listen address, shared memory, status. */
export async function readPostmasterFile(folder: string): Promise<string[]> {
  return readFile(join(folder, 'postmaster.pid'), 'utf8').then(
    (text) => text.split('\n'),
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    },
  )
}

/** Ends every process of the cluster: the postmaster in its own way first, then what is left. Returns when none is. */
export async function endProcesses(folder: string, account: Account, log: Logger): Promise<void> {
  let found = await findProcesses(folder, account)
  if (found.length === 0) return
  log.warn({ processes: found }, 'ending the PostgreSQL processes that an earlier run left behind')
  const postmaster = await readPostmasterId(folder)
  for (const step of POSTMASTER_STEPS) {
    if (postmaster === null || !found.includes(postmaster)) break
    found = await signalAndWait([postmaster], step.signal, step.wait_ms)
  }
  for (const step of BACKEND_STEPS) {
    if (found.length === 0) return
    found = await signalAndWait(found, step.signal, step.wait_ms)
  }
  if (found.length > 0) throw new Error(`The PostgreSQL processes ${found.join(', ')} do not end.`)

  async function signalAndWait(ids: readonly number[], signal: NodeJS.Signals, wait_ms: number): Promise<number[]> {
    for (const id of ids) sendSignal(id, signal)
    const end = performance.now() + wait_ms
    let living = await findProcesses(folder, account)
    while (living.length > 0 && performance.now() < end) {
      await delay(POLL_MS)
      living = await findProcesses(folder, account)
    }
    return living
  }
}

/** False when there is no such process any more. */
export function sendSignal(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(id, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return false
    // It is there, but somebody else's.
    if (code === 'EPERM' && signal === 0) return true
    throw error
  }
}
