// Measures how long a player waits for a lobby that has to start. It is compared with the bare time of the same game server
// from its start to its first accepted connection. Both take turns, so that changes of the machine affect both.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { archive, type BuiltFile, buildServer } from '@musterhost/arena/build'
import { deleteMatchmakerLobby, findLobby } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { median } from '../load.ts'
import { startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { newGame } from './games.ts'

const ROUNDS = 15
const RATIO_GOAL = 1.3
const MORE_MS_GOAL = 40
const LISTEN_WAIT_MS_MAX = 10_000
const REST_MS = 1_500
/** Below the ephemeral ports, of which thousands have just been used, and outside the ports of lobbies. */
const PORT_MIN = 12_000
const PORT_COUNT = 8_000

export async function measureStarts(): Promise<void> {
  const files = await buildServer()
  const platform = await startPlatform(['api', 'matchmaker', 'runner', 'edge'])
  const folder = await mkdtemp(join(tmpdir(), 'muster-bench-bare-'))
  try {
    await writeFiles(folder, files)
    const game = await newGame(platform, {
      archive: archive(files),
      docker: { args: ['node', 'server/main.js'], ports: { game: { protocol: 'http' } } },
      matchmaker: { max_players: 1, game_modes: { default: {} } },
    })
    const player = createClient({ url: platform.matchmaker_url, token: game.public_token })
    const operator = createClient({ url: platform.matchmaker_url, token: platform.token })
    const bare: number[] = []
    const found: number[] = []
    const started_ids = new Set<string>()
    for (let round = 0; round <= ROUNDS; round++) {
      const bare_ms = await startBare(folder)
      const started = performance.now()
      const { lobby_id } = (await player.call(findLobby, { body: { game_modes: ['default'] } })).lobby
      const found_ms = performance.now() - started
      if (started_ids.has(lobby_id)) throw new Error(`A find got the lobby ${lobby_id} again: it started none.`)
      started_ids.add(lobby_id)
      await operator.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id } })
      // The box is taken down and its parts are made again meanwhile, not during the next bare start.
      await delay(REST_MS)
      if (round === 0) continue
      bare.push(bare_ms)
      found.push(found_ms)
    }
    const ms = (values: number[]): string => `${median(values).toFixed(0)} ms (${values.map(Math.round).join(' ')})`
    console.log(`\n  bare start to listening        ${ms(bare)}`)
    console.log(`  find to response, with a start ${ms(found)}`)
    verdict('find with a start / bare start', median(found.map((value, i) => value / bare[i]!)), RATIO_GOAL, 'at most')
    verdict('find with a start, ms more', median(found.map((value, i) => value - bare[i]!)), MORE_MS_GOAL, 'at most')
  } finally {
    await platform.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeFiles(folder: string, files: readonly BuiltFile[]): Promise<void> {
  for (const { path, content } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
}

/** Without the platform the SDK allows every player. The server does the same as with it. */
async function startBare(folder: string): Promise<number> {
  const port = PORT_MIN + Math.floor(Math.random() * PORT_COUNT)
  const started = performance.now()
  const child = spawn(process.execPath, ['server/main.js'], {
    cwd: folder,
    env: { PORT_GAME: String(port), PATH: process.env.PATH },
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  while (!(await isListening(port))) {
    if (performance.now() - started > LISTEN_WAIT_MS_MAX) throw new Error('the bare server does not listen')
  }
  const elapsed_ms = performance.now() - started
  child.kill('SIGKILL')
  await ended
  return elapsed_ms
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => setTimeout(() => resolve(false), 1))
  })
}
