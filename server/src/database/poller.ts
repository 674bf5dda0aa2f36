// Reads what another role writes: at each notification, and at an interval in case a notification was lost. Reads never
// overlap; a notification during one is followed by another.
import type { Logger } from 'pino'
import type { Listener } from './listen.ts'

export type PollerOptions = {
  run: () => Promise<void>
  /** What the log says of a run that failed. It is repeated in time. */
  failure: string
  /** Pause before a failed run is repeated. Absent: the next run is soon enough. */
  retry_ms?: number
}

export type Poller = {
  /** There may be something to see. Cheap, and never waits. */
  wake: () => void
  /** The run that is under way, and those that follow it at once; null: none. */
  running: () => Promise<void> | null
  /** No further run begins. Resolves when none is under way. */
  close: () => Promise<void>
}

export type Watch = Omit<Poller, 'wake'>

/** Runs whenever it is woken. */
export function createPoller({ log }: { log: Logger }, { run, failure, retry_ms }: PollerOptions): Poller {
  let is_closed = false
  let is_due = false
  let running: Promise<void> | null = null
  let retry: NodeJS.Timeout | undefined

  async function runAll(): Promise<void> {
    while (is_due && !is_closed) {
      is_due = false
      try {
        await run()
      } catch (error) {
        log.warn({ err: error }, failure)
        clearTimeout(retry)
        if (retry_ms !== undefined && !is_closed) retry = setTimeout(wake, retry_ms)
      }
    }
    running = null
  }

  function wake(): void {
    is_due = true
    if (!is_closed) running ??= runAll()
  }

  return {
    wake,
    running: () => running,
    async close() {
      is_closed = true
      clearTimeout(retry)
      await running
    },
  }
}

/** Reads at once, and at the interval. */
export function watchEvery(ctx: { log: Logger }, every_ms: number, options: PollerOptions): Poller {
  const poller = createPoller(ctx, options)
  const timer = setInterval(poller.wake, every_ms)
  poller.wake()
  return {
    ...poller,
    close() {
      clearInterval(timer)
      return poller.close()
    },
  }
}

/** Reads at once, at the interval, and at each notification on the channel; `concerns` filters by the payload. */
export function watchChannel(
  ctx: { listener: Pick<Listener, 'on'>; log: Logger },
  options: PollerOptions & {
    channel: Parameters<Listener['on']>[0]
    concerns?: (payload: string) => boolean
    every_ms: number
  },
): Poller {
  const { channel, concerns = () => true } = options
  const poller = watchEvery(ctx, options.every_ms, options)
  const unsubscribe = ctx.listener.on(channel, (payload) => {
    if (concerns(payload)) poller.wake()
  })
  return {
    wake: poller.wake,
    running: poller.running,
    close() {
      unsubscribe()
      return poller.close()
    },
  }
}
