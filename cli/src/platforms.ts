// Contexts: the platforms that this user has logged in to, each with a name, an address and a token. They are in a file that
// only its user may read, in $MUSTER_CONFIG_DIR or ~/.config/muster.
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { EXIT, Failure } from './failure.ts'

type Platform = { url: string; token: string }
export type Platforms = { current: string | null; platforms: Record<string, Platform> }

type Env = Readonly<Record<string, string | undefined>>

const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
/** What a host name has that a context name may not have. */
const NOT_IN_NAMES = /[^A-Za-z0-9._-]+/g

function platformsFile(env: Env): string {
  return join(env.MUSTER_CONFIG_DIR || join(env.HOME || homedir(), '.config', 'muster'), 'platforms.json')
}

export async function readPlatforms(env: Env): Promise<Platforms> {
  const file = platformsFile(env)
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { current: null, platforms: {} }
    throw new Failure(`${file} cannot be read (${code}).`, { cause: error })
  }
  return parse(file, text)
}

/** Written beside the file and renamed, so that a full disk or a crash leaves the previous contents. */
export async function writePlatforms(env: Env, platforms: Platforms): Promise<void> {
  const file = platformsFile(env)
  const folder = join(file, '..')
  const temporary = `${file}.${process.pid}`
  try {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE })
    await writeFile(temporary, `${JSON.stringify(platforms, null, 2)}\n`, { mode: FILE_MODE })
    await chmod(temporary, FILE_MODE)
    await rename(temporary, file)
  } catch (error) {
    throw new Failure(`${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`, {
      remedy: 'Set MUSTER_CONFIG_DIR to a folder that this user may write.',
      cause: error,
    })
  }
}

/** The address in the form in which addresses are compared: the origin, without a path. */
export function normalUrl(text: string, source: string): string {
  const candidate = /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
  let url: URL
  try {
    url = new URL(candidate)
  } catch (error) {
    throw wrongUrl(text, source, error)
  }
  if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '')
    throw wrongUrl(text, source)
  return url.origin
}

function wrongUrl(text: string, source: string, cause?: unknown): Failure {
  return new Failure(`${source} is not the address of a platform: ${text}`, {
    exit_code: EXIT.usage,
    remedy: 'An address has this form: https://muster.example.com',
    cause,
  })
}

export function requireContextName(name: string): void {
  if (NAME.test(name)) return
  throw new Failure(`${name} is not a name for a context: letters, digits, dots, dashes and underscores, at most 63.`, {
    exit_code: EXIT.usage,
  })
}

/** The context name of an address: its host, with the port when there is one. */
export function nameOf(url: string): string {
  const name = new URL(url).host.replaceAll(NOT_IN_NAMES, '-')
  const words = name.split('-').filter((word) => word !== '')
  return words.join('-').replace(/^[^A-Za-z0-9]+/, '') || 'default'
}

function parse(file: string, text: string): Platforms {
  const wrong = (cause?: unknown): Failure =>
    new Failure(`${file} is damaged.`, { remedy: 'Remove it, and log in again: muster login', cause })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw wrong(error)
  }
  const { current, platforms } = (value ?? {}) as Partial<Platforms>
  if (typeof platforms !== 'object' || platforms === null) throw wrong()
  for (const one of Object.values(platforms)) {
    if (typeof one?.url !== 'string' || typeof one.token !== 'string') throw wrong()
  }
  return { current: typeof current === 'string' && Object.hasOwn(platforms, current) ? current : null, platforms }
}
