// Probes and measures while a game has a status page.
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { measurePages } from './measure.ts'
import { createProbes } from './probes.ts'

/** Between two probes. A minute has six. */
const PROBE_EVERY_MS = 10_000

export type StatusWork = { close: () => Promise<void> }

export function startWork(ctx: Context, every_ms = PROBE_EVERY_MS): StatusWork {
  const probes = createProbes(ctx)
  const measurer = createPoller(ctx, {
    async run() {
      if (await measurePages(ctx, probes)) await ctx.listener.notify(CHANNELS.status_pages)
    },
    failure: 'the minutes of status pages cannot be measured; trying again',
  })
  // Apart from the measuring: a query of it may hang while the database is away.
  async function probe(): Promise<void> {
    const page_count = await probes.probe()
    if (page_count !== null && page_count > 0) measurer.wake()
  }
  const timer = setInterval(() => void probe(), every_ms)
  void probe()
  return {
    async close() {
      clearInterval(timer)
      await measurer.close()
    },
  }
}
