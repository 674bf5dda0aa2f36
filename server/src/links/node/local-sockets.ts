// What a joined machine offers to its own processes: a unix socket that is the PostgreSQL of the platform, one for stored
// files and tokens of lobbies, and the port where lobbies reach the platform. Everything goes over the link. While the link
// is down, connections are closed at once.
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { bareHost } from '../../text/bare-host.ts'
import { edgeSocketPath } from '../names.ts'
import { readPortLine } from '../port-line.ts'
import { joinStreams, responseOf } from '../streams.ts'

/** The calls that processes of this machine may make. */
const LOCAL_CALL = /^\/(objects\/[0-9a-f]{32}|lobby-tokens|edge-keys|certificate-keys)$/
/** Connections of lobbies to the platform. */
const LOBBY_CONNECTIONS_MAX = 4_096

export type LocalSockets = { database_folder: string; platform_path: string; close: () => Promise<void> }

type Options = {
  /** Only this user can enter it. */
  folder: string
  lobby_api: { host: string; port: number }
  calls: () => ClientHttp2Session | null
  /** What the edge of this machine forwards. */
  edge: () => ClientHttp2Session | null
}

export async function openLocalSockets({ folder, lobby_api, calls, edge }: Options): Promise<LocalSockets> {
  const postgres_path = join(folder, '.s.PGSQL.5432')
  const platform_path = join(folder, 'platform.sock')
  const carry = (path: string) => (socket: Socket) => carrySocket(calls(), path, socket)
  const sockets = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true }
  const postgres = createServer(sockets, carry('/postgres'))
  const lobbies = createServer(sockets, carry('/lobby-api'))
  lobbies.maxConnections = LOBBY_CONNECTIONS_MAX
  const platform = createHttpServer((request, response) => void forward(calls(), request, response))
  await listenAt(postgres, postgres_path)
  await listenAt(platform, platform_path)
  const of_edge = await openEdgeSockets(folder, edge)
  lobbies.listen({ host: bareHost(lobby_api.host), port: lobby_api.port })
  await once(lobbies, 'listening')
  return {
    database_folder: folder,
    platform_path,
    async close() {
      for (const server of [postgres, lobbies, platform, ...of_edge]) server.close()
      platform.closeAllConnections()
    },
  }
}

/** For the edge of this machine. */
async function openEdgeSockets(folder: string, edge: Options['edge']): Promise<Server[]> {
  const sockets = { allowHalfOpen: true, pauseOnConnect: true }
  const opened = (['api', 'matchmaker', 'link'] as const).map((name) => ({
    name,
    server: createServer(sockets, (socket) => carrySocket(edge(), `/${name}`, socket)),
  }))
  const ports = createServer({ allowHalfOpen: true }, (socket) => void carryPort(edge, socket))
  for (const { name, server } of [...opened, { name: 'ports' as const, server: ports }]) {
    await listenAt(server, edgeSocketPath(folder, name))
  }
  return [...opened.map(({ server }) => server), ports]
}

async function carryPort(edge: Options['edge'], socket: Socket): Promise<void> {
  socket.on('error', () => {})
  const wanted = await readPortLine(socket)
  const session = edge()
  if (wanted === null || session === null) return void socket.destroy()
  const { transport, lobby_id, port_name } = wanted
  const fields = { 'x-transport': transport, 'x-lobby': lobby_id, 'x-port-name': port_name }
  joinCall(socket, session.request({ ':method': 'POST', ':path': '/lobby-port', ...fields }))
}

async function listenAt(server: Server | HttpServer, path: string): Promise<void> {
  rmSync(path, { force: true })
  server.listen(path)
  await once(server, 'listening')
  chmodSync(path, 0o600)
}

function carrySocket(session: ClientHttp2Session | null, path: string, socket: Socket): void {
  socket.on('error', () => {})
  if (session === null) {
    socket.destroy()
    return
  }
  joinCall(socket, session.request({ ':method': 'POST', ':path': path }))
  socket.resume()
}

/** A refusal of the platform is no byte of the connection. */
function joinCall(socket: Socket, stream: ClientHttp2Stream): void {
  stream.once('response', ({ ':status': status }) => {
    if (status === 200) return
    socket.destroy()
    stream.destroy()
  })
  joinStreams(socket, stream)
}

/** Forwards a call of this machine's runner unchanged. */
async function forward(
  session: ClientHttp2Session | null,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const { method = 'GET', url = '', headers } = request
    if (!LOCAL_CALL.test(url)) return void response.writeHead(404).end()
    if (session === null) return void response.writeHead(503).end()
    const range = { ...(headers['x-start'] && { 'x-start': headers['x-start'], 'x-end': headers['x-end'] }) }
    const stream = session.request({ ':method': method, ':path': url, ...range }, { endStream: method !== 'POST' })
    stream.on('error', () => {})
    const head = responseOf(stream)
    if (method === 'POST') request.pipe(stream)
    const { ':status': status = 502, ...fields } = await head
    const facts = Object.entries(fields).filter(([name]) => FORWARDED.has(name))
    response.writeHead(status, Object.fromEntries(facts) as Record<string, string>)
    await pipeline(stream, response)
  } catch {
    if (response.headersSent) response.destroy()
    else response.writeHead(502).end()
  }
}

const FORWARDED: ReadonlySet<string> = new Set(['content-length', 'x-sha256', 'content-type'])
