// `muster start` and `muster join`. A start runs the whole platform on this machine, or the node that has joined another
// one (start-joined.ts). It locks the data folder, starts the embedded PostgreSQL unless
// DATABASE_URL names another, and starts the four roles as separate processes. It restarts parts that die, and stops all
// in the reverse order. It keeps no state: after a kill, the next start takes over PostgreSQL and the lobbies.
import { join as joinPath } from 'node:path'
import type { Config } from '../config/config.ts'
import { CONFIG_EXIT_CODE, ConfigError, readConfig } from '../config/read-config.ts'
import { StartError, startSentence } from '../config/start-error.ts'
import { collectStartGarbage } from '../node/start-garbage.ts'
import { platformVersion } from '../wire/platform-version.ts'
import { hasJoined } from './folders.ts'
import { type JoinInvitation, startJoined } from './start-joined.ts'
import { startPlatform } from './start-platform.ts'
import type { StartedPart } from './started-part.ts'
import { listenForStop, type StopHow } from './stop-request.ts'
import { SupervisorTerminal } from './terminal.ts'
import { type Replacement, replaceProgram } from './upgrade/replace-program.ts'
import { takeUpgradeRequest } from './upgrade/request.ts'
import { readWayBack, recordFailure, removeWayBack, wayBackFile } from './upgrade/way-back.ts'

/** Time in which the event loop must become empty after everything was stopped. Then the process exits. */
const EMPTY_LOOP_MS_MAX = 3_000

/**
 * Runs `muster start` from the first line to the last, or `muster join` with `join`. Sets `process.exitCode`; the event loop
 * then becomes empty.
 */
export async function supervise(env: NodeJS.ProcessEnv, join: JoinInvitation | null = null): Promise<void> {
  const begin_ms = performance.now()
  const elapsed = () => performance.now()
  // A reader of the output may close the pipe, as `| head` does. That must not end the platform.
  process.stdout.on('error', () => {})
  const terminal = new SupervisorTerminal(process.stdout, env)
  terminal.title(`Muster ${platformVersion()}`)
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    terminal.line(error.message)
    process.exitCode = CONFIG_EXIT_CODE
    return
  }

  const parts: StartedPart[] = []
  const force = (): void => {
    process.exitCode = 1
    for (const part of parts) part.kill?.()
  }
  const request = listenForStop({ env, terminal, elapsed, force })
  let has_failed = false
  try {
    const { signal, stop } = request
    const start = { env, config, terminal, parts, signal, stop, now: Date.now, elapsed }
    const has_joined = join !== null || hasJoined(config.data_dir)
    const running = has_joined ? await startJoined(start, join) : await startPlatform(start)
    const { data_dir } = config
    restartOnSignal({ env, data_dir, terminal, parts, running, now: Date.now }, request.signal)
    removeWayBack(wayBackFile(data_dir))
    const { lock, program, refusal } = running
    lock.record({ program: { ...program, is_ready: true, has_joined }, refusal })
    terminal.line(`ready in ${((elapsed() - begin_ms) / 1_000).toFixed(1)} s. Ctrl-C ends everything.`)
    collectStartGarbage()
  } catch (error) {
    // A start that Ctrl-C interrupted fails too, and that is not reported.
    has_failed = !request.signal.aborted
    if (has_failed) {
      explain(terminal, error, config)
      // Its invitation is used, and may be refused with a warning of a thief.
      if (join !== null && hasJoined(config.data_dir)) {
        terminal.line('  This data folder has joined a platform already. Continue its node with: muster start')
      }
      await leadBack(terminal, parts, { config, error })
    }
  }
  removeWayBack(wayBackFile(config.data_dir))
  if (has_failed) {
    process.exitCode = 1
    await stopParts(terminal, parts, { end_lobbies: false })
  } else {
    const how = await request.how
    // The terminal has echoed ^C into the current line.
    terminal.line('')
    const step = terminal.step('stopping')
    await stopParts(terminal, parts, how)
    step.done(how.end_lobbies ? 'everything has ended' : 'running lobbies are left to the next start')
  }
  request.close()
  setTimeout(() => forceExit(terminal), EMPTY_LOOP_MS_MAX).unref()
}

/** Where this program is the next one of an upgrade: all roles run on, and the program before continues with them. */
async function leadBack(
  terminal: SupervisorTerminal,
  parts: readonly StartedPart[],
  { config, error }: { config: Config; error: unknown },
): Promise<void> {
  const file = wayBackFile(config.data_dir)
  if (readWayBack(file) === null) return
  recordFailure(file, startSentence(error, config))
  for (const part of parts) {
    const staying = part.stay?.(joinPath(config.data_dir, 'logs'))
    await staying?.catch((reason: unknown) => terminal.warn('upgrade', messageOf(reason)))
  }
  // guard.ts replaces this program at the exit of the process.
  process.exit(1)
}

/**
 * SIGUSR2 restarts the roles one after the other, with the program as it is on disk now. The database and the lobbies run on.
 * With a request for an upgrade, this process changes to another program. A signal during a restart leads to one more restart
 * after it.
 */
function restartOnSignal(replacement: Replacement, stop: AbortSignal): void {
  const { data_dir, terminal } = replacement
  let is_restarting = false
  let is_due = false
  const restart = async (): Promise<void> => {
    const request = takeUpgradeRequest(data_dir)
    if (request === null) await restartParts(replacement, stop)
    else await replaceProgram(replacement, request)
  }
  process.on('SIGUSR2', async () => {
    is_due = true
    if (is_restarting) return
    is_restarting = true
    while (is_due && !stop.aborted) {
      is_due = false
      await restart().catch((error: unknown) => terminal.warn('restart', messageOf(error)))
    }
    is_restarting = false
  })
}

async function restartParts({ terminal, parts }: Replacement, stop: AbortSignal): Promise<void> {
  terminal.say('restarting the roles; players stay connected.')
  for (const part of parts) {
    if (stop.aborted) break
    await part.restart?.()?.catch((error: unknown) => terminal.warn('restart', messageOf(error)))
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Stops one part after the other, the last started first. A failure does not prevent the others from stopping. */
async function stopParts(terminal: SupervisorTerminal, parts: StartedPart[], how: StopHow): Promise<void> {
  for (const part of parts.toReversed()) {
    try {
      await part.stop(how)
    } catch (error) {
      process.exitCode = 1
      terminal.warn('stopping', error instanceof Error ? error.message : String(error))
    }
  }
}

function explain(terminal: SupervisorTerminal, error: unknown, config: Config): void {
  terminal.line('')
  for (const line of startSentence(error, config).split('\n')) terminal.line(`  ${line}`)
  if (!(error instanceof StartError)) {
    terminal.line(`  Details may be in ${joinPath(config.data_dir, 'logs', 'supervisor.log')}.`)
  }
}

function forceExit(terminal: SupervisorTerminal): void {
  terminal.warn('stopping', `forced to exit; still open: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit(1)
}
