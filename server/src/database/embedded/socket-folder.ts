// The folder of PostgreSQL's socket. A socket's path is short by law of the kernel, so it cannot lie in the data
// folder; it lies in the system's folder for temporary files, where strangers may write. So its name is random, made
// once and remembered in the data folder, and a folder of that name that is not ours alone is never used.
import { randomBytes } from 'node:crypto'
import { chown, lstat, mkdir, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StartError } from '../../config/start-error.ts'
import type { Account } from './program.ts'
import { readSecret, writeSecret } from './secret.ts'

export const PORT = 5432
/** In the key folder: where the socket lies. */
export const SOCKET_FOLDER_FILE = 'postgres-run-folder'
/** sockaddr_un holds 108 bytes with the closing NUL on Linux, 104 elsewhere. */
const PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103
/** Attempts to create a folder with a random name. */
const TRIES_MAX = 5

/**
 * Returns a folder that only the account can enter (and root). `wanted` is the operator's choice, used as it is or
 * refused; otherwise the one remembered in `memory`, a file, is used again, so that addresses survive a restart.
 */
export async function openSocketFolder(account: Account, memory: string, wanted?: string): Promise<string> {
  if (wanted !== undefined) {
    if (!fits(wanted)) throw new StartError(`The run folder ${wanted} is too long for a socket's path.`)
    if (await claim(wanted, account)) return wanted
    throw new StartError(`The run folder ${wanted} must belong to PostgreSQL's user, with mode 0700.`)
  }
  const remembered = await readSecret(memory)
  if (remembered && fits(remembered) && (await claim(remembered, account))) return remembered
  for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
    const name = `muster-${randomBytes(6).toString('hex')}`
    const folder = [join(tmpdir(), name), join('/tmp', name)].find(fits)
    if (folder === undefined || !(await claim(folder, account))) continue
    await writeSecret(memory, `${folder}\n`)
    return folder
  }
  throw new StartError(`No folder for PostgreSQL's socket can be made in ${tmpdir()}; TMPDIR may name another one.`)
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, `.s.PGSQL.${PORT}`)) <= PATH_BYTES_MAX
}

/** Makes the folder, or finds that it is ours already. False when it is somebody else's or open to others. */
async function claim(folder: string, account: Account): Promise<boolean> {
  try {
    await mkdir(folder, { mode: 0o700 })
    if (account) await chown(folder, account.uid, account.gid)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // ENOENT: a remembered folder below one that is gone, such as an old TMPDIR.
    if (code === 'ENOENT') return false
    if (code !== 'EEXIST') throw error
  }
  // lstat: a link to somewhere else is not a folder.
  const found = await lstat(folder)
  return found.isDirectory() && found.uid === (account?.uid ?? process.geteuid?.()) && (found.mode & 0o077) === 0
}

/** PostgreSQL removes its socket when it ends in order. One that is there belongs to a server that was started since. */
export async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error
  })
}
