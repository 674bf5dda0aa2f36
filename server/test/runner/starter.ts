// A process that starts one lobby and is killed: `node starter.ts <data folder> <sandbox> <build folder> <arg>...`.
// It writes the handle of the lobby as a line of JSON, and keeps running.
import pino from 'pino'
import { newId } from '../../src/ids.ts'
import { openProcessDriver } from '../../src/runner/drivers/process/process.ts'
import { TIER } from './driver-fixture.ts'

const [data_dir = '', sandbox, build_folder = '', ...args] = process.argv.slice(2)
const driver = await openProcessDriver({
  data_dir,
  sandbox: sandbox === 'off' ? 'off' : 'required',
  log: pino({ level: 'silent' }),
  network: null,
  now: Date.now,
  ended_kept_ms: null,
  ended_bytes_max: null,
})
const started = await driver.start({
  lobby_id: newId(Date.now()),
  build_folder,
  args,
  env: {},
  tier: TIER,
  has_input: true,
})
console.log(JSON.stringify(started))
setInterval(() => undefined, 1_000)
