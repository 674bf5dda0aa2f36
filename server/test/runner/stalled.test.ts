// A server that stands still: stopped by a signal, as a debugger, a freezer or a machine that swaps would do it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playerConnected } from '@muster/contract'
import { readStat } from '../../src/procfs.ts'
import { find, LONG_MS, listed, serverOf } from '../http/steps.ts'
import { startPlatform } from '../platform.ts'
import { processesOf } from '../supervisor/started.ts'
import { until } from '../until.ts'

test('a server that stands still for 20 s keeps its players and its place in the list, and then goes on', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game_modes = { default: { idle_grace_ms: LONG_MS } }
  const game = await platform.game({ matchmaker: { game_modes } })
  const seat = await find(game)
  const { lobby_id } = seat.lobby
  const server = serverOf(platform, game, lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  const { pid } = processesOf(lobby_id).find(({ command }) => command.includes('server.mjs'))!
  const run = () =>
    platform.ctx.db.selectFrom('lobby_runs').where('lobby_id', '=', lobby_id).selectAll().executeTakeFirstOrThrow()
  const address = seat.ports.game!.url!
  const before = await run()

  process.kill(pid, 'SIGSTOP')
  await until('the server to stand still', () => readStat(pid)?.state === 'T')
  const asked = fetch(address)
  const looked = await looks()
  platform.advance(20_000)
  // The runner has looked at its lobbies meanwhile, and has said so.
  await until('the runner to look', async () => (await looks()) > looked)
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 1 }])
  assert.deepEqual(await run(), before)
  // Nothing tells a server that stands still from one that thinks: who comes now waits with the others.
  assert.equal((await find(game)).lobby.lobby_id, lobby_id)

  process.kill(pid, 'SIGCONT')
  assert.equal(await (await asked).text(), 'lobby')
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 2 }])
  assert.deepEqual(await run(), before)

  async function looks(): Promise<number> {
    const rows = await platform.ctx.db.selectFrom('runners').select('ts').execute()
    return Math.max(...rows.map(({ ts }) => ts.getTime()))
  }
})
