// The matchmaker is killed every few seconds while many players wait for matches by rules, and ask again as the SDK does.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  createGameVersion,
  findLobby,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { withKey } from '../http/steps.ts'
import { strike } from './kill.ts'
import { FaultyPlatform } from './platform.ts'
import { createRandom } from './random.ts'

const PLAYERS = 500
const MATCH_PLAYERS = 50
const KILLS = 4
const KILL_EVERY_MS = 5_000
/** One step, after the last kill: until then no two players fit. */
const WIDEN = { every_s: 30, by: 1_000, to: 1_000 }
const WAIT_MS_MAX = 150_000
/** Between two calls of a player, as the SDK pauses. */
const PAUSE_MS = 200

type Found = { ticket: number; lobby_id: string; token: string }

test('through kills of the matchmaker no player is lost or in two matches, and ages are kept', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-matching-'))
  const platform = await FaultyPlatform.start({ folder })
  t.after(async () => {
    await platform.close()
    await rm(folder, { recursive: true, force: true })
  })
  await deployRules(platform)
  const client = platform.as(platform.game.public_tokens.staging)
  const players = Array.from({ length: PLAYERS }, (_, ticket) => findUntilMatched(client, ticket))
  const random = createRandom(7)
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(KILL_EVERY_MS)
    await strike(platform, { victims: ['matchmaker'], gap_ms: 0 }, random)
  }
  const found = await Promise.all(players)

  const matches = Map.groupBy(found, ({ lobby_id }) => lobby_id)
  assert.deepEqual(
    [...matches.values()].map(({ length }) => length),
    Array(PLAYERS / MATCH_PLAYERS).fill(MATCH_PLAYERS),
  )
  assert.equal(new Set(found.map(({ token }) => token)).size, PLAYERS)
  const { tickets, seats } = await platform.withDatabase(async (db) => ({
    tickets: (await db.query<{ count: number; oldest: number }>(OLDEST_SQL)).rows[0]!,
    seats: (await db.query<{ count: number }>('select count(*)::int from players where match is not null')).rows[0]!,
  }))
  assert.equal(seats.count, PLAYERS)
  // Each request has waited under one ticket from its first call on, through all kills.
  assert.ok(tickets.count <= PLAYERS)
  assert.ok(tickets.oldest >= (KILLS * KILL_EVERY_MS) / 1_000)
})

const OLDEST_SQL = 'select count(*)::int, max(extract(epoch from end_ts - create_ts))::float8 as oldest from tickets'

async function deployRules(platform: FaultyPlatform): Promise<void> {
  const { game_id, namespaces } = platform.game
  const config: VersionConfig = platform.versionConfig('staging')
  const mode = config.matchmaker!.game_modes.default!
  config.matchmaker!.game_modes.default = {
    ...mode,
    max_players: MATCH_PLAYERS,
    player_deadline_ms: 600_000,
    matching: {
      size: { min: MATCH_PLAYERS, max: MATCH_PLAYERS },
      attributes: { skill: { from: 'player' } },
      rules: [{ near: 'skill', within: 0, widen: WIDEN }],
    },
  }
  const params = { game_id }
  const body = { display_name: 'rules', config }
  const { version_id } = await platform.admin.call(createGameVersion, { params, body })
  const path = { params: { game_id, namespace_id: namespaces.staging } }
  await platform.admin.call(updateGameNamespaceVersion, { ...path, body: { version_id } })
}

/** The same call with its key, until it has a seat. */
async function findUntilMatched(client: Client, ticket: number): Promise<Found> {
  const until_ms = performance.now() + WAIT_MS_MAX
  const body = { game_modes: ['default'], attributes: { skill: ticket }, wait_ms: 20_000 }
  for (;;) {
    try {
      const { lobby, player } = await client.call(findLobby, {
        body,
        ...withKey(`player-${ticket}`),
      })
      return { ticket, lobby_id: lobby.lobby_id, token: player.token }
    } catch (error) {
      const code = error instanceof ApiError ? error.code : String(error)
      if (performance.now() > until_ms) throw new Error(`player ${ticket} got no seat: ${code}`)
      await sleep(PAUSE_MS)
    }
  }
}
