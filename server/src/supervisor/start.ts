// `muster start`: one command runs the whole platform on this machine. It takes the data folder, starts the embedded
// PostgreSQL unless DATABASE_URL names another, and the four roles, each as a process of its own; it starts again what
// dies, and stops everything in the reverse order. It holds no state: killed, it is replaced by its next start, which
// finds PostgreSQL and the lobbies where they are.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONFIG_EXIT_CODE, type Config, ConfigError, readConfig } from '../config/config.ts'
import { StartError, startSentence } from '../start-error.ts'
import { collectStartGarbage } from '../start-garbage.ts'
import { type Part, startPlatform } from './platform.ts'
import { listenForStop, type StopHow } from './signals.ts'
import { createTerminal, type Terminal } from './terminal.ts'

/** After everything has been stopped, what the event loop may take to empty. */
const EMPTY_LOOP_MS_MAX = 3_000

/** The life of `muster start`, from the first line to the last. Sets `process.exitCode`; the event loop then empties. */
export async function supervise(env: NodeJS.ProcessEnv): Promise<void> {
  const begin_ms = performance.now()
  const elapsed = () => performance.now()
  // Who reads us may go away, as `| head` does: that must not end the platform.
  process.stdout.on('error', () => {})
  const terminal = createTerminal(process.stdout, env)
  terminal.title(`Muster ${version()}`)
  let config: Config
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    terminal.line(error.message)
    process.exitCode = CONFIG_EXIT_CODE
    return
  }

  const parts: Part[] = []
  const force = (): void => {
    process.exitCode = 1
    for (const part of parts) part.kill?.()
  }
  const wish = listenForStop({ env, terminal, elapsed, force })
  let isFailed = false
  try {
    await startPlatform({ env, config, terminal, parts, signal: wish.signal, now: Date.now, elapsed })
    terminal.line(`ready in ${((elapsed() - begin_ms) / 1_000).toFixed(1)} s. Ctrl-C ends everything.`)
    collectStartGarbage()
  } catch (error) {
    // A start that is broken off by Ctrl-C fails somewhere, and that is no news.
    isFailed = !wish.signal.aborted
    if (isFailed) explain(terminal, error, config)
  }
  if (isFailed) {
    process.exitCode = 1
    await stopParts(terminal, parts, { end_lobbies: false })
  } else {
    const how = await wish.how
    // The terminal has written ^C where it was.
    terminal.line('')
    const step = terminal.step('stopping')
    await stopParts(terminal, parts, how)
    step.done(how.end_lobbies ? 'everything has ended' : 'lobbies that run are left to the next start')
  }
  wish.close()
  setTimeout(() => lastResort(terminal), EMPTY_LOOP_MS_MAX).unref()
}

/** Every part in turn, the last started first. One that fails to stop does not keep the others. */
async function stopParts(terminal: Terminal, parts: Part[], how: StopHow): Promise<void> {
  for (const part of parts.toReversed()) {
    try {
      await part.stop(how)
    } catch (error) {
      process.exitCode = 1
      terminal.warn('stopping', error instanceof Error ? error.message : String(error))
    }
  }
}

function explain(terminal: Terminal, error: unknown, config: Config): void {
  terminal.line('')
  for (const line of startSentence(error, config).split('\n')) terminal.line(`  ${line}`)
  if (!(error instanceof StartError))
    terminal.line(`  More about it may be in ${join(config.data_dir, 'logs', 'supervisor.log')}.`)
}

function version(): string {
  const { version } = JSON.parse(
    readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
  ) as { version: string }
  return version
}

function lastResort(terminal: Terminal): void {
  terminal.warn('stopping', `cut off; still open: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit(1)
}
