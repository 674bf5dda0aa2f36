// Steps that tests of custom domains take: claims through the typed client, records in a name server of their own.
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { addNamespaceDomain, getGameNamespaceById, removeNamespaceDomain } from '@musterhost/contract'
import { checkDomain } from '../../src/cloud/domains/check.ts'
import { type NameServer, startNameServer } from '../outbound/name-server.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import type { TestGame } from './steps.ts'

/** Where the edge of these tests is: a domain may lead here without being proven. */
export const HERE = { A: ['127.0.0.1'] }

type Answer = { status: number; body: string }

/** As a browser at the edge that asks for `host`. */
export async function ask(platform: Platform, host: string, path: string): Promise<Answer> {
  const req = request(`${platform.edge_url}${path}`, { headers: { host }, agent: false }).end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode ?? 0, body: await text(res) }
}

export function createDomainSteps(platform: Platform, names: NameServer) {
  const { client, ctx } = platform
  const params = (game: TestGame) => ({ game_id: game.game_id, namespace_id: game.prod_id })
  const row = (game: TestGame, domain: string) =>
    ctx.db
      .selectFrom('domains')
      .selectAll()
      .where('namespace_id', '=', game.prod_id)
      .where('domain', '=', domain)
      .executeTakeFirstOrThrow()
  const list = async (game: TestGame) =>
    (await client.call(getGameNamespaceById, { params: params(game) })).namespace.config.cdn.domains
  const tell = async (game: TestGame, domain: string) => (await list(game)).find((item) => item.domain === domain)!
  const add = (game: TestGame, domain: string) =>
    client.call(addNamespaceDomain, { params: params(game), body: { domain } })
  const remove = (game: TestGame, domain: string) =>
    client.call(removeNamespaceDomain, { params: { ...params(game), domain } })
  /** Adds it and waits for the worker's first look. */
  const addAndWait = async (game: TestGame, domain: string) => {
    await add(game, domain)
    await until(`${domain} was checked`, async () => {
      const { verification_status, failure_count } = await row(game, domain.toLowerCase())
      return verification_status !== 'pending' || failure_count > 0
    })
  }
  const check = async (game: TestGame, domain: string) => checkDomain(ctx, (await row(game, domain)).domain_id)
  /** Sets the record of that type as the platform lists it, and checks. */
  const prove = async (game: TestGame, domain: string, type: 'CNAME' | 'TXT') => {
    const { name, value } = (await tell(game, domain)).verification_records.find((record) => record.type === type)!
    names.zones.set(name, type === 'TXT' ? { TXT: [value] } : { CNAME: value, ...HERE })
    await check(game, domain)
  }
  return { row, list, tell, add, remove, addAndWait, check, prove }
}

export async function start(
  t: TestContext,
  options: Omit<PlatformOptions, 'roles'> = {},
): Promise<{ platform: Platform; names: NameServer }> {
  const names = await startNameServer(t)
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    ...options,
    env: { MUSTER_DNS_SERVERS: names.address, ...options.env },
  })
  return { platform, names }
}
