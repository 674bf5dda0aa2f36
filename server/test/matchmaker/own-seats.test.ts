// What a player gets back of its own seats, by its identity or by the token of a seat.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  deleteMatchmakerLobbyPlayer,
  listOwnSeats,
  playerConnected,
  playerDisconnected,
  setupIdentity,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { LONG_MS, MODES, unshown } from '../http/steps.ts'
import { startPlatform } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'

const KEPT_MS = 60_000

test('a player gets its own seats back, with the same token, until they end', async (t) => {
  const platform = await startPlatform(t)
  platform.holdClock()
  const waiting_game = await platform.game()
  const waiting = waiting_game.find()
  await t.test('a seat whose lobby still starts is not returned', async () => {
    const [starting] = await platform.startingLobbies(waiting_game)
    const { player_id } = await platform.ctx.db
      .selectFrom('players')
      .select('player_id')
      .where('lobby_id', '=', starting!)
      .executeTakeFirstOrThrow()
    const subject = { kind: 'player', player_id, lobby_id: starting!, namespace_id: waiting_game.namespace_id } as const
    const player_token = platform.ctx.keys.issue(subject, { now_ms: platform.ctx.now(), lifetime_ms: LONG_MS })
    const ask = () => waiting_game.player.call(listOwnSeats, { body: { player_token } })
    assert.deepEqual(await ask(), { seats: [] })
    await platform.makeReady(waiting_game, starting!)
    await waiting
    assert.equal((await ask()).seats.length, 1)
  })

  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: { max_players_per_client: 100 } })
  const seat = await game.find()
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  const owned = async (client: Client, of?: Seat) => {
    const body = of === undefined ? {} : { player_token: of.player.token }
    return (await client.call(listOwnSeats, { body })).seats
  }
  /** The book may have rounded another way. */
  const assertIn = (ms: number, time = '') =>
    assert.ok(Math.abs(Date.parse(time) - platform.ctx.now() - ms) <= 1, `${time} is not in ${ms} ms`)
  const connect = ({ player }: Seat) => server.call(playerConnected, { body: { player_token: player.token } })
  const disconnect = ({ player }: Seat, hold_ms: number) =>
    server.call(playerDisconnected, { body: { player_token: player.token, hold_ms } })

  await t.test('the token of a reserved seat returns that seat, and changes nothing', async () => {
    const before = await platform.journalEnds()
    const [own, ...others] = await owned(game.player, seat)
    const { is_connected, expire_ts, ...rest } = own!
    assert.deepEqual([rest, is_connected, others], [seat, false, []])
    assertIn(120_000, expire_ts)
    assert.equal(await platform.journalEnds(), before)
  })

  await t.test(
    'the token of a connected seat and of a seat that is kept connects again, by the rules of hold_ms',
    async () => {
      await connect(seat)
      const [connected] = await owned(game.player, seat)
      assert.deepEqual([connected?.is_connected, connected?.expire_ts], [true, undefined])
      await platform.refuses('MATCHMAKER_PLAYER_ALREADY_CONNECTED', () => connect(connected!))
      await disconnect(seat, KEPT_MS)
      const [kept] = await owned(game.player, seat)
      assert.equal(kept?.is_connected, false)
      assertIn(KEPT_MS, kept?.expire_ts)
      await connect(kept!)
    },
  )

  await t.test('a seat that has ended is not returned', async () => {
    await disconnect(seat, KEPT_MS)
    platform.advance(KEPT_MS)
    assert.deepEqual(await owned(game.player, seat), [])
    const left = await game.find()
    await disconnect(left, 0)
    assert.deepEqual(await owned(game.player, left), [])
  })

  await t.test('an identity gets all its seats, the newest first, and no seat of another', async () => {
    const players = await Promise.all(
      [0, 1].map(async () => {
        const { identity_token } = await game.player.call(setupIdentity, { body: {} })
        return platform.as(identity_token)
      }),
    )
    const [ada, bob] = players as [Client, Client]
    const seats: Seat[] = []
    for (const player of [ada, ada, bob, ada]) {
      seats.push(await { ...game, player }.find())
      platform.advance(1)
    }
    const tokens = (list: { player: { token: string } }[]) => list.map(({ player }) => player.token)
    const [first, second, of_bob, third] = seats as [Seat, Seat, Seat, Seat]
    assert.deepEqual(tokens(await owned(ada)), tokens([third, second, first]))
    assert.deepEqual(tokens(await owned(ada, second)), tokens([second, third, first]), 'that of the token comes first')
    assert.deepEqual(tokens(await owned(bob)), tokens([of_bob]))
    const params = { game_id: game.game_id, lobby_id: second.lobby.lobby_id, player_id: platform.playerIdOf(second) }
    await platform.client.call(deleteMatchmakerLobbyPlayer, { params })
    assert.deepEqual(tokens(await owned(ada)), tokens([third, first]))
  })

  await t.test(
    'a caller without an identity and a token has no seat, and a token of another namespace is refused',
    async () => {
      assert.deepEqual(await owned(game.player), [])
      for (const player_token of ['nonsense', game.public_token, (await waiting).player.token]) {
        await platform.refuses('PLAYER_TOKEN_INVALID', () => game.player.call(listOwnSeats, { body: { player_token } }))
      }
      assert.deepEqual(unshown(listOwnSeats, ['PLAYER_TOKEN_INVALID', 'NAMESPACE_NOT_FOUND']), [])
    },
  )
})
