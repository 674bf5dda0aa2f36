// Prepares the machine before the first lobby: the folders of the driver and the files that every lobby sees. Also finds
// out whether bubblewrap works here and whether limits can be set.
//
//   <data>/builds/                 unpacked builds, readable for the lobbies' users
//   <data>/lobbies/<lobby id>/     lobby-folder.ts
//   <data>/lobbies/.platform/      files of the platform
import { hash } from 'node:crypto'
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../../../config/config.ts'
import { StartError } from '../../../config/start-error.ts'
import { platformFolder } from '../../folders/names.ts'
import type { LobbyNetworks, NetworkOptions } from '../../network/lobby-networks.ts'
import { openNetworks, resolverText } from '../../network/open-networks.ts'
import { PROGRAM_ENV } from '../../program-env.ts'
import { type Cgroups, openCgroups } from '../cgroups.ts'
import type { Tier } from '../driver.ts'
import { seccompFilter } from '../seccomp.ts'
import { UID_FIRST } from '../uids.ts'
import { bubblewrapArgs, bubblewrapCommand, GROUP, type HostFiles, PASSWD, probe } from './bubblewrap.ts'
import { probeDisk } from './disk-probe.ts'
import { Disks } from './lobby-disk.ts'
import { asUser } from './monitor.ts'

export type Host = {
  builds_folder: string
  lobbies_folder: string
  /** A folder that contains only the platform's programs. */
  programs_folder: string
  files: HostFiles
  /** Null: lobbies run without a sandbox. */
  bubblewrap: { disable_userns: boolean } | null
  /** Null: writable folders are in memory, and the roots of container images are read-only. */
  disks: Disks | null
  /** Null: lobbies run without limits. */
  cgroups: Cgroups | null
  /** Whether every lobby gets a uid of its own. */
  gives_uids: boolean
  /** Null: lobbies share the network of this machine. */
  networks: LobbyNetworks | null
}

export type HostOptions = {
  data_dir: string
  sandbox: Config['sandbox']
  log: Logger
  /** Null: lobbies share the network of this machine. */
  network: NetworkOptions | null
}

const PROBE_ID = '00000000-0000-0000-0000-000000000000'
const PROBE_TIER: Tier = { cpu_cores: 1, memory_bytes: 2 ** 30, pids_max: 64, tmp_bytes: 2 ** 20, disk_bytes: 2 ** 20 }

/**
 * Logs once what this machine cannot do. Throws a StartError where lobbies cannot run at all, and where bubblewrap is
 * required and does not work.
 */
export async function prepareHost({ data_dir, sandbox, log, network }: HostOptions): Promise<Host> {
  if (process.platform !== 'linux') {
    throw new StartError('Lobbies run on Linux only. Run the runner role on a Linux machine or in a container.')
  }
  const builds_folder = resolve(data_dir, 'builds')
  const lobbies_folder = resolve(data_dir, 'lobbies')
  const own_folder = platformFolder(lobbies_folder)
  const programs_folder = join(own_folder, 'bin')
  // Other users may open paths that they know below these folders, and cannot list them.
  for (const folder of [builds_folder, lobbies_folder, own_folder, programs_folder]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o711)
  }
  const files: HostFiles = {
    node: process.execPath,
    passwd: join(own_folder, 'passwd'),
    group: join(own_folder, 'group'),
    resolver: join(own_folder, 'resolv.conf'),
    seccomp: null,
  }
  const filter = seccompFilter()
  if (filter !== null) {
    files.seccomp = join(own_folder, 'seccomp')
    writeFileSync(files.seccomp, filter, { mode: 0o644 })
  }
  writeFileSync(files.passwd, PASSWD, { mode: 0o644 })
  writeFileSync(files.group, GROUP, { mode: 0o644 })
  const node_link = join(programs_folder, 'node')
  if (lstatSync(node_link, { throwIfNoEntry: false }) !== undefined) rmSync(node_link)
  symlinkSync(process.execPath, node_link)

  const gives_uids = process.getuid?.() === 0
  if (gives_uids && !hasProgram('setpriv')) {
    throw new StartError(
      'setpriv (of util-linux) is missing: as root the runner needs it to start lobbies as other users. Install it, or run as an ordinary user.',
    )
  }
  const found = openCgroups(`muster-${hash('sha256', resolve(data_dir)).slice(0, 16)}`)
  const cgroups = 'unavailable' in found ? null : found
  if ('unavailable' in found) {
    log.warn({ reason: found.unavailable }, 'lobbies run without limits of memory, CPU and processes')
  }

  const disks = gives_uids && sandbox !== 'off' ? await findDisks(builds_folder, own_folder, log) : null
  const host = { builds_folder, lobbies_folder, programs_folder, files, cgroups, gives_uids, disks }
  if (sandbox === 'off') {
    log.warn('lobbies run without a sandbox because of MUSTER_SANDBOX=off; run only trusted builds')
    return { ...host, bubblewrap: null, networks: null }
  }
  const tried = await tryBubblewrap(host, data_dir)
  if (!('failed' in tried)) {
    const networks = await openNetworks({ data_dir: resolve(data_dir), own_folder, sandbox, log, network })
    if (networks !== null) writeFileSync(files.resolver, resolverText(networks), { mode: 0o644 })
    return { ...host, bubblewrap: tried, networks }
  }
  if (sandbox === 'required') {
    throw new StartError(`bubblewrap is required to run lobbies and does not work here: ${tried.failed}`)
  }
  const why = hasProgram('bwrap')
    ? 'lobbies run without a sandbox because bubblewrap does not work; run only trusted builds'
    : 'lobbies run without a sandbox: run only trusted builds, or install one: sudo apt-get install bubblewrap'
  log.warn({ reason: tried.failed }, why)
  return { ...host, bubblewrap: null, networks: null }
}

async function findDisks(builds_folder: string, own_folder: string, log: Logger): Promise<Disks | null> {
  const on_disk = new Disks('file', own_folder)
  const no_file = await probeDisk(on_disk, own_folder, builds_folder)
  if (no_file === null) return on_disk
  log.warn({ reason: no_file }, 'lobbies have no disk: their writable folders are in memory, and small')
  const in_memory = new Disks('memory', own_folder)
  const no_memory = await probeDisk(in_memory, own_folder, builds_folder)
  if (no_memory === null) return in_memory
  log.warn({ reason: no_memory }, 'lobbies of container images run with a read-only root')
  return null
}

async function tryBubblewrap(
  { builds_folder, files, gives_uids }: Pick<Host, 'builds_folder' | 'files' | 'gives_uids'>,
  data_dir: string,
): Promise<{ disable_userns: boolean } | { failed: string }> {
  // Lobbies can read all of /usr.
  if (resolve(data_dir).startsWith('/usr/')) return { failed: 'the data folder lies in /usr, which lobbies can read' }
  const args = bubblewrapArgs(files, { build_folder: builds_folder, env: {}, tier: PROBE_TIER })
  let failed = ''
  // Older kernels and older versions of bubblewrap cannot forbid further user namespaces.
  for (const disable_userns of [true, false]) {
    const command = [
      ...asUser(gives_uids ? UID_FIRST : null),
      ...bubblewrapCommand(PROBE_ID, disable_userns),
      'node',
      '--version',
    ]
    const failure = await probe(command, args, files.seccomp)
    if (failure === null) return { disable_userns }
    failed = failure
  }
  return { failed }
}

function hasProgram(name: string): boolean {
  return PROGRAM_ENV.PATH.split(':').some((folder) => existsSync(join(folder, name)))
}
