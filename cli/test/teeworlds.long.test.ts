// The example Teeworlds: the unchanged server of Debian's package over UDP, deployed by its muster.yaml alone.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lacking } from '../../server/test/run/optional-programs.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { deployExample } from './example-steps.ts'
import { TeeworldsClient } from './teeworlds-client.ts'

const WAIT_MS_MAX = 10_000
/** The server responds within a millisecond. */
const SILENCE_MS = 500

test('Teeworlds plays with nothing but its version config, and no stranger reaches it', async (t) => {
  const missing = lacking('teeworlds-server')
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const example = await deployExample(t, platform, 'teeworlds')
  const { lobby, ports } = await example.takeSeat()
  const { url } = ports.game!

  const stranger = await TeeworldsClient.open(url, '127.0.0.9')
  t.after(() => stranger.close())
  assert.equal(await stranger.requestToken(SILENCE_MS), null, 'a stranger gets no response')

  const player = await TeeworldsClient.open(url, '127.0.0.1')
  t.after(() => player.close())
  assert.ok(await player.requestToken(WAIT_MS_MAX))
  await player.connect(WAIT_MS_MAX)
  const map = await player.enter(WAIT_MS_MAX)
  assert.ok(map.includes('dm1\0'), map.toString('latin1'))
  await until('the player to be connected', async () => (await example.connected(lobby.lobby_id)) === 1)

  // A second seat of the same address: another client, which the server sees under another address.
  await example.takeSeat()
  const second = await TeeworldsClient.open(url, '127.0.0.1')
  t.after(() => second.close())
  assert.ok(await second.requestToken(WAIT_MS_MAX))
  await second.connect(WAIT_MS_MAX)
  await until('both to be connected', async () => {
    for (const one of [player, second]) one.keepAlive()
    return (await example.connected(lobby.lobby_id)) === 2
  })
  assert.equal(stranger.received, 0)
})
