// The system user that PostgreSQL runs as. It refuses to run as root, so a platform that runs as root runs it as the user
// `postgres`, which is created when it is missing. Otherwise it runs as the platform's own user. That user must be able to
// enter every folder above the cluster and above the programs: only root can enter /root.
import { chmod, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import { StartError } from '../../config/start-error.ts'
import { type Account, requireProgram, runProgram } from './program.ts'

const NAME = 'postgres'

const WAY_OUT =
  'Put the platform and its data (MUSTER_DATA) where every user may enter, for example under /opt and /var/lib; ' +
  'or run it as an ordinary user; or set DATABASE_URL to a PostgreSQL of your own.'

/** `cluster` is the cluster's folder, which may not exist yet. A cluster that exists keeps its owner. */
export async function findAccount(cluster: string, log: Logger): Promise<Account> {
  if (process.geteuid?.() !== 0) return null
  const owner = await stat(cluster).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (owner && owner.uid !== 0) return { name: `user ${owner.uid}`, uid: owner.uid, gid: owner.gid }
  const known = await lookUp()
  if (known) return known
  log.info(`creating the system user ${NAME}, because PostgreSQL does not run as root`)
  try {
    const shell = '/usr/sbin/nologin'
    await requireProgram('useradd', [
      '--system',
      '--user-group',
      '--no-create-home',
      '--home-dir',
      '/',
      '--shell',
      shell,
      NAME,
    ])
  } catch (error) {
    // Another platform on this machine may have made it at the same moment.
    const made = await lookUp()
    if (made) return made
    throw new StartError(
      `PostgreSQL does not run as root, and the system user ${NAME} cannot be made ` +
        `(${error instanceof Error ? error.message : error}). ${WAY_OUT}`,
    )
  }
  return lookUp()
}

async function lookUp(): Promise<Account> {
  const result = await runProgram('id', [NAME])
  const ids = /^uid=(\d+)\b\S* gid=(\d+)/.exec(result.stdout)
  return result.code === 0 && ids ? { name: NAME, uid: Number(ids[1]), gid: Number(ids[2]) } : null
}

/** Throws a StartError naming the first folder on the way to one of `folders` that the account cannot enter. */
export async function requireReachable(account: Account, data_dir: string, folders: readonly string[]): Promise<void> {
  if (account === null) return
  // The data folder is ours to open; its secrets have modes of their own. Entering is not listing.
  const { mode } = await stat(data_dir)
  if ((mode & 0o001) === 0) await chmod(data_dir, mode | 0o011)

  const way = [...new Set(folders.flatMap(withParents))].sort((a, b) => a.length - b.length)
  const script = 'for folder; do test -x "$folder" || { echo "$folder"; exit 0; }; done'
  const closed = await requireProgram('/bin/sh', ['-c', script, 'sh', ...way], { account })
  if (closed === '') return
  throw new StartError(
    `PostgreSQL does not run as root, and its ${account.name === NAME ? `user ${NAME}` : account.name} cannot enter ` +
      `${closed}, on the way to ${folders.find((folder) => withParents(folder).includes(closed))}. ${WAY_OUT}`,
  )
}

function withParents(folder: string): string[] {
  const parent = dirname(folder)
  return parent === folder ? [folder] : [...withParents(parent), folder]
}
