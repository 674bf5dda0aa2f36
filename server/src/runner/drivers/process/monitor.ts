// The monitor: the process that the runner starts for a lobby, and that outlives the runner to wait for the lobby's end. It
// is a small shell script that makes the lobby's disk, joins control groups, waits for the name of its lobby, and writes its
// own process id. Then it becomes bubblewrap or, without bubblewrap, a second script that does the same: write the child's
// pid, wait, write the exit code. It has its own session, and with a lobby it depends on nothing that ends with the runner.
//
// A disk takes three programs, and joining a control group takes the kernel 10 to 20 ms, for which a player would wait. So
// monitors are started ahead (spare-monitors.ts). One without a lobby ends with the runner.
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
import { quoteForShell } from '@musterhost/contract'
import { isGone, signal } from '../../../node/procfs.ts'
import { PROGRAM_ENV } from '../../program-env.ts'
import { launchedPath, statusPath } from '../lobby-folder.ts'
import { ARGS_FD, FILE_FDS, SECCOMP_FD, STATUS_FD } from './bubblewrap.ts'
import type { NewDisk } from './lobby-disk.ts'

/** The channel between the runner and a monitor. In: the folder of the lobby. Out: errors, and a line when it is ready or launched. */
const CONTROL_FD = 3
/** Holds the arguments until the control channel is closed and its number is free. */
const NEXT_ARGS_FD = 5
/** Holds the lobby's standard input while a monitor without bubblewrap starts the lobby. */
const INPUT_FD = 6

/** How long a monitor may take to make its disk and to join its groups. */
const READY_MS_MAX = 10_000
/** The end of what a monitor printed, which is kept for an error. */
const PRINTED_MAX = 1_000

/** $@: the files of the groups to join. Without a runner, or without a lobby, it ends. */
const SPARE = `
for file; do echo $$ >"$file" || exit 125; done
echo ready >&${CONTROL_FD}
read -r folder <&${CONTROL_FD} || exit 0
. "$folder/launch"
exit 125
`

/**
 * Starts "$@" and waits for it. Closes the lobby's input and output, so that the pipes end when the lobby ends. A shell gives
 * /dev/null to what it starts with `&`, so the input comes by another number.
 */
const WAIT = `
exec ${INPUT_FD}<&0
"$@" <&${INPUT_FD} ${INPUT_FD}<&- ${STATUS_FD}>&- &
app=$!
exec ${ARGS_FD}<&- ${INPUT_FD}<&- </dev/null
echo "{ \\"child-pid\\": $app }" >&${STATUS_FD}
exec >/dev/null 2>&1
wait $app
echo "{ \\"exit-code\\": $? }" >&${STATUS_FD}
`

/** Reads the environment, a script of exports, from the file descriptor and becomes the program. */
const WITH_ENVIRONMENT = `. /dev/fd/${ARGS_FD} && exec ${ARGS_FD}<&- && exec "$@"`

/**
 * The command that starts another one in a mount namespace of its own. Its mounts are in no other one. Those that the machine
 * makes or removes later are also made or removed in it: the network of its lobby may be made after it.
 */
const WITH_OWN_MOUNTS = ['unshare', '--mount', '--propagation', 'slave', '--'] as const

/** O_CLOEXEC. The same on every architecture that Node has Linux builds for. */
const CLOSE_ON_EXEC = 0o2000000n

/**
 * The command that changes the user permanently. Empty where lobbies run as the platform's user. `gid`: a group that the user is
 * in, beside its own.
 */
export function asUser(uid: number | null, gid: number | null = null): string[] {
  if (uid === null) return []
  const groups = gid === null ? ['--clear-groups'] : ['--groups', String(gid)]
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), ...groups, '--no-new-privs', '--']
}

/** The command line of a monitor without bubblewrap. The id appears in the host's list of processes. */
export function plainCommand(lobby_id: string, command: readonly string[]): string[] {
  return ['/bin/sh', '-c', WAIT, lobby_id, ...command]
}

/** The command that becomes the program with the environment of `exportsOf`. */
export function withEnvironment(program: readonly string[]): string[] {
  return ['/bin/sh', '-c', WITH_ENVIRONMENT, 'sh', ...program]
}

/** The environment as a shell script with quoted values. Throws when a value contains a NUL. */
export function exportsOf(env: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(env).map(([name, value]) => `export ${name}=${quoteForShell(value)}\n`)
  return Buffer.from(`unset PWD OLDPWD SHLVL\n${lines.join('')}`)
}

/** `ready`: resolves when it waits for its lobby. Rejects with what it printed, when it ended before. */
export type Monitor = { child: ChildProcess; control: Socket; ready: Promise<void> }

/**
 * Starts a monitor without a lobby. `inherited`: from inheritedFds. The processor time of making `disk` does not count as that of
 * the lobby.
 */
export function startMonitor(
  cgroup_files: readonly string[],
  inherited: readonly number[],
  disk: Pick<NewDisk, 'script' | 'args'> | null,
): Monitor {
  const nothing = openSync('/dev/null', 'r')
  const stdio: ('ignore' | 'pipe' | number)[] = ['ignore', 'ignore', 'ignore', 'pipe']
  for (let fd = CONTROL_FD + 1; fd <= Math.max(0, ...inherited); fd++) {
    // 'ignore' leaves a descriptor above 2 unchanged.
    stdio.push(inherited.includes(fd) ? nothing : 'ignore')
  }
  const make = disk === null ? '' : `${disk.script} || exit 125\nshift ${disk.args.length}`
  const script = ['-c', `exec 2>&${CONTROL_FD}\n${make}${SPARE}`, 'sh', ...(disk?.args ?? []), ...cgroup_files]
  const [program, ...args] = disk === null ? ['/bin/sh', ...script] : [...WITH_OWN_MOUNTS, '/bin/sh', ...script]
  try {
    const child = spawn(program!, args, { detached: true, cwd: '/', env: PROGRAM_ENV, stdio })
    const control = child.stdio[CONTROL_FD] as Socket
    // The exit reports every failure. These listeners only keep a broken socket or a failed spawn from throwing.
    control.on('error', () => undefined)
    child.on('error', () => undefined)
    const ready = readinessOf(child, control)
    // A monitor that is being made keeps this process alive, so that a caller may wait for it. One that waits for its lobby does not.
    const release = (): void => {
      child.unref()
      control.unref()
    }
    ready.then(release, release)
    return { child, control, ready }
  } finally {
    closeSync(nothing)
  }
}

