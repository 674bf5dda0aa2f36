// A runner's driver for network-world.ts: `node network-host.ts OPTIONS`. Commands are lines of JSON on the standard input,
// and each has a line of JSON as its result. Beside the driver it listens as the platform and as other programs would.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import pino from 'pino'
import { parseRange } from '../../src/config/lobby-network.ts'
import { newId } from '../../src/ids.ts'
import { openDockerDriver } from '../../src/runner/drivers/docker/docker.ts'
import type { Handle } from '../../src/runner/drivers/driver.ts'
import { openProcessDriver } from '../../src/runner/drivers/process/process.ts'
import { unfinishedFolder } from '../../src/runner/folders/names.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE } from './base-image.ts'
import { TIER, writeBuild } from './driver-fixture.ts'

const PLATFORM_PORT = 4_999
/** Ports of other programs of the machine. */
const OTHER_PORTS = [22, 5_432, 8_080] as const

/** More starts than a test lasts. */
const CHURN_MAX = 10_000

type Start = {
  /** The content of server.mjs, and the file that runs. */
  program: string
  args?: string[]
  has_internet?: boolean
  bytes_per_second?: number
  env?: Record<string, string>
  tier?: Partial<typeof TIER>
}
type Command =
  | { start: Start }
  | { line: string; pattern: string }
  | { connect: string; port: number; send: string }
  | { stop: string }
  | { exit: string }
  | { close: 'end' | 'keep' }
  | { log: string }
  | { sweep: true }
  | { list: true }
  | { collect: true }
  | { churn: true }
  | { has_own_network: true }

type Options = {
  data_dir: string
  is_quiet?: boolean
  /** The engine's socket. Null: lobbies are processes. */
  engine?: string | null
  image?: string
  sandbox?: 'required' | 'available'
  range?: string
}

const options = JSON.parse(process.argv[2] ?? '{}') as Options
const { data_dir, is_quiet = false, engine = null, image: base_image = BASE_IMAGE, sandbox = 'required' } = options
const range = parseRange(options.range ?? '198.18.0.0/15')!

if (!is_quiet) {
  for (const port of [PLATFORM_PORT, ...OTHER_PORTS]) {
    const server = createServer((socket) => socket.end(`port ${port}\n`).on('error', () => undefined))
    await once(server.listen(port, port === PLATFORM_PORT ? '127.0.0.1' : '0.0.0.0'), 'listening')
    const udp = createSocket('udp4', (message, { port, address }) => udp.send(message, port, address))
    udp.bind(port, '0.0.0.0')
    await once(udp, 'listening')
  }
}

const driver_options = {
  data_dir,
  sandbox,
  log: pino({ level: 'silent' }),
  network: { range, platform: { address: '127.0.0.1', port: PLATFORM_PORT } },
  now: Date.now,
  ended_kept_ms: null,
  ended_bytes_max: null,
}
const opening =
  engine === null
    ? openProcessDriver(driver_options)
    : openDockerDriver({ ...driver_options, docker: { socket: engine, base_image } })
const driver = await opening.catch((error: unknown) => {
  console.log(JSON.stringify({ error: String(error) }))
  process.exit(1)
})
const unfinished_folder = unfinishedFolder(join(data_dir, 'lobbies'))
const handles = new Map<string, Handle>()

async function start({
  program,
  args = ['node', 'server.mjs'],
  has_internet = true,
  bytes_per_second = 1e9,
  env = {},
  tier = {},
}: Start) {
  const build_folder = writeBuild(data_dir, { 'server.mjs': program })
  const network = await driver.takeNetwork({ has_internet, bytes_per_second })
  const lobby_id = newId(Date.now())
  const started = await driver.start({
    lobby_id,
    build_folder,
    args,
    env: { ...env, SERVICES: network!.services, ADDRESS: network!.address },
    tier: { ...TIER, ...tier },
    network,
  })
  if ('refused' in started) throw new Error(started.message)
  handles.set(lobby_id, started.handle)
  return started.handle
}

async function perform(command: Command): Promise<object> {
  if ('start' in command) return start(command.start)
  if ('line' in command) {
    const pattern = new RegExp(command.pattern)
    return until(`the log matches ${command.pattern}`, async () => {
      const lines = await driver.logs(command.line, 'stdout', 1_000)
      const found = lines.map(({ bytes }) => pattern.exec(bytes.toString())).find((match) => match !== null)
      return found === undefined ? null : { match: [...found] }
    })
  }
  if ('connect' in command) {
    const socket = connect(command.port, command.connect)
    socket.end(command.send)
    return { text: await text(socket) }
  }
  if ('stop' in command) {
    await driver.stop(handles.get(command.stop)!, 5_000)
    return {}
  }
  if ('exit' in command) return until('the lobby has ended', () => driver.exit(handles.get(command.exit)!))
  if ('log' in command) {
    const lines = await driver.logs(command.log, 'stdout', 1_000)
    return { lines: lines.map(({ bytes }) => bytes.toString()) }
  }
  if ('sweep' in command) {
    await driver.sweep()
    return {}
  }
  if ('list' in command) {
    for (const handle of await driver.list()) handles.set(handle.lobby_id, handle)
    return { lobby_ids: [...handles.keys()] }
  }
  if ('collect' in command) {
    // As the runner does for the row of a lobby whose process is gone.
    for (const lobby_id of readdirSync(unfinished_folder)) await driver.exitOf(lobby_id)
    await driver.sweep()
    return { unfinished: readdirSync(unfinished_folder) }
  }
  if ('has_own_network' in command) return { has_own_network: driver.has_own_network }
  if ('close' in command) {
    await driver.close({ logger: command.close })
    return {}
  }
  void churn()
  return {}
}

/** Starts and ends lobbies until the process is killed. */
async function churn(): Promise<void> {
  const running: Handle[] = []
  for (let started = 0; started < CHURN_MAX; started++) {
    running.push(await start({ program: 'setInterval(() => undefined, 1_000)' }))
    if (running.length > 3) {
      const handle = running.shift()!
      await driver.stop(handle, 0).then(() => until('the lobby has ended', () => driver.exit(handle)))
    }
  }
}

console.log('{}')
for await (const line of createInterface(process.stdin)) {
  try {
    console.log(JSON.stringify(await perform(JSON.parse(line) as Command)))
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }))
  }
}
