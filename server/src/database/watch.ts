// Looking at what another role writes: when it says that something happened, and every so often in case the word was
// lost. One look at a time; a word that comes during one is followed by another.
import type { Logger } from 'pino'
import type { Listener } from './listen.ts'

export type Watch = {
  /** The look that is under way, and those that follow it at once; null: none. */
  looking: () => Promise<void> | null
  /** No further look begins. Resolves when none is under way. */
  close: () => Promise<void>
}

/** Begins with a look. One that fails is logged with `failure`, and made again in time. `concerns`: by the payload. */
export function watchChannel(
  ctx: { listener: Pick<Listener, 'on'>; log: Logger },
  options: {
    channel: Parameters<Listener['on']>[0]
    concerns?: (payload: string) => boolean
    every_ms: number
    look: () => Promise<void>
    failure: string
  },
): Watch {
  let is_closed = false
  let is_due = false
  let looking: Promise<void> | null = null

  async function lookAll(): Promise<void> {
    while (is_due && !is_closed) {
      is_due = false
      try {
        await options.look()
      } catch (error) {
        ctx.log.warn({ err: error }, options.failure)
      }
    }
    looking = null
  }

  function wake(): void {
    is_due = true
    if (!is_closed) looking ??= lookAll()
  }

  const { channel, concerns = () => true } = options
  const unsubscribe = ctx.listener.on(channel, (payload) => {
    if (concerns(payload)) wake()
  })
  const timer = setInterval(wake, options.every_ms)
  wake()
  return {
    looking: () => looking,
    async close() {
      is_closed = true
      clearInterval(timer)
      unsubscribe()
      await looking
    },
  }
}
