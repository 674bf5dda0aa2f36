// What a run leaves in the kernel: mounts in its folder, loop devices of files there, control groups, and the networks of its
// platforms. Control groups and networks are named after a hash of their platform's data folder (runner/drivers/process/host.ts,
// runner/network/block.ts), and those of containers after the container. So they are found by the folders of the run.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ownerOfNamespace } from '../../src/runner/network/addresses.ts'
import { listBlocks, macOf, ownerOf } from '../../src/runner/network/block.ts'
import { removeNetworks } from '../../src/runner/network/removal.ts'
import { markIn, namesIn } from './run.ts'

const NAMESPACES = '/run/netns'
/** Levels of folders in that of a run at which data folders and containers lie. */
const DEPTH_MAX = 6
const FOLDERS_MAX = 50_000
/** They contain many folders, and no data folder. */
const PASSED_OVER = new Set(['node_modules', 'builds', 'overlay', 'overlay2', 'compile-cache'])
const CONTAINER_ID = /^[0-9a-f]{64}$/
/** Levels below the root of a hierarchy at which engines make groups. */
const GROUP_DEPTH_MAX = 4
/** The alias of an interface that a test makes in the network of the machine. */
const ALIAS_PREFIX = 'muster-test '

/** All folders in that of a run, itself included. */
export function foldersIn(folder: string): string[] {
  const found = [folder]
  const depths = new Map([[folder, 0]])
  for (let index = 0; index < found.length && found.length < FOLDERS_MAX; index++) {
    const parent = found[index]!
    const depth = depths.get(parent)! + 1
    if (depth > DEPTH_MAX) continue
    for (const name of subfoldersOf(parent)) {
      if (PASSED_OVER.has(name)) continue
      const path = join(parent, name)
      depths.set(path, depth)
      found.push(path)
    }
  }
  return found
}

/** Names of the control groups that platforms with these data folders have, and of those of containers in them. */
export function groupNames(data_dirs: readonly string[]): string[] {
  return data_dirs.flatMap((data_dir) => {
    const name = basename(data_dir)
    return CONTAINER_ID.test(name) ? [name] : [`muster-${hash('sha256', data_dir).slice(0, 16)}`]
  })
}

/** Removes control groups without processes. Returns the paths. */
export function removeGroups(names: readonly string[]): string[] {
  const wanted = new Set(names)
  const isWanted = (name: string): boolean => wanted.has(name) || wanted.has(/[0-9a-f]{64}/.exec(name)?.[0] ?? '')
  return hierarchies().flatMap((root) => {
    const found = groupsBelow(root, GROUP_DEPTH_MAX).filter((path) => isWanted(basename(path)))
    return found.filter((path) => removeGroup(path))
  })
}

function hierarchies(): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return lines.filter((line) => / - cgroup2? /.test(line)).flatMap((line) => line.split(' ')[4] ?? [])
}

function groupsBelow(path: string, levels: number): string[] {
  if (levels === 0) return []
  return subfoldersOf(path).flatMap((name) => [join(path, name), ...groupsBelow(join(path, name), levels - 1)])
}

/** With the groups below it. False: it is gone, or a process is in it. */
function removeGroup(path: string): boolean {
  for (const name of subfoldersOf(path)) removeGroup(join(path, name))
  try {
    rmdirSync(path)
    return true
  } catch {
    return false
  }
}

/** Unmounts what is mounted in the folder. Returns the places. */
export function unmount(folder: string): string[] {
  const lines = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const places = lines.flatMap((line) => line.split(' ')[1] ?? []).filter((place) => place.startsWith(`${folder}/`))
  // A mount may lie in another one, which is older.
  return places.reverse().filter((place) => didRun('umount', ['--lazy', place]))
}

/** Detaches loop devices whose file is, or was, in the folder. Returns them. */
export function detachLoops(folder: string): string[] {
  return namesIn('/sys/block').flatMap((name) => {
    const file = name.startsWith('loop') ? readIfThere(`/sys/block/${name}/loop/backing_file`) : ''
    return file.startsWith(`${folder}/`) && didRun('losetup', ['--detach', `/dev/${name}`]) ? [`/dev/${name}`] : []
  })
}

/** Removes the blocks, namespaces and tables of platforms with these data folders. Returns what was removed. */
export async function removePlatformNetworks(data_dirs: readonly string[]): Promise<string[]> {
  if (process.getuid?.() !== 0 || !didRun('ip', ['-V'])) return []
  const removed: string[] = []
  const macs = new Set((await listBlocks()).map(({ mac }) => mac))
  for (const data_dir of data_dirs.filter((path) => macs.has(macOf(path)))) {
    const removal = await removeNetworks(data_dir)
    if ('living' in removal) throw new Error(`lobbies of ${data_dir} still run: ${removal.living.join(' ')}`)
    removed.push(...removal.removed)
  }
  // The namespaces of a platform that ran in a network of its own, which is gone with its block.
  const owners = new Set(data_dirs.map(ownerOf))
  for (const name of namesIn(NAMESPACES)) {
    if (owners.has(ownerOfNamespace(name) ?? '') && removeNamespace(name)) removed.push(`network ${name}`)
  }
  return removed
}

/** Marks an interface in the network of the machine as one of this run. */
export function markLink(name: string, mark: string): void {
  execFileSync('ip', ['link', 'set', 'dev', name, 'alias', `${ALIAS_PREFIX}${mark}`], { stdio: 'pipe' })
}

function markedLinks(): { name: string; mark: string }[] {
  return namesIn('/sys/class/net').flatMap((name) => {
    const mark = markIn(readIfThere(`/sys/class/net/${name}/ifalias`).trim(), ALIAS_PREFIX)
    return mark === null ? [] : [{ name, mark }]
  })
}

function markedNamespaces(): { name: string; mark: string }[] {
  return namesIn(NAMESPACES).flatMap((name) => {
    const mark = markIn(name)
    return mark === null ? [] : [{ name, mark }]
  })
}

export function marksOfNetworks(): string[] {
  return [...markedLinks(), ...markedNamespaces()].map(({ mark }) => mark)
}

/** Processes in the namespaces of a run. */
export function pidsInNamespaces(mark: string): number[] {
  return markedNamespaces()
    .filter((one) => one.mark === mark)
    .flatMap(({ name }) => outputOf('ip', ['netns', 'pids', name]).split('\n').filter(Boolean).map(Number))
}

export function removeMarkedNetworks(mark: string): string[] {
  const spaces = markedNamespaces().filter((one) => one.mark === mark && removeNamespace(one.name))
  const links = markedLinks().filter((one) => one.mark === mark && didRun('ip', ['link', 'del', one.name]))
  return [...spaces.map(({ name }) => `network ${name}`), ...links.map(({ name }) => `interface ${name}`)]
}

const removeNamespace = (name: string): boolean => didRun('ip', ['netns', 'del', name])

function subfoldersOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
  } catch {
    return []
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function didRun(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function outputOf(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return ''
  }
}
