// Measures the data path of the edge against HAProxy and nginx, each one process or thread in front of the same backend.
// They take turns on one machine. Client, proxy and backend share its cores, so only the ratios are meaningful.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { median } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { insertLobby } from './lobby.ts'
import { startPeers } from './peers.ts'
import {
  datagramsPerSecond,
  dial,
  frameOf,
  megabytesPerSecond,
  openWebSocket,
  requestsPerSecond,
  tripMs,
} from './rounds.ts'
import { byTurns, ratio, report } from './turns.ts'

const HTTP_GOAL = 0.8
const UDP_GOAL = 0.8
const WEBSOCKET_ABOVE_MS_GOAL = 0.2
const IDLE_WEBSOCKETS = 9_000
/** Opened and closed before, so that what the first connections load is not counted. */
const WARM_UP_WEBSOCKETS = 200
const IDLE_KB_GOAL = 16
/** One address may have at most half of all connections. */
const IDLE_SOURCES = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'] as const
const OPENING_MAX = 64
const SETTLE_MS = 3_000

type Targets = {
  backend: Awaited<ReturnType<typeof startBackend>>
  peers: Awaited<ReturnType<typeof startPeers>>
  lobby: Awaited<ReturnType<typeof insertLobby>>
  /** The host of the lobby. */
  host: string
  config: BenchPlatform['config']
}

export async function run(): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const backend = await startBackend()
  opened.defer(() => backend.stop())
  const platform = await startPlatform(['edge'])
  opened.defer(() => platform.stop())
  const lobby = await insertLobby(platform, backend)
  const peers = await startPeers(backend)
  opened.defer(() => peers.stop())
  const host = hostOf(lobby.lobby_id)
  const targets = { backend, peers, lobby, host, config: platform.config }
  await compareRequests(targets)
  await compareStreams(targets)
  await compareWebSockets(targets)
  // A new process: the memory that the rounds above left free would hold the connections.
  const idle = await startPlatform(['edge'])
  opened.defer(() => idle.stop())
  const { lobby_id } = await insertLobby(idle, backend)
  await holdIdle(idle, idle.config.edge_http_port, hostOf(lobby_id))
}

const hostOf = (lobby_id: string): string => `${lobby_id}-game.lobby.local.localhost`

/** HTTP and HTTPS. */
async function compareRequests({ backend, peers, lobby, host, config }: Targets): Promise<void> {
  const { edge_http_port, edge_https_port } = config
  const url = (port: number, scheme = 'http') => `${scheme}://localhost:${port}/`
  const http = await byTurns({
    direct: () => requestsPerSecond(url(backend.tcp)),
    edge: () => requestsPerSecond(url(edge_http_port), host),
    haproxy: () => requestsPerSecond(url(peers.haproxy.http)),
    nginx: () => requestsPerSecond(url(peers.nginx.http)),
  })
  report('HTTP, requests a second', http)
  verdict('HTTP: edge / HAProxy', ratio(http, 'edge', 'haproxy'), HTTP_GOAL, 'at least')

  const https = await byTurns({
    edge: () => requestsPerSecond(`${url(edge_https_port, 'https')}lobbies/${lobby.lobby_id}/game/`),
    haproxy: () => requestsPerSecond(url(peers.haproxy.https, 'https')),
    nginx: () => requestsPerSecond(url(peers.nginx.https, 'https')),
  })
  report('HTTPS, requests a second', https)
  console.log(`  HTTPS: edge / HAProxy: ${ratio(https, 'edge', 'haproxy').toFixed(2)}`)
}

