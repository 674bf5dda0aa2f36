// The embedded PostgreSQL, restarted when it dies, at the same address, where the roles reconnect to it. States: starting
// -> running -> died -> (a delay) -> starting..., stopping -> stopped.
import type { Logger } from 'pino'
import { type Embedded, type ProcessExit, startEmbedded } from '../database/embedded/embedded.ts'
import { createRestartPolicy, restartPhrase } from './restart.ts'
import type { SupervisorTerminal } from './terminal.ts'

const WHO = 'PostgreSQL'

export type SupervisedPostgres = {
  url: string
  /** True from its death until it runs again. Meanwhile warnings of the roles are expected. */
  isDown(): boolean
  /** Resolves when it has ended. A second call waits for the first. */
  stop(): Promise<void>
}

/** Rejects when the first start fails. */
export async function supervisePostgres(options: {
  data_dir: string
  log: Logger
  terminal: SupervisorTerminal
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number
}): Promise<SupervisedPostgres> {
  const { data_dir, log, terminal, elapsed } = options
  const policy = createRestartPolicy()
  const stopping = new AbortController()
  const first = await startEmbedded({ data_dir, log })
  let last = first
  let is_down = false

  const supervise = async (): Promise<void> => {
    let running: Embedded | null = first
    let start_ms = elapsed()
    while (!stopping.signal.aborted) {
      const how =
        running === null ? 'did not start' : describe(await Promise.race([running.exited, aborted(stopping.signal)]))
      if (stopping.signal.aborted) return
      is_down = true
      const restart = policy.died(elapsed() - start_ms)
      terminal.warn(WHO, `${how}; starting it again ${restartPhrase(restart)}`)
      await delay(restart.delay_ms, stopping.signal)
      if (stopping.signal.aborted) return
      start_ms = elapsed()
      running = await startEmbedded({ data_dir, log }).catch((error: unknown) => {
        log.error({ err: error }, 'PostgreSQL could not be restarted; retrying')
        return null
      })
      if (running === null) continue
      last = running
      is_down = false
      terminal.say(`${WHO} is back.`)
    }
  }
  const supervised = supervise()

  let stopped: Promise<void> | null = null
  return {
    url: first.url,
    isDown: () => is_down,
    stop() {
      stopping.abort()
      // Waits for a start that is under way, whose processes would otherwise remain.
      stopped ??= supervised.then(() => last.stop())
      return stopped
    },
  }
}

function describe(exit: ProcessExit | undefined): string {
  if (!exit) return 'has ended'
  return exit.signal ? `was ended by ${exit.signal}` : `ended with code ${exit.code}`
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** Resolves after the delay, or at once when the signal is aborted. */
async function delay(delay_ms: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, delay_ms)
  })
  await Promise.race([passed, aborted(signal)])
  clearTimeout(timer)
}
