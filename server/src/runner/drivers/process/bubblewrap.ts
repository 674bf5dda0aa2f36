// The bubblewrap sandbox of a lobby. The lobby has its own user, pid, ipc, uts and mount namespaces. Its root contains the
// build, the platform's node and the host's programs and libraries, all read-only, and three private folders with a size
// limit: two in memory, and one on a disk of the lobby's own (lobby-disk.ts). It has no capability, no new privileges and
// no further user namespaces, and a filter of system calls (seccomp.ts). The environment is passed by a file descriptor
// (`--args`), never on the command line, which other users can read.
//
// The network is that of the process that starts bubblewrap: a namespace of the lobby's own (../network/), or the
// machine's. In the machine's network a lobby reaches every listener on loopback addresses, so builds are trusted.
//
// bubblewrap stays as the lobby's monitor, outside its namespaces, and writes the exit code into a file even when the
// runner is gone. It must not get --die-with-parent: lobbies outlive the runner.
import { execFile } from 'node:child_process'
import { lstatSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isGone } from '../../../node/procfs.ts'
import type { GroupView } from '../cgroups.ts'
import { BUILD_MOUNT, type RunSpec, SCRATCH_MOUNT, type ScratchFile } from '../driver.ts'
import { HOST_PROGRAM_FOLDERS } from '../programs/find-program.ts'
import type { LobbyDisk } from './lobby-disk.ts'

const PROGRAMS_MOUNT = '/platform/bin'
/** PATH of an image that sets none, as in container engines. */
const IMAGE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** The uid and gid of the lobby inside its user namespace. */
const INSIDE_UID = 1000
/** File descriptors of the monitor. */
export const ARGS_FD = 3
export const STATUS_FD = 4
/** The filter of system calls. */
export const SECCOMP_FD = 5
/** The files of the lobby, one each. A shell has no descriptors above 9. */
export const FILE_FDS: readonly number[] = [6, 7, 8, 9]

/** Files of /etc that programs need to find libraries, names and certificates. The lobby sees no other file of /etc. */
const HOST_ETC = [
  'ssl',
  'pki',
  'ca-certificates',
  'alternatives',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'ld-musl-x86_64.path',
  'localtime',
  'hosts',
  'nsswitch.conf',
] as const
const HOST_ROOT = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'] as const
/** Size of /sys, which has only the folders of control groups. */
const SYS_BYTES = 64 * 1024
/** Time limit of the trial run. */
const PROBE_MS_MAX = 10_000

/** $0: the filter. $@: the command. */
const PROBE = `exec "$@" ${ARGS_FD}<&0 ${STATUS_FD}>/dev/null ${SECCOMP_FD}<"$0"`

/** Made once by the driver, in a folder that no lobby can write. */
export type HostFiles = {
  node: string
  passwd: string
  group: string
  resolver: string
  /** The filter of system calls; null where there is none for this machine. */
  seccomp: string | null
}

/** The command line before the program. It contains no secret, because every user of the host can read it. */
export function bubblewrapCommand(lobby_id: string, disable_userns: boolean): string[] {
  return [
    'bwrap',
    '--unshare-user',
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    ...(disable_userns ? ['--disable-userns'] : []),
    // Shows the lobby's id in the host's list of processes.
    ...['--hostname', lobby_id],
    '--new-session',
    ...['--cap-drop', 'ALL'],
    ...['--json-status-fd', String(STATUS_FD)],
    ...['--args', String(ARGS_FD)],
    '--',
  ]
}

/** The arguments that bubblewrap reads from ARGS_FD, each ended by NUL. Throws when a value contains a NUL. */
export function bubblewrapArgs(
  files: HostFiles,
  spec: Pick<RunSpec, 'build_folder' | 'env' | 'tier' | 'files' | 'network' | 'image'> & {
    disk?: LobbyDisk | null
    groups?: readonly GroupView[]
  },
): Buffer {
  const env = { ...spec.env, PATH: pathOf(spec), HOME: SCRATCH_MOUNT, TMPDIR: '/tmp' }
  const tmpfs = (mode: string, folder: string): string[] => [
    ...['--perms', mode, '--size', String(spec.tier.tmp_bytes)],
    ...['--tmpfs', folder],
  ]
  const args = [
    ...['--uid', String(spec.image?.uid ?? INSIDE_UID), '--gid', String(spec.image?.gid ?? INSIDE_UID)],
    ...(files.seccomp === null ? [] : ['--seccomp', String(SECCOMP_FD)]),
    ...(spec.image ? imageRoot(spec) : hostRoot(files)),
    ...['--ro-bind-try', spec.network ? files.resolver : '/etc/resolv.conf', '/etc/resolv.conf'],
    ...['--proc', '/proc', '--dev', '/dev'],
    ...groupViews(spec.groups ?? []),
    ...tmpfs('1777', '/dev/shm'),
    ...tmpfs('1777', '/tmp'),
    ...(spec.disk ? ['--bind', spec.disk.scratch, SCRATCH_MOUNT] : tmpfs('0700', SCRATCH_MOUNT)),
    ...filesIn(spec.files ?? []),
    ...(spec.image ? [] : ['--ro-bind', spec.build_folder, BUILD_MOUNT]),
    ...['--remount-ro', '/dev'],
    ...(spec.image ? [] : ['--remount-ro', '/']),
    ...['--chdir', spec.image?.working_folder ?? BUILD_MOUNT],
    '--clearenv',
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
  ]
  if (args.some((arg) => arg.includes('\0'))) throw new Error('An argument contains a NUL.')
  return Buffer.from(args.map((arg) => `${arg}\0`).join(''))
}

