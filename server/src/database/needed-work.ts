// Work that is needed only while a table has certain rows. Without them, the process listens to a channel: no timer runs, and the
// code of the work is not loaded.
import type { Logger } from 'pino'
import type { Listener } from './listen.ts'
import { createPoller } from './poller.ts'

type NeededWorkOptions<Work> = {
  /** Where a row that is made, changed or deleted is announced. */
  channel: Parameters<Listener['on']>[0]
  isNeeded: () => Promise<boolean>
  /** Loads the code of the work, and starts it. */
  start: () => Promise<Work>
  /** Called after each read, while the work is needed. */
  onRead?: (work: Work) => void | Promise<void>
  /** What the log says of a read that failed. It is repeated in time. */
  failure: string
  retry_ms: number
}

type NeededWork = {
  /** Resolves when the rows were read for the first time. */
  first_read: Promise<void>
  close: () => Promise<void>
}

/** The first read follows when the channel is listened to. */
export function startNeededWork<Work extends { close: () => Promise<void> }>(
  ctx: { listener: Pick<Listener, 'on'>; log: Logger },
  { channel, isNeeded, start, onRead = () => undefined, failure, retry_ms }: NeededWorkOptions<Work>,
): NeededWork {
  let work: Work | null = null
  const first = Promise.withResolvers<void>()
  const poller = createPoller(ctx, {
    async run() {
      if (await isNeeded()) {
        work ??= await start()
        await onRead(work)
      } else {
        await work?.close()
        work = null
      }
      first.resolve()
    },
    failure,
    retry_ms,
  })
  const unsubscribe = ctx.listener.on(channel, poller.wake)
  return {
    first_read: first.promise,
    async close() {
      unsubscribe()
      await poller.close()
      await work?.close()
    },
  }
}
