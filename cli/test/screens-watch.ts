// The screens of the commands that watch a namespace: lobbies, players, logs, requests and numbers.
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import {
  createCloudToken,
  explainRay,
  findLobby,
  getAnalyticsMatchmakerLive,
  getGameById,
  listMatchmakerLobbyPlayers,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { WebSocket } from 'ws'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject } from './deploy-steps.ts'
import { agrees, inFolder, type Shown, type Step } from './screens.ts'

export type WatchWorld = Shown & {
  platform: Platform
  game_id: string
  namespace_id: string
  /** Of the first lobby, in which two players play. */
  lobby_id: string
  /** As the game's own backend. */
  cloud: Client
  /** A player who connects and stays. */
  play: () => Promise<{ lobby_id: string; player_id: string }>
}

type WatchStep = Step<WatchWorld>

/** It writes three lines, then is ready. It accepts WebSockets, and writes what it reads from its standard input. */
const SERVER = `
const http = process.getBuiltinModule('node:http')
import { createHash } from 'node:crypto'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const call = (path, body) => new Promise((resolve) => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' }
  http.request(PLATFORM_API_URL + path, { method: 'POST', headers }, (response) => response.resume().on('end', resolve)).end(JSON.stringify(body))
})
console.log('the map is loaded')
console.log(JSON.stringify({ level: 50, msg: 'a bot has no brain' }))
console.error('[WARN] the map has no water')
process.stdin.on('data', (text) => console.log('read ' + String(text).trim().split('\\n').join(' and ')))
const server = http.createServer((_, response) => response.end('lobby'))
server.on('upgrade', async (request, socket) => {
  socket.on('error', () => {})
  await call('/matchmaker/players/connected', { player_token: new URL(request.url, 'http://x').searchParams.get('token') })
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
})
server.listen(Number(PORT_GAME), '127.0.0.1', () => call('/matchmaker/lobbies/ready', {}))
process.on('SIGTERM', () => process.exit(0))
`
const MATCHMAKER = `matchmaker:
  game_modes: { default: { max_players: 8, idle_grace_ms: 600000 } }
  docker: { args: [node, server.mjs], ports: { game: { protocol: http } }, standard_input: true }
`
const CTRL_D = '\u0004'
const UNKNOWN_MODE = 'MATCHMAKER_GAME_MODE_NOT_FOUND'
/** Tables whose columns are as wide as their ages. The matchmaker's clock never goes back, so these are from a moment ago. */
const AGES: NonNullable<WatchStep['figures']> = [
  [/\bnow\b|\b\d+ (?:s|min|h|d) ago|N ms ago/g, 'AGE ago'],
  [/ {2,}/g, '  '],
]
/** Columns of a terminal on which no column is cut. */
const WIDE = 140

/** The same with and without a terminal. */
const reads = (name: string, ...args: string[]): WatchStep => ({ name, args: () => args })
const ending = (lobby_id: string): string => lobby_id.slice(-12)

export const WATCH_STEPS: readonly WatchStep[] = [
  { name: 'lobbies', args: () => ['lobbies'], figures: AGES },
  {
    name: 'lobby',
    args: ({ lobby_id }) => ['lobby', ending(lobby_id)],
    before: usageIsThere,
    figures: [
      ...AGES,
      [/\d+\.\d\d cores/g, 'N cores'],
      [/[\d.]+ (?:[KMG]i)?B/g, 'N B'],
      [/OVER \d+ \w+/g, 'OVER TIME'],
      [/[\u2581-\u2588]+/g, 'BARS'],
      [/^players {2}\d.*$/gm, 'players  N  N  N  BARS'],
    ],
  },
  { name: 'players-list', args: ({ lobby_id }) => ['players', 'list', ending(lobby_id)], figures: AGES },
  reads('analytics', 'analytics', 'matchmaker_overview'),
  {
    name: 'search',
    args: ({ lobby_id }) => ['search', lobby_id],
    columns: WIDE,
    // Of good requests a sample is kept.
    figures: [[/^RAY .*\n(?:x{8}-.*\n?)*|^No kept request\.\n?/gm, 'RAYS\n'], ...AGES],
  },
  { name: 'usage', args: () => ['usage'], figures: [[/\d+\.\d\d/g, 'N.NN']] },
  {
    name: 'logs',
    args: ({ lobby_id }) => ['logs', '--lobby', ending(lobby_id)],
    before: logsAreThere,
    is_sorted: 'The lines of two streams of the server come in any order.',
  },
  {
    name: 'console',
    args: ({ lobby_id }) => ['console', ending(lobby_id)],
    types: async (screen) => {
      await screen.shows('the map has no water')
      screen.type('hello\r')
      await screen.shows('read hello')
      await screen.shows('input by')
      screen.type(CTRL_D)
    },
    is_sorted: 'The lines of two streams of the server come in any order.',
    input: () => 'good\nbye\n',
  },
  { name: 'find', args: () => ['find'] },
  {
    name: 'rays',
    args: () => ['rays', '--code', UNKNOWN_MODE],
    before: refusedFind,
    columns: WIDE,
    figures: AGES,
  },
  { name: 'explain', args: async (world) => ['explain', await explainedRay(world)] },
  {
    name: 'swarm',
    args: () => ['swarm', '2', '--pattern', 'burst', '--duration', '2s'],
    // One line a second, which depends on how fast the bots are.
    figures: [[/^\d+ players?, \d+ refusals?\n/gm, '']],
  },
  { name: 'players-remove', args: leaving, piped: leaving },
  { name: 'drain', args: () => ['drain', 'v1'], piped: () => ['drain', 'v1', '--undo'] },
  {
    name: 'stop',
    args: ({ lobby_id }) => ['stop', ending(lobby_id)],
    types: agrees,
    piped: async ({ play }) => ['stop', ending((await play()).lobby_id), '--yes'],
  },
]