/** The platform's own programs, and the machine's. */
function hostRoot(files: HostFiles): string[] {
  return [
    ...hostFolders(),
    ...HOST_ETC.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...['--ro-bind', files.passwd, '/etc/passwd'],
    ...['--ro-bind', files.group, '/etc/group'],
    ...['--ro-bind', files.node, join(PROGRAMS_MOUNT, 'node')],
  ]
}

/**
 * The lobby's own control groups, read-only: runtimes read their limits there, and fit their heaps to the tier. A folder in
 * memory, because the root of an image is read-only.
 */
function groupViews(views: readonly GroupView[]): string[] {
  if (views.length === 0) return ['--dir', '/sys']
  return [
    ...['--perms', '0755', '--size', String(SYS_BYTES), '--tmpfs', '/sys'],
    ...views.flatMap(({ from, to }) => ['--ro-bind-try', from, to]),
    ...['--remount-ro', '/sys'],
  ]
}

/** The image, and of the machine only how names are found. The files exist in every root (images/root-tree.ts). */
function imageRoot({ build_folder, disk }: { build_folder: string; disk?: LobbyDisk | null }): string[] {
  const root = disk?.root ? ['--bind', disk.root, '/'] : ['--ro-bind', build_folder, '/']
  return [...root, '--ro-bind-try', '/etc/hosts', '/etc/hosts']
}

export function pathOf({ env, image }: Pick<RunSpec, 'env' | 'image'>): string {
  return image ? (env.PATH ?? IMAGE_PATH) : [PROGRAMS_MOUNT, ...HOST_PROGRAM_FOLDERS].join(':')
}

function filesIn(files: readonly ScratchFile[]): string[] {
  if (files.length > FILE_FDS.length) throw new Error(`A lobby has at most ${FILE_FDS.length} files.`)
  return files.flatMap(({ path }, index) => [
    ...['--perms', '0600'],
    ...['--file', String(FILE_FDS[index]), join(SCRATCH_MOUNT, path)],
  ])
}

/** The content of /etc/passwd and /etc/group in the sandbox. */
export const PASSWD = `lobby:x:${INSIDE_UID}:${INSIDE_UID}:lobby:${SCRATCH_MOUNT}:/bin/sh\n`
export const GROUP = `lobby:x:${INSIDE_UID}:\n`

/** `/bin` and similar folders are links into `/usr` on most systems, and real folders on others. */
function hostFolders(): string[] {
  const args = ['--ro-bind', '/usr', '/usr']
  for (const name of HOST_ROOT) {
    const path = `/${name}`
    try {
      const is_link = lstatSync(path).isSymbolicLink()
      args.push(...(is_link ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]))
    } catch (error) {
      if (!isGone(error)) throw error
    }
  }
  return args
}

/**
 * Runs one program as lobbies will be run. `command`: a monitor's command line. `args`: the arguments for ARGS_FD.
 * `seccomp`: the file for SECCOMP_FD. Returns null when it works, otherwise the error text.
 */
export async function probe(command: readonly string[], args: Buffer, seccomp: string | null): Promise<string | null> {
  const [program, ...rest] = command
  const running = promisify(execFile)('/bin/sh', ['-c', PROBE, seccomp ?? '/dev/null', program ?? '', ...rest], {
    timeout: PROBE_MS_MAX,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  })
  running.child.stdin?.on('error', () => undefined)
  running.child.stdin?.end(args)
  try {
    await running
    return null
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return (stderr || String(error)).split('\n').slice(-2).join(' ')
  }
}
