// What edges report of open connections reaches the books over every loss: of an edge, of the database's unlogged tables,
// of a whole machine.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { LobbyConnections } from '../../src/edge/presence/lobby-connections.ts'
import { reportConnections } from '../../src/edge/presence/report-connections.ts'

import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** Longer than a seat waits for its player, or than an empty lobby waits for one. */
const SEAT_MS = 121_000
const IDLE_MS = 16_000

const CONNECTION = { bytesRead: 0, bytesWritten: 0 }

/** The reports of an edge on a machine of this name, without the connections. */
async function reportFrom(t: TestContext, { ctx }: Platform, node_id: string) {
  const connections = new LobbyConnections()
  const reports = await reportConnections({ ...ctx, config: { ...ctx.config, node_id } }, connections, {
    players: { register: async () => {} },
    is_successor: false,
  })
  const close = () => reports.close()
  t.after(close)
  return { connections, close }
}

const told = (platform: Platform, count: number) =>
  until(`the books to have ${count} reported connections`, async () =>
    (await platform.ctx.metrics.text()).text.includes(`muster_lobby_connections ${count}\n`),
  )

const edgesOf = ({ ctx }: Platform) => ctx.db.selectFrom('edges').selectAll().orderBy('node_id').execute()

/** Waits for so many more reports of an edge that reports. */
async function reports({ ctx }: Platform, count: number): Promise<void> {
  const { rows } = await ctx.pool.query<{ seq: number }>('select max(report_seq) as seq from edge_reports')
  await until(`${count} reports`, async () => {
    const now = await ctx.pool.query<{ seq: number }>('select max(report_seq) as seq from edge_reports')
    return (now.rows[0]?.seq ?? 0) >= rows[0]!.seq + count
  })
}

test('connections over several edges are added up, and are known again after the database has lost them', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { lobby_id } = (await game.find()).lobby
  const [one, other] = [await reportFrom(t, platform, 'one'), await reportFrom(t, platform, 'other')]
  one.connections.enter(lobby_id, CONNECTION)
  for (const { connections } of [other, other]) connections.enter(lobby_id, CONNECTION)
  await told(platform, 3)
  other.connections.leave(lobby_id, CONNECTION)
  await told(platform, 2)
  await other.close()
  await told(platform, 1)

  const [before, ...more] = await edgesOf(platform)
  assert.equal(more.length, 0, 'an edge that has ended is not there')
  // As after a crash of PostgreSQL.
  await platform.ctx.pool.query('truncate edge_reports, lobby_connections, edge_players, edge_admissions')
  await until('the edge to register anew', async () => (await edgesOf(platform))[0]?.edge_id !== before!.edge_id)
  platform.advance(SEAT_MS)
  platform.advance(IDLE_MS)
  await reports(platform, 5)
  await told(platform, 1)
  const lobby = platform.ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('stop_ts')
  assert.equal((await lobby.executeTakeFirstOrThrow()).stop_ts, null)

  // Opened and closed between two reports: it was there.
  one.connections.leave(lobby_id, CONNECTION)
  one.connections.enter(lobby_id, CONNECTION)
  one.connections.leave(lobby_id, CONNECTION)
  await told(platform, 0)
  platform.advance(IDLE_MS)
  assert.equal(await platform.stopReasonOf(lobby_id), 'idle')
})

test('an edge that was killed is replaced by the next one of its node, and one that is silent for eight hours is taken for gone', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { lobby_id } = (await game.find()).lobby
  const { pool } = platform.ctx
  // What is left of two edges that were killed.
  for (const node_id of ['restarted', 'removed']) {
    const edge_id = randomUUID()
    await pool.query('insert into edges (edge_id, node_id) values ($1, $2)', [edge_id, node_id])
    await pool.query('insert into edge_reports values ($1, 7, 7)', [edge_id])
    await pool.query('insert into lobby_connections values ($1, $2, 1, 7)', [edge_id, lobby_id])
  }
  await told(platform, 2)
  await reportFrom(t, platform, 'restarted')
  await told(platform, 1)
  await until('the other to be silent', async () => (await edgesOf(platform))[0]!.silent_ts !== null)
  assert.deepEqual(
    (await edgesOf(platform)).map(({ node_id, silent_ts }) => [node_id, silent_ts === null]),
    [
      ['removed', false],
      ['restarted', true],
    ],
  )
  await pool.query("update edges set silent_ts = silent_ts - interval '8 hours' where node_id = 'removed'")
  await told(platform, 0)
  await until('the silent edge to be removed', async () =>
    (await edgesOf(platform)).every(({ node_id }) => node_id === 'restarted'),
  )
  platform.advance(SEAT_MS)
  platform.advance(IDLE_MS)
  assert.equal(await platform.stopReasonOf(lobby_id), 'idle')
})