/** The runner measures lobbies every few seconds. */
async function usageIsThere({ muster, lobby_id }: WatchWorld): Promise<void> {
  await until('the usage of the lobby is there', async () => {
    const { stdout } = await muster.run(['lobby', lobby_id])
    return stdout.includes('COURSE')
  })
}

async function logsAreThere({ muster, lobby_id }: WatchWorld): Promise<void> {
  await until('the log is there', async () => {
    const { stdout } = await muster.run(['logs', '--lobby', lobby_id])
    return ['the map is loaded', 'no brain', 'no water'].every((words) => stdout.includes(words))
  })
}

async function refusedFind({ cloud, muster, namespace_id }: WatchWorld): Promise<void> {
  const body = { game_modes: ['nowhere'], namespace_id, clients: [{ address: '198.51.100.7' }] }
  await cloud.call(findLobby, { body }).catch(() => undefined)
  await until('the refused find is listed', async () => {
    const { rays } = (await muster.json(['rays', '--code', UNKNOWN_MODE])) as { rays: unknown[] }
    return rays.length > 0
  })
}

async function explainedRay({ muster, platform }: WatchWorld): Promise<string> {
  const { rays } = (await muster.json(['rays', '--code', UNKNOWN_MODE])) as { rays: { ray_id: string }[] }
  const { ray_id } = rays[0]!
  await until('the explanation is written', () =>
    platform.client.call(explainRay, { params: { ray_id } }).catch(() => false),
  )
  return ray_id
}

async function leaving({ play }: WatchWorld): Promise<string[]> {
  const { lobby_id, player_id } = await play()
  return ['players', 'remove', player_id, '--lobby', ending(lobby_id)]
}

export async function openWatchWorld(t: TestContext): Promise<WatchWorld> {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const { client } = platform
  const project = await createProject(t, platform, {
    game: 'arena',
    matchmaker: MATCHMAKER,
    server: { 'server.mjs': SERVER },
  })
  await project.deploy('--detach')
  const { game_id } = project
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const { token } = await client.call(createCloudToken, { params: { game_id } })
  const cloud = platform.as(token)
  const lobby_ids = new Set<string>()
  const play = async (): Promise<{ lobby_id: string; player_id: string }> => {
    const body = { game_modes: ['default'], namespace_id, clients: [{ address: '198.51.100.7' }] }
    const { lobby, ports, player } = await cloud.call(findLobby, { body })
    lobby_ids.add(lobby.lobby_id)
    const path = new URL(ports.game!.url).pathname.replace(/\/$/, '')
    const socket = new WebSocket(`${platform.edge_url.replace('http', 'ws')}${path}/?token=${player.token}`)
    socket.on('error', () => undefined)
    t.after(() => socket.terminate())
    await once(socket, 'open')
    const { players } = await client.call(listMatchmakerLobbyPlayers, {
      params: { game_id, lobby_id: lobby.lobby_id },
    })
    return { lobby_id: lobby.lobby_id, player_id: players.at(-1)!.player_id }
  }
  const [{ lobby_id }] = [await play(), await play()]
  await until('both players are listed', async () => {
    const { lobbies } = await client.call(getAnalyticsMatchmakerLive, { params: { game_id, namespace_id } })
    return lobbies[0]?.total_player_count === 2
  })
  const hidden = (): [string, string][] =>
    [...lobby_ids].flatMap((id): [string, string][] => [
      [id.slice(-12), 'LOBBY'.padEnd(12, '.')],
      [id.slice(-8), 'LOBBY'.padEnd(8, '.')],
    ])
  const muster = { ...project.muster, ...inFolder(project) }
  return { muster, platform, game_id, namespace_id, lobby_id, cloud, play, hidden }
}
