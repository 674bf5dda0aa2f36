// What a version's author should know of its `https` ports: without a certificate for the hosts of lobbies a port is reached
// only at its `url`, the path route of the main domain. Where certificates come from files or from a proxy in front of the
// edge, this role cannot see them, and warns of nothing.
import { type ErrorDetail, PORT_PROTOCOL_DEFAULT, type VersionConfig } from '@musterhost/contract'
import { lobbyWildcard } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'

/** Paths are those within the config. */
export async function findHostWarnings(ctx: Context, config: VersionConfig): Promise<ErrorDetail[]> {
  const ports = httpsPorts(config)
  if (ports.length === 0) return []
  const regions = await regionsWithout(ctx)
  if (regions.length === 0) return []
  const remedy =
    ctx.config.acme?.dns?.domains.includes('job') === true
      ? 'Its order by DNS-01 has not succeeded yet.'
      : 'The operator can have it ordered by DNS-01 (docs/https.md).'
  return ports.map(({ path, name }) => ({
    path,
    reason: 'url_only',
    message:
      `Players reach the https port ${name} only at its \`url\`, not at its \`host\`: the platform has no certificate for ` +
      `the hosts of lobbies in ${regions.join(', ')}. ${remedy}`,
  }))
}

function httpsPorts({ matchmaker }: VersionConfig): { path: string[]; name: string }[] {
  if (matchmaker === undefined) return []
  const blocks = [
    { path: ['matchmaker', 'docker'], docker: matchmaker.docker },
    ...Object.entries(matchmaker.game_modes).map(([name, { docker }]) => ({
      ...{ path: ['matchmaker', 'game_modes', name, 'docker'], docker },
    })),
  ]
  return blocks.flatMap(({ path, docker }) =>
    Object.entries(docker?.ports ?? {})
      .filter(([, { protocol = PORT_PROTOCOL_DEFAULT }]) => protocol === 'https')
      .map(([name]) => ({ path: [...path, 'ports', name], name })),
  )
}

/** Regions whose lobbies have no certificate now, as far as this role can know. */
async function regionsWithout({ config, db, now }: Context): Promise<string[]> {
  if (config.acme === null || config.certificates_dir !== null) return []
  const wildcards = new Map(config.regions.map(({ name }) => [name, lobbyWildcard(config.domains, name)]))
  const rows = await db
    .selectFrom('certificates')
    .select('host')
    .where('host', 'in', [...wildcards.values()])
    .where('chain', 'is not', null)
    .where('expire_ts', '>', new Date(now()))
    .execute()
  const certified = new Set(rows.map(({ host }) => host))
  return [...wildcards].filter(([, wildcard]) => !certified.has(wildcard)).map(([region]) => region)
}
