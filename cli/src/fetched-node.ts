// A Node for the platform, where the one of the machine is too old: the package `node-linux-*` of npm, at the version that
// this program was built with. npm downloads it, its hash is compared, and its program stays in a cache folder.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import { Failure } from './failure.ts'

/** Time limit of npm's download of 60 MB. */
const DOWNLOAD_MS_MAX = 600_000
/** Time limit in which the fetched Node must print its version. */
const START_MS_MAX = 60_000
const PROGRAM = 'package/bin/node'
const HASH = 'sha512'

/** `integrity`: of the package's file, as lock files have it. */
export type PinnedNode = { name: string; version: string; integrity: string }

/** Null: this program was built without one, or not for this system. `system`: for example `linux-x64`. */
export async function readPinnedNode(system: string): Promise<PinnedNode | null> {
  const manifest = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  const { platform_node = {} } = JSON.parse(manifest) as { platform_node?: Record<string, PinnedNode> }
  return platform_node[system] ?? null
}

/** Resolves to the path of the program. Only the first call for a version uses the network. */
export async function fetchNode(pinned: PinnedNode, env: NodeJS.ProcessEnv): Promise<string> {
  const { name, version } = pinned
  const folder = join(cacheFolder(env), `${name}-${version}`)
  const program = join(folder, 'node')
  if (existsSync(program)) return program
  process.stderr.write(
    `The platform needs a newer Node than this one, ${process.versions.node}. npm fetches ${name} ${version} into ${folder}, once.\n`,
  )
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const part_folder = await mkdtemp(join(folder, 'part-'))
  try {
    const file = await download(pinned, part_folder, env)
    await requireIntegrity(pinned, file)
    const part = join(part_folder, 'node')
    await extractProgram(file, part)
    await chmod(part, 0o755)
    await requireStarting(part, pinned)
    // Two commands may fetch it at once. Either file is whole.
    await rename(part, program)
  } finally {
    await rm(part_folder, { recursive: true, force: true })
  }
  return program
}

/** Lobbies of a platform that root started run as other users, which cannot enter the home folder of root. */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, 'muster')
  return process.getuid?.() === 0 ? '/var/cache/muster' : join(homedir(), '.cache', 'muster')
}

async function download({ name, version }: PinnedNode, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['pack', `${name}@${version}`, '--pack-destination', folder, '--ignore-scripts']
  try {
    await promisify(execFile)('npm', args, { cwd: folder, env: { ...env }, timeout: DOWNLOAD_MS_MAX })
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    const reason =
      stderr.split('\n').find((line) => /^npm (?:error|ERR!) (?!code )/.test(line)) ?? message.split('\n')[0]
    throw new Failure(`npm could not fetch ${name} ${version}: ${reason}`, {
      remedy: 'Install Node 24 or newer, and run the command with it. Then nothing is fetched.',
      cause: error,
    })
  }
  const file = (await readdir(folder)).find((one) => one.endsWith('.tgz'))
  if (file === undefined) throw new Failure(`npm fetched ${name} ${version} and left no file in ${folder}.`)
  return join(folder, file)
}

async function requireIntegrity({ name, version, integrity }: PinnedNode, file: string): Promise<void> {
  const hash = createHash(HASH)
  await pipeline(createReadStream(file), hash)
  if (`${HASH}-${hash.digest('base64')}` === integrity) return
  throw new Failure(`The file of ${name} ${version} that npm fetched has another hash than this program expects.`, {
    remedy: 'It was not used. Check the registry that npm uses here: npm config get registry',
  })
}

/** A system may lack a library that it needs. */
async function requireStarting(program: string, { name, version }: PinnedNode): Promise<void> {
  try {
    await promisify(execFile)(program, ['--version'], { timeout: START_MS_MAX })
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    const reason = (stderr.trim() || message).split('\n')[0]
    throw new Failure(`${name} ${version}, which npm fetched, does not start here: ${reason}.`, {
      remedy: 'Install Node 24 or newer, and run the command with it. Then nothing is fetched.',
      cause: error,
    })
  }
}

async function extractProgram(file: string, to: string): Promise<void> {
  const tar = extract()
  let is_found = false
  tar.on('entry', (header, stream, next) => {
    if (header.name !== PROGRAM) {
      stream.once('end', next)
      stream.resume()
      return
    }
    is_found = true
    pipeline(stream, createWriteStream(to)).then(() => next(), next)
  })
  await pipeline(createReadStream(file), createGunzip(), tar)
  if (!is_found) throw new Failure(`The package of Node has no file ${PROGRAM}.`)
}
