// The start of a run: its pipes, its limits, its file, and the monitor that becomes the lobby.
import type { ChildProcess } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { ProcessId } from '../../../node/procfs.ts'
import type { LoggerClient } from '../../logs/logger-client.ts'
import type { Exit, Handle, RunSpec } from '../driver.ts'
import type { Machine } from '../inspect.ts'
import { readHandle, writeRunFile } from '../lobby-folder.ts'
import type { Host } from './host.ts'
import { lobbyCommand } from './lobby-command.ts'
import { launch } from './monitor.ts'
import type { SpareMonitors } from './spare-monitors.ts'

/** What this process knows of a run beyond its folder. `child` is null when the monitor is not a child of this process. */
export type ActiveRun = {
  facts: { group: string | null; uid: number | null }
  handle: Handle | null
  child: ChildProcess | null
  exit: Promise<Exit> | null
  /** Null until it was looked up and found. */
  program: ProcessId | null
  kept_pipes: number[]
}

export function newRun(facts: ActiveRun['facts'], handle: Handle | null = null): ActiveRun {
  return { facts, handle, child: null, exit: null, program: null, kept_pipes: [] }
}

export function isUnreaped(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

type Means = {
  host: Host
  machine: Machine
  sandbox: Handle['sandbox']
  logger: LoggerClient
  monitors: SpareMonitors
  onEnd: ((lobby_id: string) => void) | undefined
}

/** `folder`: that of the lobby. `program`: found, with its arguments. `input`: the path of its input, if it gets one. */
type Start = { folder: string; spec: RunSpec; program: readonly string[]; input: string }

/**
 * Launches the monitor, and notes in `run` what has to be released. Resolves when the lobby has a process. Rejects after its
 * monitor was ended.
 */
export async function launchRun(
  { host, machine, sandbox, logger, monitors, onEnd }: Means,
  { folder, spec, program, input: input_path }: Start,
  run: ActiveRun,
): Promise<Handle> {
  const { uid } = run.facts
  const monitor = await monitors.take(host.disks?.bytesFor(spec.tier) ?? null, run.facts)
  const { group } = run.facts
  const output = logger.openPipes(spec.lobby_id, uid)
  run.kept_pipes = output.kept
  // A terminal without input has one that never ends.
  const input = spec.has_input || spec.has_terminal ? input_path : null
  try {
    if (input !== null) logger.makePipe(input, uid)
    if (group !== null) machine.cgroups?.limit(group, spec.tier)
    const stop_signal = spec.image?.stop_signal
    writeRunFile(folder, {
      ...{ boot_id: machine.boot_id, sandbox, uid, group, network: spec.network ?? null },
      ...(stop_signal !== undefined && { stop_signal }),
      ...(spec.has_terminal && { has_terminal: true }),
    })
    const groups = group === null ? [] : (machine.cgroups?.views(group) ?? [])
    const disk = host.disks?.prepare(monitor.child.pid!, spec.image ? spec.build_folder : null, uid) ?? null
    const plan = lobbyCommand(host, folder, spec, program, { uid, groups, disk })
    const files = host.bubblewrap === null ? [] : (spec.files ?? []).map(({ content }) => Buffer.from(content))
    await launch(monitor, { folder, input, output: output.paths, uid, files, ...plan })
    run.child = monitor.child
    monitor.child.once('exit', () => onEnd?.(spec.lobby_id))
    // The monitor may have ended between its report of the launch and this line.
    if (!isUnreaped(monitor.child)) onEnd?.(spec.lobby_id)
    const handle = readHandle(folder, spec.lobby_id)
    if (handle === null) throw new Error('The monitor of a lobby did not write its process id.')
    return handle
  } catch (error) {
    monitor.child.kill('SIGKILL')
    throw error
  } finally {
    // The lobby has opened the pipes by now. Until then the open ends kept the logger from taking them for finished.
    closeSync(output.stdout)
    closeSync(output.stderr)
  }
}
