// A runner's process for docker.test.ts: starts lobbies in containers until it is killed. A line for each one that runs.
import pino from 'pino'
import { newId } from '../../src/ids.ts'
import { openDockerDriver } from '../../src/runner/drivers/docker/docker.ts'
import { BASE_IMAGE } from './base-image.ts'
import { TIER } from './driver-limits.ts'

const LOBBIES_MAX = 64

const [socket = '', data_dir = '', build_folder = ''] = process.argv.slice(2)
const driver = await openDockerDriver({
  data_dir,
  docker: { socket, base_image: BASE_IMAGE },
  log: pino({ level: 'silent' }),
  sandbox: 'available',
  network: null,
  now: Date.now,
  ended_kept_ms: null,
  ended_bytes_max: null,
})
for (let count = 0; count < LOBBIES_MAX; count++) {
  const lobby_id = newId(Date.now())
  console.log(`starting ${lobby_id}`)
  const files = count % 2 === 0 ? [] : [{ path: 'a/b', content: 'c' }]
  await driver.start({ lobby_id, build_folder, args: ['run'], env: {}, tier: TIER, files })
  console.log(`started ${lobby_id}`)
}
