// Collects and delivers notices while there is a target. Every process of the api role does: the row of the reader and the
// leases of the targets decide which of them collects, and which sends to a target.
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { newId } from '../../ids.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { collectNotices } from './collect.ts'
import {
  claimTargets,
  DELIVERY_TIMES,
  type Delivery,
  deliverTarget,
  nextDueMs,
  TARGETS_AT_ONCE_MAX,
} from './deliver.ts'
import { createSend } from './send.ts'

/** Between two passes of the collector. Deploys and changes of nodes wake it at once. */
const COLLECT_EVERY_MS = 5_000
const RETRY_MS = 5_000
/** The longest sleep of the sender: what another process leaves is found after this. */
const SEND_EVERY_MS = 30_000
const SEND_PAUSE_MS_MIN = 50

export type NoticeWork = { wake: () => void; close: () => Promise<void> }

export function startNoticeWork(ctx: Context): NoticeWork {
  const closing = new AbortController()
  const sender = startSender({
    ...{ ctx, send: createSend(ctx) },
    ...{ owner: newId(ctx.now()), times: DELIVERY_TIMES, signal: closing.signal },
  })
  const collector = createPoller(ctx, {
    async run() {
      if ((await collectNotices(ctx)) === 'collected') sender.wake()
    },
    failure: 'notices cannot be collected; trying again',
    retry_ms: RETRY_MS,
  })
  const timer = setInterval(collector.wake, COLLECT_EVERY_MS)
  const subscriptions = [CHANNELS.namespaces, CHANNELS.nodes].map((channel) => ctx.listener.on(channel, collector.wake))
  return {
    wake() {
      collector.wake()
      sender.wake()
    },
    async close() {
      clearInterval(timer)
      for (const unsubscribe of subscriptions) unsubscribe()
      await collector.close()
      closing.abort()
      await sender.close()
    },
  }
}

type Sender = { wake: () => void; close: () => Promise<void> }

export function startSender(delivery: Delivery): Sender {
  const running = new Map<string, Promise<void>>()
  let timer: NodeJS.Timeout | undefined
  const poller = createPoller(delivery.ctx, {
    async run() {
      clearTimeout(timer)
      const claimed = await claimTargets(delivery, TARGETS_AT_ONCE_MAX - running.size)
      for (const target of claimed) {
        const work = deliverTarget(delivery, target)
          .catch((error: unknown) =>
            delivery.ctx.log.warn(
              { err: error, target_id: target.target_id },
              'notices cannot be delivered; trying again',
            ),
          )
          .finally(() => {
            running.delete(target.target_id)
            poller.wake()
          })
        running.set(target.target_id, work)
      }
      const due_ms = await nextDueMs(delivery)
      if (due_ms === null || delivery.signal.aborted) return
      timer = setTimeout(poller.wake, Math.min(SEND_EVERY_MS, Math.max(SEND_PAUSE_MS_MIN, due_ms)))
    },
    failure: 'the targets of notices cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  return {
    wake: poller.wake,
    async close() {
      await Promise.all(running.values())
      await poller.close()
      clearTimeout(timer)
    },
  }
}
