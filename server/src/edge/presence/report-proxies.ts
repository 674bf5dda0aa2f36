// Reports a proxy that the operator has not named: in the log, in the health of the edge, and in the database for the hub.
import { UnnamedProxies, unnamedProxySentence } from '../../addresses/unnamed-proxies.ts'
import type { Context } from '../../context.ts'

/** The health of the edge warns for so long after a proxy was seen, as the hub does. */
const WARNED_MS = 60 * 60_000
const UPDATE_SQL = 'update edges set unnamed_proxy = $1, unnamed_proxy_ts = now() where node_id = $2 and process = $3'

export function reportUnnamedProxies(ctx: Context): UnnamedProxies {
  const { pool, log, health, config } = ctx
  let last: { address: string; seen_ms: number } | null = null
  health.warns('unnamed_proxies', () => {
    const is_fresh = last !== null && ctx.elapsed() - last.seen_ms < WARNED_MS
    return last !== null && is_fresh ? unnamedProxySentence(last.address) : null
  })
  return new UnnamedProxies(ctx.elapsed, (address) => {
    last = { address, seen_ms: ctx.elapsed() }
    log.warn({ address }, unnamedProxySentence(address))
    pool.query(UPDATE_SQL, [address, config.node_id, config.process.number]).catch((error: unknown) => {
      log.warn({ err: error }, 'an unnamed proxy could not be written; it is reported again in ten minutes')
    })
  })
}
