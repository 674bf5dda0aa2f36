// Waits until another process has written something. A notification wakes the wait; a poll covers a lost notification.
import { setTimeout as delay } from 'node:timers/promises'
import type { Listener } from './listen.ts'

/** One long poll: below the minute at which proxies give up. */
const WAIT_MS_MAX = 40_000

export type LongPoll = {
  /**
   * Calls `read` at once, at every notification about one of the `keys`, and every `poll_ms`, until it returns something.
   * Returns null after 40 s, when the caller is gone, or when the process ends; `busy` when too many callers wait already.
   * `isGone` is called after each read, and at once when `gone` is aborted.
   */
  until: <T>(
    keys: readonly string[],
    read: () => Promise<T | null>,
    isGone: () => boolean,
    gone?: AbortSignal,
  ) => Promise<T | null | 'busy'>
  /** Ends all waiting calls. */
  close: () => void
}

/** The payload of a notification is its key; an empty one is about all keys. */
export function createLongPoll(
  ctx: { listener: Pick<Listener, 'on'> },
  {
    channel,
    poll_ms: look_ms,
    waiting_max,
  }: { channel: Parameters<Listener['on']>[0]; poll_ms: number; waiting_max: number },
): LongPoll {
  const closing = new AbortController()
  const waiting = new Map<string, Set<() => void>>()
  let waiting_count = 0
  const unsubscribe = ctx.listener.on(channel, (woken) => {
    const woken_sets = woken === '' ? [...waiting.values()] : [waiting.get(woken) ?? []]
    for (const wakes of woken_sets) for (const wake of wakes) wake()
  })

  async function pause(woken: Promise<void>): Promise<void> {
    const over = new AbortController()
    const signal = AbortSignal.any([over.signal, closing.signal])
    // Its timer must not outlive the wait; that it was cut short is no fault.
    const slept = delay(look_ms, undefined, { signal }).catch(() => {})
    await Promise.race([woken, slept])
    over.abort()
  }

  return {
    async until(keys, read, isGone, gone) {
      if (waiting_count >= waiting_max) return 'busy'
      waiting_count++
      let wakeUp = (): void => {}
      const wake = (): void => wakeUp()
      for (const key of keys) waiting.set(key, (waiting.get(key) ?? new Set()).add(wake))
      gone?.addEventListener('abort', wake)
      try {
        const end_ms = performance.now() + WAIT_MS_MAX
        for (;;) {
          // Before the read, so that a notification right after it is not missed.
          const { promise, resolve } = Promise.withResolvers<void>()
          wakeUp = resolve
          const found = await read()
          if (found !== null || closing.signal.aborted || isGone() || performance.now() >= end_ms) return found
          await pause(promise)
        }
      } finally {
        waiting_count--
        gone?.removeEventListener('abort', wake)
        for (const key of keys) {
          const wakes = waiting.get(key)
          wakes?.delete(wake)
          if (wakes?.size === 0) waiting.delete(key)
        }
      }
    },
    close() {
      unsubscribe()
      closing.abort()
    },
  }
}
