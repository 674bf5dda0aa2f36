// The cluster: the folder of PostgreSQL's files. It is made beside its place and renamed into it when it is whole,
// with role, database and password, so a cluster in its place is complete, however the making of it was interrupted.
import { randomBytes } from 'node:crypto'
import { chown, mkdtemp, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { StartError } from '../../config/start-error.ts'
import type { Binaries } from './binaries.ts'
import { endProcesses } from './processes.ts'
import { type Account, requireProgram } from './program.ts'
import { readSecret, syncFolder, writeSecret } from './secret.ts'

/**
 * The platform's role, and the one database. It is no superuser: that one has no way in at all. It makes the roles of nodes
 * that join (links/platform/database-role.ts).
 */
export const ROLE = 'muster'
/** In the key folder. */
export const PASSWORD_FILE = 'postgres-password'
const ACCESS_FILE = 'pg_hba.conf'
const DRAFT_PREFIX = 'postgres.making-'
const ACCESS = '# Made by the platform.\nlocal all postgres reject\nlocal all all scram-sha-256\n'

export type Cluster = { folder: string; password: string }

/** Makes the cluster where there is none. Throws a StartError for a folder that is not a cluster of this major. */
export async function openCluster(
  data_dir: string,
  binaries: Binaries,
  account: Account,
  log: Logger,
): Promise<Cluster> {
  const folder = join(data_dir, 'postgres')
  const password_file = join(data_dir, 'keys', PASSWORD_FILE)
  await removeDrafts(data_dir, account, log)
  const found = await readVersion(folder)
  const ours = await programVersion(binaries, account)
  if (found !== null && found !== ours) {
    throw new StartError(
      `The data in ${folder} is of PostgreSQL ${found}, and this version of Muster brings PostgreSQL ${ours}. ` +
        'To move it, run "muster backup" with the version of Muster that made it, move this folder away, and run ' +
        '"muster restore" with this version (docs/operation.md).',
    )
  }

  const known = await readSecret(password_file)
  const password = known ?? randomBytes(32).toString('base64url')
  // The password is kept before anything is protected by it.
  if (known === null) await writeSecret(password_file, `${password}\n`)
  if (found === null) {
    log.info('making the database: it takes a second')
    await makeCluster(data_dir, folder, password, binaries, account)
  } else if (known === null) {
    log.warn('the password of the database was lost and is made anew')
    await endProcesses(folder, account, log)
    await runAlone(folder, [`alter role ${ROLE} password '${password}'`], binaries, account)
  }
  if (found !== null) await openToNodes(folder, binaries, account, log)
  return { folder, password }
}

async function makeCluster(
  data_dir: string,
  folder: string,
  password: string,
  binaries: Binaries,
  account: Account,
): Promise<void> {
  const draft = await mkdtemp(join(data_dir, DRAFT_PREFIX))
  if (account) await chown(draft, account.uid, account.gid)
  // The builtin locale sorts alike on every system and every version of its libraries.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  await requireProgram(binaries.initdb, [`--pgdata=${draft}`, '--username=postgres', '--auth=reject', ...locale], {
    account,
    folder: draft,
  })
  const statements = [
    `create role ${ROLE} login createdb createrole password '${password}'`,
    `create database ${ROLE} owner ${ROLE}`,
  ]
  await runAlone(draft, statements, binaries, account)
  await writeAccess(draft)
  // An empty folder in its place is replaced; anything else makes this fail.
  await rename(draft, folder)
  await syncFolder(data_dir)
}

/** A cluster of an older release lets nobody but the platform in, and the platform makes no roles. The file is written last. */
async function openToNodes(folder: string, binaries: Binaries, account: Account, log: Logger): Promise<void> {
  if ((await readFile(join(folder, ACCESS_FILE), 'utf8')) === ACCESS) return
  await endProcesses(folder, account, log)
  await runAlone(folder, [`alter role ${ROLE} createrole`], binaries, account)
  await writeAccess(folder)
}

async function writeAccess(folder: string): Promise<void> {
  const access = await open(join(folder, ACCESS_FILE), 'w')
  try {
    await access.writeFile(ACCESS)
    await access.sync()
  } finally {
    await access.close()
  }
  await syncFolder(folder)
}

/** Single-user mode: no server, no password, one statement a line. Ends at the first error. */
async function runAlone(
  folder: string,
  statements: readonly string[],
  binaries: Binaries,
  account: Account,
): Promise<void> {
  const settings = [
    'exit_on_error=true',
    // A statement that fails is not repeated in the error: it may hold the password.
    'log_min_error_statement=panic',
    // Iterations make the guessing of a weak password dear. This one is 256 random bits, and is shown at every connect.
    'scram_iterations=1',
  ].flatMap((setting) => ['-c', setting])
  await requireProgram(binaries.postgres, ['--single', '-D', folder, ...settings, 'postgres'], {
    account,
    folder,
    input: `${statements.join('\n')}\n`,
  })
}

/** The major version of the data, null when there is no cluster yet. */
async function readVersion(folder: string): Promise<string | null> {
  try {
    return (await readFile(join(folder, 'PG_VERSION'), 'utf8')).trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES') {
      throw new StartError(
        `${folder} belongs to another user of this machine. Run the platform as the user who made it (or as root), ` +
          'or set MUSTER_DATA to another folder.',
      )
    }
    if (code !== 'ENOENT') throw error
  }
  const content = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (content.length === 0) return null
  throw new StartError(`${folder} is not empty, and holds no PostgreSQL data. Move it away, or restore it whole.`)
}

async function programVersion(binaries: Binaries, account: Account): Promise<string> {
  const said = await requireProgram(binaries.postgres, ['--version'], { account }).catch((error: unknown) => {
    throw new StartError(
      `The PostgreSQL that npm brought does not run on this system (${error instanceof Error ? error.message : error}). ` +
        'Set DATABASE_URL to a PostgreSQL of your own.',
    )
  })
  const version = /\b(\d+)\.\d+/.exec(said)?.[1]
  if (version === undefined) throw new Error(`PostgreSQL does not tell its version: ${said}`)
  return version
}

/** What an interrupted making left behind, with the processes that may still be at it. */
async function removeDrafts(data_dir: string, account: Account, log: Logger): Promise<void> {
  for (const name of await readdir(data_dir)) {
    if (!name.startsWith(DRAFT_PREFIX)) continue
    await endProcesses(join(data_dir, name), account, log)
    await rm(join(data_dir, name), { recursive: true, force: true })
  }
}
