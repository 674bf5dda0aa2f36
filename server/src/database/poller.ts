// Reads what another role writes: at each notification, and at an interval in case a notification was lost. Reads never
// overlap; a notification during one is followed by another.
import type { Logger } from 'pino'
import type { Listener } from './listen.ts'

export type PollerOptions = {
  look: () => Promise<void>
  /** What the log says of a look that failed. It is made again in time. */
  failure: string
  /** When a look that failed is made again. Absent: with the next one. */
  retry_ms?: number
}

export type Poller = {
  /** There may be something to see. Cheap, and never waits. */
  wake: () => void
  /** The look that is under way, and those that follow it at once; null: none. */
  looking: () => Promise<void> | null
  /** No further look begins. Resolves when none is under way. */
  close: () => Promise<void>
}

export type Watch = Omit<Poller, 'wake'>

/** Looks whenever it is woken. */
export function createPoller({ log }: { log: Logger }, { look, failure, retry_ms }: PollerOptions): Poller {
  let is_closed = false
  let is_due = false
  let looking: Promise<void> | null = null
  let retry: NodeJS.Timeout | undefined

  async function lookAll(): Promise<void> {
    while (is_due && !is_closed) {
      is_due = false
      try {
        await look()
      } catch (error) {
        log.warn({ err: error }, failure)
        clearTimeout(retry)
        if (retry_ms !== undefined && !is_closed) retry = setTimeout(wake, retry_ms)
      }
    }
    looking = null
  }

  function wake(): void {
    is_due = true
    if (!is_closed) looking ??= lookAll()
  }

  return {
    wake,
    looking: () => looking,
    async close() {
      is_closed = true
      clearTimeout(retry)
      await looking
    },
  }
}

/** Reads at once, and at the interval. */
export function watchEvery(ctx: { log: Logger }, every_ms: number, look: PollerOptions): Poller {
  const looks = createPoller(ctx, look)
  const timer = setInterval(looks.wake, every_ms)
  looks.wake()
  return {
    ...looks,
    close() {
      clearInterval(timer)
      return looks.close()
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
  const looks = watchEvery(ctx, options.every_ms, options)
  const unsubscribe = ctx.listener.on(channel, (payload) => {
    if (concerns(payload)) looks.wake()
  })
  return {
    wake: looks.wake,
    looking: looks.looking,
    close() {
      unsubscribe()
      return looks.close()
    },
  }
}
