// How late the timers of this process run, which shows what blocks its event loop. Node's histogram measures the time between two
// of its own timers, which wake the process. So it runs only while metrics are read, and its interval is SAMPLE_MS: prom-client
// takes 10 ms. The interval is subtracted, so that an idle process shows no lag.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'

/** Between two samples. The samples of a process that is blocked for longer all show it. */
const SAMPLE_MS = 100
/** After this time without a scrape no sample is taken. Scrapes are usually 15 to 60 s apart. */
const UNREAD_MS_MAX = 5 * 60_000
const NS_PER_MS = 1_000_000
const NS_PER_S = 1_000_000_000
/** Between two samples of prom-client, whose gauges are replaced here. */
export const UNUSED_SAMPLE_MS = 3_600_000

/** Replaces the gauges of prom-client that have these names. Each scrape begins anew; the first one shows no lag. */
export function watchEventLoop(registry: Registry): void {
  const delays = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  let unread: NodeJS.Timeout | null = null
  const sampleOn = (): void => {
    delays.reset()
    delays.enable()
    unread ??= setTimeout(() => {
      unread = null
      delays.disable()
    }, UNREAD_MS_MAX).unref()
    unread.refresh()
  }
  const gaugeOf = (statistic: string, help: string, collect?: () => void): Gauge => {
    const name = `nodejs_eventloop_lag_${statistic}_seconds`
    registry.removeSingleMetric(name)
    return new Gauge({ name, help, registers: [registry], ...(collect && { collect }) })
  }
  // The gauges are read in the order in which they are made: the first one sets all.
  const max = gaugeOf('max', 'The longest lag of the event loop since the scrape before.', () => {
    const has_samples = delays.count > 0
    max.set(has_samples ? lagOf(delays.max) : 0)
    mean.set(has_samples ? lagOf(delays.mean) : 0)
    stddev.set(has_samples ? delays.stddev / NS_PER_S : 0)
    for (const { percent, gauge } of percentiles) gauge.set(has_samples ? lagOf(delays.percentile(percent)) : 0)
    sampleOn()
  })
  registry.removeSingleMetric('nodejs_eventloop_lag_min_seconds')
  const mean = gaugeOf('mean', 'The mean lag of the event loop.')
  const stddev = gaugeOf('stddev', 'The standard deviation of the lag of the event loop.')
  const percentiles = [50, 90, 99].map((percent) => ({
    percent,
    gauge: gaugeOf(`p${percent}`, `The ${percent}th percentile of the lag of the event loop.`),
  }))
}

function lagOf(delay_ns: number): number {
  return Math.max(0, delay_ns - SAMPLE_MS * NS_PER_MS) / NS_PER_S
}
