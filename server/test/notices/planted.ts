// Targets with notices that wait, and a program that takes notices and fails as the test says.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { sql } from 'kysely'
import { newSigningKey } from '../../src/cloud/notices/signature.ts'
import { newId } from '../../src/ids.ts'
import { NOTICE_SECRETS } from '../../src/tokens/sealed-columns.ts'
import type { Platform } from '../support/platform.ts'

/** `is_taken`: the program has the notice, whatever it returned. */
export type Taken = { n: number; notice_id: string; is_taken: boolean }
export type HowTaken = 'ok' | 'refuse' | 'hang up' | 'take and fail'

/** Half of the requests fail, in each of the ways. */
export const HALF_FAILS: readonly HowTaken[] = ['ok', 'refuse', 'ok', 'hang up', 'ok', 'take and fail']

export type Taker = { url: string; requests: Taken[]; how: (index: number) => HowTaken }

export async function startTaker(t: TestContext): Promise<Taker> {
  const taker: Taker = { url: '', requests: [], how: () => 'ok' }
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (part: Buffer) => {
      body += part
    })
    req.on('end', () => {
      const how = taker.how(taker.requests.length)
      const { n, notice_id } = JSON.parse(body) as Taken
      taker.requests.push({ n, notice_id, is_taken: how === 'ok' || how === 'take and fail' })
      if (how === 'hang up') return void req.socket.destroy()
      res.writeHead(how === 'ok' ? 200 : 503)
      res.end(how)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  taker.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return taker
}

/** A target at a URL, with so many notices that wait, the first numbered 1. */
export async function plantTarget({ ctx }: Platform, url: string, count: number): Promise<string> {
  const target_id = newId(ctx.now())
  const secrets = JSON.stringify({ url, signing_key: newSigningKey() })
  await ctx.db
    .insertInto('notice_targets')
    .values({
      ...{ target_id, group_id: null, game_id: null, name: target_id.slice(-12), kind: 'webhook', hint: null },
      ...{ secrets: ctx.seals.seal(NOTICE_SECRETS.purposeOf(target_id), secrets, ctx.now()) },
      settings: JSON.stringify({ events: ['deploy_live'], by_admin: true }),
    })
    .execute()
  await sql`
    insert into notices (notice_id, target_id, source, event, notice, create_ts)
    select id, ${target_id}, n::text, 'deploy_live', jsonb_build_object('notice_id', id, 'n', n), now()
    from (select gen_random_uuid() as id, n from generate_series(1, ${count}::integer) as n order by n) as planted`.execute(
    ctx.db,
  )
  return target_id
}

export async function waitingOf({ ctx }: Platform, target_id: string): Promise<number> {
  const rows = await ctx.db
    .selectFrom('notices')
    .where('target_id', '=', target_id)
    .where('state', '=', 'waiting')
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(rows.count)
}

/** The notices that were taken, each once, in the order in which they were first taken. */
export function firstTaken(requests: readonly Taken[]): Taken[] {
  const by_id = new Map<string, Taken>()
  for (const one of requests) if (one.is_taken && !by_id.has(one.notice_id)) by_id.set(one.notice_id, one)
  return [...by_id.values()]
}