function readinessOf(child: ChildProcess, control: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let printed = ''
    const late = setTimeout(() => killGroup(child), READY_MS_MAX).unref()
    const settle = (): void => {
      clearTimeout(late)
      control.off('data', onData)
      child.off('close', onEnd)
      child.off('error', onEnd)
    }
    const onData = (part: Buffer): void => {
      printed = `${printed}${part}`.slice(-PRINTED_MAX)
      if (!printed.endsWith('ready\n')) return
      settle()
      resolve()
    }
    const onEnd = (): void => {
      settle()
      reject(new Error(`The monitor of a lobby could not be started: ${printed.trim() || 'it ended'}`))
    }
    control.on('data', onData)
    child.once('close', onEnd)
    child.once('error', onEnd)
  })
}

/** Ends a monitor and the programs that it has started. */
function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) signal(-pid, 'SIGKILL')
}

export type LaunchSpec = {
  folder: string
  /** Lines of shell that the monitor runs first. Their errors are in the lobby's log. */
  script: readonly string[]
  /** What the monitor becomes: bubblewrap and its program, or plainCommand. */
  command: readonly string[]
  /** The content of ARGS_FD. It contains secrets. */
  args: Buffer
  /** An existing named pipe; null: the standard input is /dev/null. */
  input: string | null
  /** Existing named pipes that the caller keeps open. */
  output: { stdout: string; stderr: string }
  /** The contents of FILE_FDS. They may contain secrets. */
  files: readonly Buffer[]
  /** The file of SECCOMP_FD; null: it stays closed. */
  seccomp: string | null
  working_folder: string
  uid: number | null
}

/** Gives the monitor its lobby. Resolves when it has become the command; throws when it ended before. */
export async function launch({ child, control }: Monitor, spec: LaunchSpec): Promise<void> {
  // The monitor opens this process's descriptors, because the files have no name in any folder.
  const open = [NEXT_ARGS_FD, ...FILE_FDS.slice(0, spec.files.length)]
  const secrets: number[] = []
  try {
    for (const content of [spec.args, ...spec.files]) {
      secrets.push(openSecret(join(spec.folder, 'args'), content, spec.uid))
    }
    const redirections = open.map((fd, index) => `${fd}</proc/${process.pid}/fd/${secrets[index]}`)
    writeFileSync(join(spec.folder, 'launch'), scriptOf(spec, redirections), { mode: 0o600 })
    const ended = new AbortController()
    const onEnd = (): void => ended.abort()
    child.once('exit', onEnd)
    child.once('error', onEnd)
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) onEnd()
    try {
      control.ref()
      const launched = once(control, 'data', { signal: ended.signal })
      control.write(`${spec.folder}\n`)
      await launched
    } catch (error) {
      throw new Error('The monitor of a lobby could not be started.', { cause: error })
    } finally {
      child.off('exit', onEnd)
      child.off('error', onEnd)
    }
    control.destroy()
  } finally {
    for (const fd of secrets) closeSync(fd)
  }
}

/** `secrets`: how the shell opens the arguments and the files. */
function scriptOf(spec: LaunchSpec, secrets: readonly string[]): string {
  const { stdout, stderr } = spec.output
  const input = spec.input === null ? '</dev/null' : `0<>${quoteForShell(spec.input)}`
  return [
    `exec ${input} 1<>${quoteForShell(stdout)} 2<>${quoteForShell(stderr)} ${STATUS_FD}>${quoteForShell(statusPath(spec.folder))} ${secrets.join(' ')}`,
    `cd ${quoteForShell(spec.working_folder)} || exit 125`,
    `read -r line </proc/self/stat && echo "$line" >${quoteForShell(launchedPath(spec.folder))} || exit 125`,
    `echo launched >&${CONTROL_FD}`,
    `exec ${ARGS_FD}<&${NEXT_ARGS_FD} ${NEXT_ARGS_FD}<&-`,
    ...(spec.seccomp === null ? [] : [`exec ${SECCOMP_FD}<${quoteForShell(spec.seccomp)}`]),
    ...spec.script,
    `exec ${spec.command.map(quoteForShell).join(' ')}`,
    '',
  ].join('\n')
}

/**
 * File descriptors that this process inherited and would pass on to every lobby. Node marks every file that it opens itself
 * as close-on-exec.
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
    // The descriptor by which the folder was read is closed by now.
    if (isGone(error)) return false
    throw error
  }
}

/** An open file with this content and no name: complete before the first read, and gone with the last reader. */
function openSecret(path: string, content: Buffer, uid: number | null): number {
  const fd = openSync(path, 'wx+', 0o600)
  unlinkSync(path)
  // Without bubblewrap, a shell opens it again as the lobby's user to read the environment.
  if (uid !== null) fchownSync(fd, uid, uid)
  // Written at explicit positions: the child shares the file's offset and must begin at its start.
  for (let written = 0; written < content.length; ) {
    written += writeSync(fd, content, written, content.length - written, written)
  }
  return fd
}
