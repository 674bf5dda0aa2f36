// Control groups: the limits of a lobby, the counters that show which limit ended it, and a list of its processes that no
// process can leave. Versions 1 and 2 are supported, also side by side. Where neither is writable (an ordinary user without
// delegation, most containers), lobbies run without limits, and the driver logs it once.
//
// A platform has one group, named after its data folder. Each lobby has a child group, whose name is in the lobby's
// folder. Version 1 has such a pair for each controller; cpuacct, which limits nothing, may be missing.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf, isGone, numbersOf, signal } from '../../node/procfs.ts'
import type { Tier } from './driver.ts'

const CONTROLLERS = ['memory', 'cpu', 'pids'] as const
type Controller = (typeof CONTROLLERS)[number]

/**
 * The burst allows one more period's quota, which must be saved up again afterwards (Linux 5.14 or later). A starting
 * server uses more cores than its limit for a moment. Without the burst it would be throttled while players wait.
 */
const CPU_PERIOD_US = 100_000
const US_PER_MS = 1_000
const NS_PER_MS = 1_000_000
/** Reads of a group's process list while killing it: a fork bomb forks faster than one pass kills. */
const KILL_PASSES_MAX = 20

/** Where programs look for control groups. */
const VIEW = '/sys/fs/cgroup'

/** `from`: the folder of a group. `to`: where a program of that group looks for it. */
export type GroupView = { from: string; to: string }

export type Cgroups = {
  version: 1 | 2
  /** What a program in the group should see of its own limits and use, as in a container. */
  views(group: string): GroupView[]
  /** Makes a group without limits. A process joins by writing its pid to every returned path. */
  create(group: string): string[]
  limit(group: string, tier: Tier): void
  /** How often each limit was hit; zeros when the group is gone. */
  counters(group: string): { oom_kills: number; pids_refused: number }
  /** Whether it once had all the memory that it may have; false when the group is gone. */
  hasReachedMemory(group: string): boolean
  /** Its limit of memory, and the most that it had at once, in bytes; null when not counted, or the group is gone. */
  memoryLimit(group: string): { limit: number | null; peak: number | null }
  /** Processor time of everything that ever ran in it, in ms of one core; null when not counted, or the group is gone. */
  cpuTime(group: string): number | null
  /** The most processes and threads at once so far; null when not counted, or the group is gone. */
  pidsPeak(group: string): number | null
  /** Its limit of processes and threads; null when the group is gone. */
  pidsMax(group: string): number | null
  /** Memory that counts against the limit now, without reclaimable cached files; null when the group is gone. */
  memory(group: string): number | null
  /** Sends SIGKILL to every process in it. */
  kill(group: string): void
  /** False while a process is left in it. */
  remove(group: string): boolean
  /** The names of all existing groups of lobbies. */
  list(): string[]
  /** Removes the platform's own group. False while a group is left in it. */
  close(): boolean
}

/**
 * `name`: the platform's group. Returns the reason when control groups cannot be used. `is_for_engine`: groups are made in
 * every hierarchy, because a container engine makes groups below them in every one.
 */
export function openCgroups(
  name: string,
  { is_for_engine = false }: { is_for_engine?: boolean } = {},
): Cgroups | { unavailable: string } {
  const mounts = readMounts()
  const first = findVersion2(mounts, name) ?? findVersion1(mounts, name, is_for_engine)
  return first ?? { unavailable: 'control groups are not writable here' }
}

type Mount = { folder: string; type: 'cgroup' | 'cgroup2'; options: string[] }

function readMounts(): Mount[] {
  const mounts: Mount[] = []
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [before, after] = line.split(' - ')
    const folder = before?.split(' ')[4]
    const [type, , options] = after?.split(' ') ?? []
    if (folder === undefined || (type !== 'cgroup' && type !== 'cgroup2')) continue
    mounts.push({ folder, type, options: options?.split(',') ?? [] })
  }
  return mounts
}

