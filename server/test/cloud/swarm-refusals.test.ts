// What a version config may not have where lobbies are tasks of a Docker Swarm: refused when the version is made and when it
// is checked, with the member and the remedy. It needs no Swarm.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGameVersion, validateGameVersion } from '@musterhost/contract'
import { startPlatform } from '../support/platform.ts'
import { newGame, refused } from './steps.ts'

const SWARM = {
  MUSTER_DRIVER: 'swarm',
  MUSTER_SWARM_ENGINES: 'one=unix:///run/docker.sock',
  MUSTER_SWARM_REGISTRY: '10.0.0.1:5000',
  MUSTER_INTERNAL_HOST: '0.0.0.0',
  MUSTER_HOST_PORT_RANGES: '27000-27999',
}

type Detail = { path: string[]; reason: string; message: string }

test('a version for a Swarm is refused for each thing that its tasks do not have, by member and with the remedy', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker', env: SWARM })
  const { game_id } = await newGame(platform)
  const docker = {
    network_mode: 'host',
    seats: 'edge',
    player_addresses: true,
    ports: { many: { protocol: 'udp', port_range: { min: 27_000, max: 27_010 } } },
  } as const
  const config = { matchmaker: { docker, game_modes: { default: { max_players: 2 } } } }
  const isExplained = (details: readonly Detail[]): void => {
    const messageAt = (path: string): string => {
      // Other rules may refuse the same member too.
      const at = details.filter((detail) => detail.path.join('.').endsWith(path) && detail.message.includes('Swarm'))
      assert.equal(at.length, 1, `${path}: ${JSON.stringify(details)}`)
      return at[0]!.message
    }
    assert.match(messageAt('docker.network_mode'), /Swarm.*Leave both out/)
    assert.match(messageAt('docker.player_addresses'), /Swarm.*Leave player_addresses out.*X-Player-Id/)
    assert.match(messageAt('ports.many.port_range'), /Swarm.*Give each port a name of its own/)
  }
  const body = { display_name: 'V', config }
  const error = await refused(
    'VALIDATION_ERROR',
    platform.client.call(createGameVersion, { params: { game_id }, body }),
  )
  isExplained(error.metadata.errors as Detail[])
  const checked = await platform.client.call(validateGameVersion, { params: { game_id }, body })
  isExplained(checked.errors as Detail[])
})
