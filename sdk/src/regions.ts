// Measures the latency from the browser to the regions of the game. A page that does not need it does not load it.
import type { CallOptions, ClientOptions } from './browser.ts'
import { retrying, send, siteOf } from './request.ts'

/** Round-trip times in milliseconds, by region. Send them as `latencies_ms` of `find` or `create`. */
export type Latencies = Record<string, number>

type Region = { region_id: string; ping_addresses?: { url: string }[] }

/** All of a measurement, with the request for the regions. */
const MEASURING_MS_MAX = 2_000
/** Measurements at each address; the best counts. */
const SAMPLES = 3

/**
 * Measures all regions at once: the best of three at each address, in 2 s at most. A region has the latency of its slowest
 * address, because a lobby may be behind any of them. A region that has no address, or that did not respond in time, is left
 * out. Throws a MusterError when the platform refuses the list of regions.
 */
export async function measureRegions(options: ClientOptions & CallOptions = {}): Promise<Latencies> {
  const { signal } = options
  signal?.throwIfAborted()
  const end = new AbortController()
  const abort = () => end.abort()
  const timer = setTimeout(abort, MEASURING_MS_MAX)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    const latencies = await measure(await listRegions(options, end.signal), end.signal)
    signal?.throwIfAborted()
    return latencies
  } catch (error) {
    if (!end.signal.aborted) throw error
    signal?.throwIfAborted()
    return {}
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

async function listRegions(options: ClientOptions, signal: AbortSignal): Promise<Region[]> {
  const { token } = options
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const body = await retrying(async () => {
    const site = await siteOf(options, signal)
    return send(`${site.matchmaker_url}/matchmaker/regions`, { headers, signal })
  }, signal)
  return (body as { regions: Region[] }).regions
}

async function measure(regions: Region[], signal: AbortSignal): Promise<Latencies> {
  const urls = new Set(regions.flatMap(({ ping_addresses = [] }) => ping_addresses.map(({ url }) => url)))
  const pings = new Map<string, number>()
  await Promise.all(Array.from(urls, (url) => ping(url, signal, (ms) => pings.set(url, ms))))
  const latencies: Latencies = {}
  for (const { region_id, ping_addresses = [] } of regions) {
    const measured = ping_addresses.flatMap(({ url }) => pings.get(url) ?? [])
    if (measured.length > 0) latencies[region_id] = Math.max(...measured)
  }
  return latencies
}

/** Calls `onBest` with each best measurement so far. The first request opens the connection, and does not count. */
async function ping(url: string, signal: AbortSignal, onBest: (ms: number) => void): Promise<void> {
  const request: RequestInit = { signal, cache: 'no-store', credentials: 'omit' }
  let best_ms = Number.POSITIVE_INFINITY
  try {
    for (let count = 0; count <= SAMPLES; count++) {
      const begin_ms = performance.now()
      const response = await fetch(url, request)
      if (!response.ok) return
      await response.arrayBuffer()
      if (count === 0) continue
      best_ms = Math.min(best_ms, performance.now() - begin_ms)
      onBest(Math.round(best_ms))
    }
  } catch {
    // The time is over, or the address does not respond: what was measured before counts.
  }
}