/** Raw UDP and TCP. */
async function compareStreams({ backend, peers, lobby, config }: Targets): Promise<void> {
  const raw_host = config.edge_ports.host ?? '127.0.0.1'
  const udp = await byTurns({
    direct: () => datagramsPerSecond(backend.udp),
    edge: () => datagramsPerSecond(lobby.udp, raw_host),
    nginx: () => datagramsPerSecond(peers.nginx.udp),
  })
  report('UDP, round trips a second', udp)
  verdict('UDP: edge / nginx', ratio(udp, 'edge', 'nginx'), UDP_GOAL, 'at least')

  const tcp = await byTurns({
    direct: () => megabytesPerSecond(backend.tcp),
    edge: () => megabytesPerSecond(lobby.tcp, raw_host),
    haproxy: () => megabytesPerSecond(peers.haproxy.tcp),
    nginx: () => megabytesPerSecond(peers.nginx.tcp),
  })
  report('TCP, MB a second there and back', tcp)

  const ping = Buffer.from('ping')
  const tcpTrip = (port: number, at?: string) => () =>
    withSocket(dial(port, undefined, at), (socket) => tripMs(socket, ping))
  const tcp_trips = await byTurns({
    direct: tcpTrip(backend.tcp),
    edge: tcpTrip(lobby.tcp, raw_host),
    haproxy: tcpTrip(peers.haproxy.tcp),
    nginx: tcpTrip(peers.nginx.tcp),
  })
  report('TCP, ms a round trip', tcp_trips)
}

async function compareWebSockets({ backend, host, config }: Targets): Promise<void> {
  const { edge_http_port } = config
  const frame = frameOf('ping')
  const webSocketTrip = (port: number) => () => withSocket(openWebSocket(port, host), (socket) => tripMs(socket, frame))
  const trips = await byTurns({ direct: webSocketTrip(backend.tcp), edge: webSocketTrip(edge_http_port) })
  report('WebSocket, ms a round trip', trips)
  const above = median(trips.edge!.map((trip, round) => trip - trips.direct![round]!))
  verdict('WebSocket: p50 above direct, ms', above, WEBSOCKET_ABOVE_MS_GOAL, 'at most')
}

async function withSocket(opening: Promise<Socket>, measure: (socket: Socket) => Promise<number>): Promise<number> {
  const socket = await opening
  try {
    return await measure(socket)
  } finally {
    socket.destroy()
  }
}

/** Prints by how much the edge's process grows for each idle WebSocket. */
async function holdIdle(platform: BenchPlatform, port: number, host: string): Promise<void> {
  const process_id = platform.processes.edge!.pid!
  const first = await Promise.all(Array.from({ length: WARM_UP_WEBSOCKETS }, () => openWebSocket(port, host)))
  for (const socket of first) socket.destroy()
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const before_kb = await residentKb(process_id)
  const sockets: Socket[] = []
  const next = Array.from({ length: IDLE_WEBSOCKETS }, (_, index) => IDLE_SOURCES[index % IDLE_SOURCES.length]).values()
  const openSome = async (): Promise<void> => {
    for (const source of next) sockets.push(await openWebSocket(port, host, source))
  }
  await Promise.all(Array.from({ length: OPENING_MAX }, openSome))
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const kb = ((await residentKb(process_id)) - before_kb) / sockets.length
  const frame = frameOf('still there')
  let answered = 0
  await Promise.all(
    sockets.map(async (socket) => {
      const answer = once(socket, 'data')
      socket.write(frame)
      await answer
      answered++
    }),
  )
  for (const socket of sockets) socket.destroy()
  console.log(`\n  ${answered} of ${IDLE_WEBSOCKETS} idle WebSockets still respond`)
  if (kb <= 0) throw new Error(`the edge shrank by ${-kb} KB for each WebSocket: nothing was measured`)
  verdict('KB of memory for an idle WebSocket', kb, IDLE_KB_GOAL, 'at most')
}

async function residentKb(process_id: number): Promise<number> {
  const status = await readFile(`/proc/${process_id}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1])
}

async function startBackend(): Promise<{ tcp: number; udp: number; stop: () => void }> {
  const program = fileURLToPath(new URL('backend.ts', import.meta.url))
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const [tcp, udp] = String(line).trim().split(' ').map(Number) as [number, number]
  return { tcp, udp, stop: () => child.stdin.end() }
}
