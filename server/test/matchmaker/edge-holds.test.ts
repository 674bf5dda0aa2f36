// How long a player without a connection keeps a seat that the edges check, while edges and the database come and go.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { listMatchmakerLobbyPlayers } from '@musterhost/contract'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'

const SEAT_HOLD_MS = 60_000
const LONG_MS = 3_600_000

type Hold = { platform: Platform; game: TestGame; edge: PlayedEdge; seat: Seat }

/** Plays an edge: writes what one writes. */
class PlayedEdge {
  readonly edge_id = randomUUID()
  readonly #platform: Platform
  readonly #game: TestGame
  #seq = 1

  constructor(platform: Platform, game: TestGame) {
    this.#platform = platform
    this.#game = game
  }

  /** The next edge of the same node. */
  successor(): PlayedEdge {
    return new PlayedEdge(this.#platform, this.#game)
  }

  async register(): Promise<void> {
    const { pool } = this.#platform.ctx
    // The next edge of a node replaces the one before.
    await pool.query(`delete from edges where node_id = 'played'`)
    await pool.query(`insert into edges (edge_id, node_id) values ($1, 'played')`, [this.edge_id])
    await this.report()
  }

  async report(): Promise<void> {
    await this.#platform.ctx.pool.query('insert into edge_reports values ($1, 7, 7)', [this.edge_id])
  }

  /** As after a crash of PostgreSQL, until the edge reports again. */
  async loseReports(): Promise<void> {
    await this.#platform.ctx.pool.query('truncate edge_reports, lobby_connections, edge_players, edge_admissions')
  }

  /** The first connection of the player, or the end of the last one. Resolves when the matchmaker has read it. */
  async set(seat: Seat, is_open: boolean): Promise<void> {
    const { pool, listener } = this.#platform.ctx
    const player_id = this.#platform.playerIdOf(seat)
    await pool.query(
      `insert into edge_players (edge_id, player_id, lobby_id, namespace_id, is_open, change_seq)
        values ($1, $2, $3, $4, $5, $6)
        on conflict (edge_id, player_id) do update set is_open = excluded.is_open, change_seq = excluded.change_seq`,
      [this.edge_id, player_id, seat.lobby.lobby_id, this.#game.namespace_id, is_open, ++this.#seq],
    )
    await listener.notify('edge_players')
    await until('the matchmaker to read the player', async () => {
      const { rows } = await pool.query('select from edge_admissions where edge_id = $1 and player_id = $2', [
        this.edge_id,
        player_id,
      ])
      return rows.length === (is_open ? 1 : 0)
    })
  }

  /**
   * The matchmaker has ended every hold that is over by now. The first player may be read by a pass that began before, and the
   * third one is read after the pass of the second one.
   */
  async pass(): Promise<void> {
    for (let read = 0; read < 3; read++) await this.set(await this.#game.find(), true)
  }
}

/** As the book has it: the tables follow it. */
async function hasSeat({ platform, game, seat }: Hold): Promise<boolean> {
  const params = { game_id: game.game_id, lobby_id: seat.lobby.lobby_id }
  const { players } = await platform.client.call(listMatchmakerLobbyPlayers, { params })
  return players.some(({ player_id }) => player_id === platform.playerIdOf(seat))
}

/** A player who was connected and is not any more, to a platform whose clock stands. */
async function startHold(t: TestContext): Promise<Hold> {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    docker: { seats: 'edge', hold_ms: SEAT_HOLD_MS },
    matchmaker: { game_modes: { default: { max_players: 64, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } } },
    limits: { max_players_per_client: 1_000 },
  })
  platform.holdClock()
  const edge = new PlayedEdge(platform, game)
  await edge.register()
  const seat = await game.find()
  await edge.set(seat, true)
  await edge.set(seat, false)
  return { platform, game, edge, seat }
}

/** The second pass begins when the first one has found that no edge reports. */
async function twoPasses(t: TestContext, { ctx }: Platform): Promise<void> {
  const query = t.mock.method(ctx.pool, 'query')
  const isPass = ({ arguments: [first] }: { arguments: unknown[] }): boolean =>
    (first as { name?: string }).name === 'edges-with-players'
  await until('two passes', async () => {
    await ctx.listener.notify('edge_players')
    return query.mock.calls.filter(isPass).length >= 2
  })
  query.mock.restore()
}

test('after a crash of the edge each player has the whole hold to connect again, also one who had no connection', async (t) => {
  const hold = await startHold(t)
  const { platform, edge } = hold
  const next = edge.successor()
  platform.advance(SEAT_HOLD_MS - 1_000)
  await edge.pass()
  await next.register()
  await next.pass()
  platform.advance(SEAT_HOLD_MS - 1_000)
  await next.pass()
  assert.ok(await hasSeat(hold))
  platform.advance(1_000)
  await until('the hold to end', async () => !(await hasSeat(hold)))
})

test('the time in which an edge does not report does not count, because no player can connect in it', async (t) => {
  const hold = await startHold(t)
  const { platform, edge } = hold
  platform.advance(SEAT_HOLD_MS - 1_000)
  await edge.pass()
  await edge.loseReports()
  await twoPasses(t, platform)
  platform.advance(2 * SEAT_HOLD_MS)
  await edge.report()
  await edge.pass()
  assert.ok(await hasSeat(hold))
  platform.advance(1_000)
  await until('the hold to end', async () => !(await hasSeat(hold)))
})

test('edges that are replaced again and again do not keep a seat for ever', async (t) => {
  const hold = await startHold(t)
  const { platform } = hold
  let { edge } = hold
  await until('the hold to end', async () => {
    platform.advance(SEAT_HOLD_MS - 1_000)
    edge = edge.successor()
    await edge.register()
    await edge.pass()
    return !(await hasSeat(hold))
  })
})
