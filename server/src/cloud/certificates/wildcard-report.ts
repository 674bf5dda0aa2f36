// What the operator sees of wildcard certificates: numbers for Prometheus, and a warning in the health of the api.
import type { Context } from '../../context.ts'

/** `names`: those that are ordered, one for each region and one for the sites; none without DNS-01. */
export function reportWildcards({ db, metrics, health, now }: Context, names: readonly string[]): void {
  const read = async () => {
    if (names.length === 0) return []
    return db.selectFrom('certificates').select(['host', 'expire_ts', 'error']).where('host', 'in', names).execute()
  }

  metrics.gauge(
    'wildcard_certificate_seconds',
    'How long a wildcard certificate that is ordered by DNS-01 is still valid; 0: there is none.',
    ['name'],
    async (set) => {
      const rows = new Map((await read()).map((row) => [row.host, row]))
      for (const name of names) {
        const expire_ms = rows.get(name)?.expire_ts?.getTime() ?? 0
        set(Math.max(0, expire_ms - now()) / 1_000, name)
      }
    },
  )
  health.warns('wildcard_certificates', async () => {
    const failed = (await read()).filter((row) => row.error !== null)
    if (failed.length === 0) return null
    return failed.map(({ host, error }) => `the certificate for ${host} could not be ordered: ${error}`).join('; ')
  })
}