function findVersion1(mounts: Mount[], name: string, is_for_engine: boolean): Cgroups | null {
  const bases = {} as Record<Controller, string>
  for (const controller of CONTROLLERS) {
    const mount = mounts.find((candidate) => candidate.type === 'cgroup' && candidate.options.includes(controller))
    if (mount === undefined) return null
    bases[controller] = join(mount.folder, name)
    if (!makeGroup(bases[controller])) return null
  }
  const accounts = findAccounts(mounts, name)
  const cpuset = findCpuset(mounts, name)
  const others = is_for_engine ? mounts.map(({ folder }) => join(folder, name)).filter(makeGroup) : []
  const viewed = [...new Set([...Object.values(bases), accounts, cpuset])].filter((base) => base !== null)
  const folders = [...new Set([...viewed, ...others])]
  return {
    version: 1,
    ...groupsIn(folders),
    // A platform's group is a child of the hierarchy's root, whose name is that of the controller.
    views: (group) => viewed.map((base) => ({ from: join(base, group), to: join(VIEW, basename(dirname(base))) })),
    create(group) {
      for (const base of folders) mkdirSync(join(base, group))
      return folders.map((base) => join(base, group, 'cgroup.procs'))
    },
    limit(group, tier) {
      const memory = join(bases.memory, group)
      writeFileSync(join(memory, 'memory.limit_in_bytes'), String(tier.memory_bytes))
      writeIfThere(join(memory, 'memory.memsw.limit_in_bytes'), String(tier.memory_bytes))
      const quota_us = String(Math.round(tier.cpu_cores * CPU_PERIOD_US))
      writeFileSync(join(bases.cpu, group, 'cpu.cfs_period_us'), String(CPU_PERIOD_US))
      writeFileSync(join(bases.cpu, group, 'cpu.cfs_quota_us'), quota_us)
      writeIfThere(join(bases.cpu, group, 'cpu.cfs_burst_us'), quota_us)
      writeFileSync(join(bases.pids, group, 'pids.max'), String(tier.pids_max))
    },
    counters(group) {
      return {
        oom_kills: readCounter(join(bases.memory, group, 'memory.oom_control'), 'oom_kill'),
        pids_refused: readCounter(join(bases.pids, group, 'pids.events'), 'max'),
      }
    },
    hasReachedMemory(group) {
      const { peak, limit } = this.memoryLimit(group)
      return peak !== null && limit !== null && peak >= limit
    },
    memoryLimit: (group) => ({
      limit: numberIn(join(bases.memory, group, 'memory.limit_in_bytes')),
      peak: numberIn(join(bases.memory, group, 'memory.max_usage_in_bytes')),
    }),
    cpuTime(group) {
      const used_ns = accounts === null ? '' : readIfThere(join(accounts, group, 'cpuacct.usage'))
      return used_ns === '' ? null : Math.round(Number(used_ns) / NS_PER_MS)
    },
    pidsPeak: (group) => numberIn(join(bases.pids, group, 'pids.peak')),
    pidsMax: (group) => numberIn(join(bases.pids, group, 'pids.max')),
    memory: (group) =>
      memoryIn(join(bases.memory, group), { used: 'memory.usage_in_bytes', cached: 'total_inactive_file' }),
  }
}

/** The folder in which version 1 counts processor time. It is often that of the cpu controller. */
function findAccounts(mounts: Mount[], name: string): string | null {
  const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes('cpuacct'))
  if (mount === undefined) return null
  const folder = join(mount.folder, name)
  return makeGroup(folder) ? folder : null
}

/**
 * The folder of groups of version 1 that limit no processor: Java reads no limit of memory without one. Null where a group
 * does not get the processors of its parent.
 */
function findCpuset(mounts: Mount[], name: string): string | null {
  const mount = mounts.find(({ type, options }) => type === 'cgroup' && options.includes('cpuset'))
  if (mount === undefined) return null
  const folder = join(mount.folder, name)
  try {
    if (!makeGroup(folder)) return null
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      writeFileSync(join(folder, file), readFileSync(join(mount.folder, file)))
    }
    // Groups below it get the same.
    writeFileSync(join(folder, 'cgroup.clone_children'), '1')
    return folder
  } catch (error) {
    if (isRefusal(error)) return null
    throw error
  }
}

