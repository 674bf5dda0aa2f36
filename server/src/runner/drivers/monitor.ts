// The monitor: the process that the runner starts for a lobby, and that waits for the lobby in the runner's stead. It is
// a small shell script that joins control groups, waits until it is told which lobby it is for, writes down who it is,
// and becomes either bubblewrap or, without it, a second script that does the same little: write the child's pid, wait,
// write the exit code. It has its own session, and once it has a lobby it holds nothing that ends with the runner.
//
// To join a control group takes the kernel 10 to 20 ms, for which a player would wait: so monitors are started ahead
// (monitors.ts). One that has no lobby ends with the runner.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fchownSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { isGone } from '../../procfs.ts'
import { ARGS_FD, STATUS_FD } from './bubblewrap.ts'
import { launchedPath, statusPath } from './lobby-folder.ts'

/** Between the runner and a monitor, in both directions: the folder of the lobby in, a line when it is launched out. */
const CONTROL_FD = 3
/** Where the arguments are until the control channel is let go. */
const NEXT_ARGS_FD = 5

/** $@: the files of the groups to join. Without a runner, or a lobby, it ends. */
const SPARE = `
for file; do echo $$ >"$file" || exit 125; done
read -r folder <&${CONTROL_FD} || exit 0
. "$folder/launch"
exit 125
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
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}\n`)
  return Buffer.from(`unset PWD OLDPWD SHLVL\n${lines.join('')}`)
}

export type Monitor = { child: ChildProcess; control: Socket }

/** Starts a monitor without a lobby. `inherited` is of inheritedFds. Its failure shows in what is made of it. */
export function startMonitor(cgroup_files: readonly string[], inherited: readonly number[]): Monitor {
  const nothing = openSync('/dev/null', 'r')
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'ignore', 'ignore', 'pipe']
  for (let fd = CONTROL_FD + 1; fd <= Math.max(0, ...inherited); fd++) {
    // 'ignore' leaves a number above 2 as it is.
    stdio.push(inherited.includes(fd) ? nothing : 'ignore')
  }
  try {
    const child = spawn('/bin/sh', ['-c', SPARE, 'sh', ...cgroup_files], {
      detached: true,
      cwd: '/',
      env: MONITOR_ENV,
      stdio,
    })
    const control = child.stdio[CONTROL_FD] as Socket
    // It is the exit that tells. A socket that breaks, and a spawn that fails, must only not be thrown.
    control.on('error', () => undefined)
    child.on('error', () => undefined)
    // Neither keeps this process alive.
    child.unref()
    control.unref()
    return { child, control }
  } finally {
    closeSync(nothing)
  }
}

export type LaunchSpec = {
  folder: string
  /** What becomes of the monitor: bubblewrap and its program, or plainCommand. */
  command: readonly string[]
  /** What it finds at ARGS_FD. Holds secrets. */
  args: Buffer
  /** Named pipes that are there and held open. */
  output: { stdout: string; stderr: string }
  working_folder: string
  uid: number | null
}

/** Gives the monitor its lobby. Resolves when it is what it is to become; throws when it has ended before. */
export async function launch({ child, control }: Monitor, spec: LaunchSpec): Promise<void> {
  // The monitor opens this process's own file, which has no name in any folder.
  const args = openSecret(join(spec.folder, 'args'), spec.args, spec.uid)
  try {
    writeFileSync(join(spec.folder, 'launch'), scriptOf(spec, `/proc/${process.pid}/fd/${args}`), { mode: 0o600 })
    const ended = new AbortController()
    const onEnd = (): void => ended.abort()
    child.once('exit', onEnd)
    child.once('error', onEnd)
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) onEnd()
    try {
      control.ref()
      const told = once(control, 'data', { signal: ended.signal })
      control.write(`${spec.folder}\n`)
      await told
    } catch (error) {
      throw new Error('The monitor of a lobby could not be started.', { cause: error })
    } finally {
      child.off('exit', onEnd)
      child.off('error', onEnd)
    }
    control.destroy()
  } finally {
    closeSync(args)
  }
}

function scriptOf(spec: LaunchSpec, args_path: string): string {
  const { stdout, stderr } = spec.output
  return [
    `exec </dev/null 1<>${quote(stdout)} 2<>${quote(stderr)} ${STATUS_FD}>${quote(statusPath(spec.folder))} ${NEXT_ARGS_FD}<${args_path}`,
    `cd ${quote(spec.working_folder)} || exit 125`,
    `read -r line </proc/self/stat && echo "$line" >${quote(launchedPath(spec.folder))} || exit 125`,
    `echo launched >&${CONTROL_FD}`,
    `exec ${ARGS_FD}<&${NEXT_ARGS_FD} ${NEXT_ARGS_FD}<&-`,
    `exec ${spec.command.map(quote).join(' ')}`,
    '',
  ].join('\n')
}

function quote(text: string): string {
  if (text.includes('\0')) throw new Error('A text for a shell holds a NUL.')
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * Files that this process was started with and would hand on to every lobby: whoever started the platform left them
 * open. Node marks all that it opens itself as not to be inherited.
 */
export function inheritedFds(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > CONTROL_FD && isInherited(fd))
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
