// The page of one lobby: what it does now, and why each player is in it.
import assert from 'node:assert/strict'
import test from 'node:test'
import { deleteMatchmakerLobby, setLobbyClosed } from '@musterhost/contract'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { openHub, openView, signInAsAdmin } from './steps.ts'

const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

test('a lobby shows its state as it changes, and the request that brought each player', async (t) => {
  const hub = await openHub(t, { env: { MUSTER_RAYS_PER_SECOND: '100' } })
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const { game_id, namespace_id } = game
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  await platform.ctx.recorder.flush()
  const view = await openView(hub)
  const { page } = view
  await signInAsAdmin(hub, view)
  await page.goto(`${hub.url}/games/${game_id}/namespaces/${namespace_id}/lobbies/${lobby_id}`)
  const badge = (state: string) => page.locator('main header').getByText(state, { exact: true })
  await badge('ready').waitFor()
  const row = page
    .getByRole('table', { name: 'Players' })
    .locator('tr', { hasText: platform.playerIdOf(seat).slice(-8) })
  const why = row.getByRole('link', { name: 'lobbies.find' })
  await why.waitFor()

  const server = platform.serverOf(game, lobby_id)
  await server.call(setLobbyClosed, { body: { is_closed: true } })
  await badge('closed').waitFor()
  await platform.stallRun(lobby_id)
  await badge('stalled').waitFor()
  await platform.deploy(game, MODES)
  await badge('outdated').waitFor()

  await why.click()
  await page.getByText('lobbies.find').first().waitFor()
  assert.match(page.url(), /\/rays\/[0-9a-f-]{36}$/)
  await page.goBack()
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await badge('stalled').waitFor({ state: 'detached' })
  assert.equal(await badge('outdated').count(), 0)
  // No runner has the log of the lobby.
  const faults = view.faults.filter((text) => !text.includes('status of 503'))
  assert.deepEqual(faults, [])
})
