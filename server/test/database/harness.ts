// What the tests of the embedded PostgreSQL share: a folder, a platform process on it (platform.ts) that can be
// killed, as this user or as an ordinary one, and conditions that are waited for.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import pg from 'pg'
import pino from 'pino'
import { findAccount } from '../../src/database/embedded/account.ts'
import { endProcesses, sendSignal } from '../../src/database/embedded/processes.ts'
import { readSecret } from '../../src/database/embedded/secret.ts'
import { lacking } from '../run/optional-programs.ts'

const PLATFORM = join(import.meta.dirname, 'platform.ts')

export const silent = pino({ level: 'silent' })

/** Null: the user that runs the tests. */
export type User = { uid: number; gid: number } | null

/** An ordinary user, when we are root and can become one who reaches this checkout; otherwise why not. */
export function findOrdinaryUser(): { user: User } | { reason: string } {
  const missing = lacking('root')
  if (missing !== null) return { reason: missing }
  const ids = /uid=(\d+)\S* gid=(\d+)/.exec(spawnSync('id', ['nobody'], { encoding: 'utf8' }).stdout)
  if (!ids) return { reason: 'needs the user nobody' }
  const user = { uid: Number(ids[1]), gid: Number(ids[2]) }
  const reached = spawnSync('/bin/sh', ['-c', 'test -x "$0" && test -r "$1"', process.execPath, PLATFORM], {
    ...user,
    cwd: '/',
  })
  return reached.status === 0 ? { user } : { reason: 'needs a checkout and a Node that the user nobody can reach' }
}

/** A folder that the user owns. What lives on it is ended, and it is removed, after the test. */
export async function makeFolder(t: TestContext, user: User = null): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-embedded-'))
  chmodSync(folder, 0o700)
  if (user) chownSync(folder, user.uid, user.gid)
  undoAfter(t, async () => {
    const cluster = join(folder, 'postgres')
    await endProcesses(cluster, await findAccount(cluster, silent), silent)
    const socket_folder = await readSecret(join(folder, 'keys', 'postgres-run-folder'))
    if (socket_folder) await rm(socket_folder, { recursive: true, force: true })
    await rm(folder, { recursive: true, force: true })
  })
  return folder
}

export type Platform = {
  child: ChildProcess
  /** The next time that the server is ready. Rejects when the process ends before. */
  ready: () => Promise<{ url: string; process_id: number }>
  stop: () => Promise<void>
  kill: () => Promise<void>
}

export function startPlatform(t: TestContext, folder: string, user: User = null): Platform {
  const child = spawn(process.execPath, [PLATFORM, folder], {
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(user && { uid: user.uid, gid: user.gid }),
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  undoAfter(t, kill)
  return {
    child,
    kill,
    async ready() {
      const line = await lines.next()
      assert(!line.done, 'the platform process ended before its database was ready')
      return JSON.parse(line.value) as { url: string; process_id: number }
    },
    async stop() {
      child.stdin?.end()
      const [code] = await exited
      assert.equal(code, 0)
    },
  }
}

/** A connection that may break without ending the test process. */
export async function openClient(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  undoAfter(t, () => client.end())
  return client
}

/** A zombie process does not count as running. */
export function isAlive(process_id: number): boolean {
  if (!existsSync('/proc/self/stat')) return sendSignal(process_id, 0)
  try {
    return !/\) Z /.test(readFileSync(`/proc/${process_id}/stat`, 'latin1'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return false
    throw error
  }
}

const undoing = new WeakMap<TestContext, (() => unknown)[]>()

/** Like `t.after`, but what was opened last is closed first. */
export function undoAfter(t: TestContext, undo: () => unknown): void {
  const known = undoing.get(t)
  if (known) return void known.push(undo)
  const steps = [undo]
  undoing.set(t, steps)
  t.after(async () => {
    for (const step of steps.toReversed()) await step()
  })
}