function findVersion2(mounts: Mount[], name: string): Cgroups | null {
  const mount = mounts.find((candidate) => candidate.type === 'cgroup2')
  if (mount === undefined) return null
  // A child of the root survives when a service manager ends the platform's own group. An ordinary user may only be
  // allowed to make groups beside its own.
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/'
  const parents = [mount.folder, ...(own === '/' ? [] : [join(mount.folder, dirname(own))])]
  const parent = parents.find((candidate) => delegate(candidate, name))
  if (parent === undefined) return null
  const base = join(parent, name)
  return {
    version: 2,
    ...groupsIn([base]),
    views: (group) => [{ from: join(base, group), to: VIEW }],
    create(group) {
      mkdirSync(join(base, group))
      return [join(base, group, 'cgroup.procs')]
    },
    limit(group, tier) {
      const folder = join(base, group)
      writeFileSync(join(folder, 'memory.max'), String(tier.memory_bytes))
      writeIfThere(join(folder, 'memory.swap.max'), '0')
      writeIfThere(join(folder, 'memory.oom.group'), '0')
      const quota_us = Math.round(tier.cpu_cores * CPU_PERIOD_US)
      writeFileSync(join(folder, 'cpu.max'), `${quota_us} ${CPU_PERIOD_US}`)
      writeIfThere(join(folder, 'cpu.max.burst'), String(quota_us))
      writeFileSync(join(folder, 'pids.max'), String(tier.pids_max))
    },
    counters(group) {
      return {
        oom_kills: readCounter(join(base, group, 'memory.events'), 'oom_kill'),
        pids_refused: readCounter(join(base, group, 'pids.events'), 'max'),
      }
    },
    memoryLimit: (group) => ({
      limit: numberIn(join(base, group, 'memory.max')),
      peak: numberIn(join(base, group, 'memory.peak')),
    }),
    hasReachedMemory: (group) => readCounter(join(base, group, 'memory.events'), 'max') > 0,
    cpuTime(group) {
      const path = join(base, group, 'cpu.stat')
      return readIfThere(path) === '' ? null : Math.round(readCounter(path, 'usage_usec') / US_PER_MS)
    },
    pidsPeak: (group) => numberIn(join(base, group, 'pids.peak')),
    pidsMax: (group) => numberIn(join(base, group, 'pids.max')),
    memory: (group) => memoryIn(join(base, group), { used: 'memory.current', cached: 'inactive_file' }),
  }
}

function numberIn(path: string): number | null {
  const text = readIfThere(path)
  return text === '' ? null : Number(text)
}

function memoryIn(folder: string, names: { used: string; cached: string }): number | null {
  const used = readIfThere(join(folder, names.used))
  if (used === '') return null
  return Math.max(0, Number(used) - readCounter(join(folder, 'memory.stat'), names.cached))
}

/** Makes a group with all controllers under `parent`. False where that is not allowed. */
function delegate(parent: string, name: string): boolean {
  const all = CONTROLLERS.map((controller) => `+${controller}`).join(' ')
  const base = join(parent, name)
  try {
    writeIfThere(join(parent, 'cgroup.subtree_control'), all)
    if (!makeGroup(base)) return false
    const there = readFileSync(join(base, 'cgroup.controllers'), 'utf8').split(/\s+/)
    if (CONTROLLERS.every((controller) => there.includes(controller))) {
      writeFileSync(join(base, 'cgroup.subtree_control'), all)
      return true
    }
    removeGroup(base)
  } catch (error) {
    if (!isRefusal(error)) throw error
  }
  return false
}

function groupsIn(folders: string[]): Pick<Cgroups, 'kill' | 'remove' | 'list' | 'close'> {
  return {
    kill(group) {
      for (const base of folders) {
        for (let pass = 0; pass < KILL_PASSES_MAX; pass++) {
          const pids = numbersOf(readIfThere(join(base, group, 'cgroup.procs')))
          if (pids.length === 0) break
          for (const pid of pids) signal(pid, 'SIGKILL')
        }
      }
    },
    // Podman leaves a group of its own below that of a lobby.
    remove(group) {
      const own = folders.map((base) => join(base, group))
      for (const folder of own) for (const name of foldersIn(folder)) removeGroup(join(folder, name))
      return own.map(removeGroup).every(Boolean)
    },
    list() {
      return [...new Set(folders.flatMap(foldersIn))]
    },
    close: () => folders.map(removeGroup).every(Boolean),
  }
}

function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** False when the group may not be made or written. */
function makeGroup(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true })
    accessSync(join(folder, 'cgroup.procs'), constants.W_OK)
    return true
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  }
}

function removeGroup(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch (error) {
    if (isGone(error)) return true
    if (codeOf(error) === 'EBUSY') return false
    throw error
  }
}

function isRefusal(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'EINVAL', 'EBUSY', 'EOPNOTSUPP'].includes(codeOf(error) ?? '')
}

/** For files that may be missing or read-only: without swap accounting, or with controllers that are enabled already. */
function writeIfThere(path: string, value: string): void {
  try {
    writeFileSync(path, value)
  } catch (error) {
    if (!isRefusal(error)) throw error
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (isGone(error) || codeOf(error) === 'ENODEV') return ''
    throw error
  }
}

function readCounter(path: string, name: string): number {
  const line = readIfThere(path)
    .split('\n')
    .find((candidate) => candidate.startsWith(`${name} `))
  return line === undefined ? 0 : Number(line.slice(name.length + 1))
}
