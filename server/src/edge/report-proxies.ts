// Reports a proxy that the operator has not named: in the log, in the health of the edge, and in the database for the hub.
import { UnnamedProxies, unnamedProxies, unnamedProxySentence } from '../addresses/unnamed-proxies.ts'
import type { Context } from '../context.ts'

const UPDATE_SQL = 'update edges set unnamed_proxy = $1, unnamed_proxy_ts = now() where node_id = $2'

export function reportUnnamedProxies(ctx: Context): UnnamedProxies {
  const { pool, log, health, config } = ctx
  health.warns('unnamed_proxies', async () => {
    const [last] = await unnamedProxies(pool)
    return last === undefined ? null : unnamedProxySentence(last.address)
  })
  return new UnnamedProxies(ctx.elapsed, (address) => {
    log.warn({ address }, unnamedProxySentence(address))
    pool.query(UPDATE_SQL, [address, config.node_id]).catch((error: unknown) => {
      log.warn({ err: error }, 'an unnamed proxy could not be written; it is reported again in ten minutes')
    })
  })
}
