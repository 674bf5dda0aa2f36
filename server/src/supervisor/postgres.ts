// The embedded PostgreSQL, kept alive: when it dies it is started again at the same address, and the roles find it there
// by themselves. States: starting -> running -> died -> (a delay) -> starting..., stopping -> stopped.
import type { Logger } from 'pino'
import { type Embedded, type Exit, startEmbedded } from '../database/embedded/embedded.ts'
import { createRestartPolicy, restartPhrase } from './restart.ts'
import type { Terminal } from './terminal.ts'

const WHO = 'PostgreSQL'

export type KeptPostgres = {
  url: string
  /** From its death until it is back: what the roles say meanwhile is no news. */
  isDown(): boolean
  /** Resolves when it has ended. A second call waits for the first. */
  stop(): Promise<void>
}

/** Rejects when it cannot be started the first time. */
export async function keepPostgres(options: {
  data_dir: string
  log: Logger
  terminal: Terminal
  /** Milliseconds of a clock that only runs forward. */
  elapsed: () => number
}): Promise<KeptPostgres> {
  const { data_dir, log, terminal, elapsed } = options
  const policy = createRestartPolicy()
  const stopping = new AbortController()
  const first = await startEmbedded({ data_dir, log })
  let last = first
  let isDown = false

  const keep = async (): Promise<void> => {
    let running: Embedded | null = first
    let start_ms = elapsed()
    while (!stopping.signal.aborted) {
      const how =
        running === null ? 'did not start' : describe(await Promise.race([running.exited, aborted(stopping.signal)]))
      if (stopping.signal.aborted) return
      isDown = true
      const restart = policy.died(elapsed() - start_ms)
      terminal.warn(WHO, `${how}; starting it again ${restartPhrase(restart)}`)
      await delay(restart.delay_ms, stopping.signal)
      if (stopping.signal.aborted) return
      start_ms = elapsed()
      running = await startEmbedded({ data_dir, log }).catch((error: unknown) => {
        log.error({ err: error }, 'PostgreSQL could not be started again.')
        return null
      })
      if (running === null) continue
      last = running
      isDown = false
      terminal.say(`${WHO} is back.`)
    }
  }
  const kept = keep()

  let stopped: Promise<void> | null = null
  return {
    url: first.url,
    isDown: () => isDown,
    stop() {
      stopping.abort()
      // A start under way is waited for: what it started would be left behind otherwise.
      stopped ??= kept.then(() => last.stop())
      return stopped
    },
  }
}

function describe(exit: Exit | undefined): string {
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
