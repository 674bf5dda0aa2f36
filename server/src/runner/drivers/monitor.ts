// The monitor: the process that the runner starts for a lobby, and that waits for the lobby in the runner's stead. It is
// a small shell script that writes down who it is, joins the lobby's control groups, and becomes either bubblewrap or,
// without it, a second script that does the same little: write the child's pid, wait, write the exit code. It has its
// own session, and holds nothing that ends with the runner.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, fchownSync, openSync, readdirSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { ARGS_FD, STATUS_FD } from './bubblewrap.ts'
import { launchedPath, statusPath } from './lobby-folder.ts'
import { isGone } from './procfs.ts'

/** $1: where to write the line of /proc/PID/stat. Then the files of groups to join, `--`, and what to become. */
const LAUNCH = `
read -r line </proc/self/stat && echo "$line" >"$1" || exit 125
shift
while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done
shift
exec "$@"
`

/** Starts "$@" and waits for it. Lets go of the lobby's output, so that its end is the end of the lobby. */
const WAIT = `
"$@" ${STATUS_FD}>&- &
app=$!
exec ${ARGS_FD}<&-
echo "{ \\"child-pid\\": $app }" >&${STATUS_FD}
exec >/dev/null 2>&1
wait $app
echo "{ \\"exit-code\\": $? }" >&${STATUS_FD}
`

/** Takes the environment, which is a script of exports, from the file descriptor and becomes the program. */
const WITH_ENVIRONMENT = `. /dev/fd/${ARGS_FD} && exec ${ARGS_FD}<&- && exec "$@"`

/** O_CLOEXEC, the same on all machines that Node has Linux builds for. */
const CLOSE_ON_EXEC = 0o2000000n

/** Its own environment: nothing of the platform's, and nothing of the lobby's that could change how it works. */
export const MONITOR_ENV = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' } as const

/** Becomes another user for good. Empty where lobbies run as the platform's user. */
export function asUser(uid: number | null): string[] {
  if (uid === null) return []
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups', '--no-new-privs', '--']
}

/** The command line of a monitor without bubblewrap. The id names it in the host's list of processes. */
export function plainCommand(lobby_id: string, uid: number | null, program: readonly string[]): string[] {
  return ['/bin/sh', '-c', WAIT, lobby_id, ...asUser(uid), '/bin/sh', '-c', WITH_ENVIRONMENT, 'sh', ...program]
}

/** The environment as a script; values are quoted whole. Throws when a value holds a NUL. */
export function exportsOf(env: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(env).map(([name, value]) => {
    if (value.includes('\0')) throw new Error('A value holds a NUL.')
    return `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`
  })
  return Buffer.from(`unset PWD OLDPWD SHLVL\n${lines.join('')}`)
}

export type MonitorSpec = {
  folder: string
  /** What becomes of the monitor: bubblewrap and its program, or plainCommand. */
  command: readonly string[]
  /** What it finds at ARGS_FD. Holds secrets. */
  args: Buffer
  cgroup_files: readonly string[]
  output: { stdout: number; stderr: number }
  working_folder: string
  uid: number | null
  /** Of inheritedFds. */
  inherited: readonly number[]
}

/**
 * Files that this process was started with and would hand on to every lobby: whoever started the platform left them
 * open. Node marks all that it opens itself as not to be inherited.
 */
export function inheritedFds(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > STATUS_FD && isInherited(fd))
}

function isInherited(fd: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags !== undefined && (BigInt(`0o${flags}`) & CLOSE_ON_EXEC) === 0n
  } catch (error) {
    // The one by which the folder was read.
    if (isGone(error)) return false
    throw error
  }
}

/** Resolves when the process is there. Throws the system's error when it is not (EAGAIN, ENOMEM). */
export async function startMonitor(spec: MonitorSpec): Promise<ChildProcess> {
  const status = openSync(statusPath(spec.folder), 'wx', 0o600)
  const nothing = openSync('/dev/null', 'r')
  const args = openSecret(join(spec.folder, 'args'), spec.args, spec.uid)
  const stdio: (number | 'ignore')[] = ['ignore', spec.output.stdout, spec.output.stderr, args, status]
  for (let fd = STATUS_FD + 1; fd <= Math.max(0, ...spec.inherited); fd++) {
    // 'ignore' leaves a number above 2 as it is.
    stdio.push(spec.inherited.includes(fd) ? nothing : 'ignore')
  }
  try {
    const child = spawn(
      '/bin/sh',
      ['-c', LAUNCH, 'sh', launchedPath(spec.folder), ...spec.cgroup_files, '--', ...spec.command],
      {
        detached: true,
        cwd: spec.working_folder,
        env: MONITOR_ENV,
        stdio,
      },
    )
    const started = Promise.withResolvers<void>()
    child.once('spawn', started.resolve)
    child.once('error', started.reject)
    await started.promise
    child.unref()
    return child
  } finally {
    for (const fd of [status, args, nothing]) closeSync(fd)
  }
}

/** An open file with this content and no name: whole before anybody reads it, gone when the last reader is. */
function openSecret(path: string, content: Buffer, uid: number | null): number {
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  // The shell that reads the plain environment opens it again as the lobby's user.
  if (uid !== null) fchownSync(fd, uid, uid)
  // At a position: the child shares the file's offset and must begin at its start.
  for (let written = 0; written < content.length; )
    written += writeSync(fd, content, written, content.length - written, written)
  return fd
}
