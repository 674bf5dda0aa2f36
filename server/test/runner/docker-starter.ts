// A runner's process for docker.test.ts: starts lobbies in containers until it is killed. A line for each one that runs.
import { newId } from '../../src/ids.ts'
import { TIER } from './driver-limits.ts'
import { type EngineDriverOptions, openEngineDriver } from './engine-driver.ts'

const LOBBIES_MAX = 64

const [options = '', build_folder = ''] = process.argv.slice(2)
const driver = await openEngineDriver(JSON.parse(options) as EngineDriverOptions)
for (let count = 0; count < LOBBIES_MAX; count++) {
  const lobby_id = newId(Date.now())
  console.log(`starting ${lobby_id}`)
  const files = count % 2 === 0 ? [] : [{ path: 'a/b', content: 'c' }]
  await driver.start({ lobby_id, build_folder, args: ['run'], env: {}, tier: TIER, files })
  console.log(`started ${lobby_id}`)
}
