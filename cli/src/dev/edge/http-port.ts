// An HTTP port of the lobby of `muster dev`: requests and WebSockets pass to the server with the headers of the edge. Where
// the edge checks the seats, it admits players by the code of the platform.
import { once } from 'node:events'
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError, errorBody } from '@musterhost/contract'
import { type AdmissibleRequest, HttpAdmission, headerOf, linesWithout, READABLE } from '@musterhost/contract/edge'
import { clientOf, connectToServer, type DevPort, type OpenDevPort } from './port.ts'

/** `response`: null for an upgrade, whose response is written to the socket. */
type DevRequest = AdmissibleRequest & {
  incoming: IncomingMessage
  response: ServerResponse | null
  connection: { readonly socket: Socket }
}

/** Headers about one connection, and those that the edge writes itself. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['http2-settings', 'upgrade', 'expect', 'x-forwarded-for', 'x-forwarded-proto'],
])
/** The same of a response. */
const DROPPED_OF_RESPONSE: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'upgrade'])
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

export async function openHttpPort(port: DevPort): Promise<OpenDevPort> {
  const connections = new WeakMap<Socket, DevRequest['connection']>()
  const admission = new HttpAdmission<DevRequest>({
    players: port.seats,
    endWebSockets: (player_id, port_name) => port.pairs.endOf(`${player_id} ${port_name}`),
    breakOff: (socket) => void socket.destroy(),
    sendPreflight: ({ response }, headers) => response?.writeHead(204, headers).end(),
  })
  const sockets = new Set<Duplex>()

  const open = (incoming: IncomingMessage, response: ServerResponse | null): DevRequest => {
    const { socket } = incoming
    const connection = connections.get(socket) ?? { socket, player: null }
    connections.set(socket, connection)
    return {
      ...{ incoming, response, connection, path: incoming.url ?? '/', method: incoming.method ?? 'GET' },
      head: { lines: linesOf(incoming.rawHeaders, DROPPED), is_upgrade: response === null },
      ...{ player_lines: '', token_protocol: null, is_over: false },
    }
  }
  /** Null: the request has its response. */
  const admit = async (request: DevRequest): Promise<{ local_address: string | null } | null> => {
    if (port.admission === null) return { local_address: null }
    const { lobby_id, name, player_network } = port
    const address = { admission: port.admission, ...(player_network !== null && { player_network }) }
    const admitted = await admission.admit(request, { lobby_id, port_name: name }, address)
    return admitted && { local_address: admitted.local_address ?? null }
  }

  const server = createServer((incoming, response) => {
    const request = open(incoming, response)
    const work = async (): Promise<void> => {
      const admitted = await admit(request)
      if (admitted === null || request.is_over) return
      const [outgoing, upstream] = await send(port, request, admitted.local_address)
      response.once('close', () => upstream.destroy())
      // A server may respond before it has the whole body, and close.
      pipeline(incoming, outgoing).catch(() => {})
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
      await passOn(request, answer, response)
    }
    work().catch((error: unknown) => refuse(request, error))
  })
  server.on('upgrade', (incoming, socket: Duplex, rest) => {
    socket.on('error', () => {})
    const request = open(incoming, null)
    const work = async (): Promise<void> => {
      const admitted = await admit(request)
      if (admitted === null || request.is_over) return
      const [outgoing, upstream] = await send(port, request, admitted.local_address)
      socket.once('close', () => upstream.destroyed || upstream.destroySoon())
      outgoing.end()
      await Promise.race([
        once(outgoing, 'upgrade').then((parts) => {
          joinWebSocket(port, request, socket as Socket, rest, parts as [IncomingMessage, Socket, Buffer])
        }),
        once(outgoing, 'response').then(([answer]) => refuseWebSocket(answer as IncomingMessage, socket)),
      ])
    }
    work().catch((error: unknown) => refuse(request, error))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen({ port: port.public, host: port.bind })
  await once(server, 'listening')
  return {
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Sends the head of the request to the server. It waits for a server that starts again. */
async function send(
  port: DevPort,
  { incoming, head, path, method, player_lines }: DevRequest,
  local_address: string | null,
): Promise<[outgoing: ClientRequest, upstream: Socket]> {
  const socket = await connectToServer(port.listening, local_address, incoming.socket)
  const client = clientOf(incoming.socket.remoteAddress)
  const connection = head.is_upgrade ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n' : 'Connection: keep-alive\r\n'
  const isFraming = (name: string): boolean => name === 'content-length' || name === 'transfer-encoding'
  const own = linesWithout(head.lines, (name) => !isFraming(name))
  const framing = own !== '' || METHODS_WITHOUT_BODY.has(method) ? own : 'Content-Length: 0\r\n'
  const rest = linesWithout(head.lines, isFraming)
  const lines = `${rest}X-Forwarded-For: ${client}\r\nX-Forwarded-Proto: http\r\n${player_lines}${connection}${framing}`
  const outgoing = requestHttp({ createConnection: () => socket, method, path, headers: headersOf(lines) })
  // After the response has begun, its reader gets the error.
  outgoing.on('error', () => {})
  return [outgoing, socket]
}

async function passOn({ player_lines }: DevRequest, answer: IncomingMessage, response: ServerResponse): Promise<void> {
  const lines = linesOf(answer.rawHeaders, DROPPED_OF_RESPONSE)
  const is_silent = player_lines !== '' && headerOf({ lines }, 'access-control-allow-origin') === undefined
  const cors = is_silent ? READABLE.slice(0, 2) : []
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, [...headersOf(lines), ...cors])
  await pipeline(answer, response)
}

/** The server has accepted the WebSocket. */
function joinWebSocket(
  { name, pairs }: DevPort,
  { connection, token_protocol }: DevRequest,
  client: Socket,
  sent: Buffer,
  [answer, upstream, received]: [IncomingMessage, Socket, Buffer],
): void {
  const lines = linesOf(answer.rawHeaders, DROPPED_OF_RESPONSE)
  const has_protocol = headerOf({ lines }, 'sec-websocket-protocol') !== undefined
  const protocol = token_protocol === null || has_protocol ? '' : `Sec-WebSocket-Protocol: ${token_protocol}\r\n`
  const head = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines}${protocol}\r\n`
  client.write(head, 'latin1')
  if (received.length > 0) client.write(received)
  if (sent.length > 0) upstream.write(sent)
  const player_id = connection.player?.player_id
  pairs.join(client, upstream, player_id === undefined ? null : `${player_id} ${name}`)
}

/** The server responds to the WebSocket by a plain response. */
async function refuseWebSocket(answer: IncomingMessage, client: Duplex): Promise<void> {
  const lines = linesWithout(linesOf(answer.rawHeaders, DROPPED_OF_RESPONSE), (name) => name === 'transfer-encoding')
  client.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${lines}Connection: close\r\n\r\n`, 'latin1')
  await pipeline(answer, client)
}

/** As the edge refuses: pages of every origin can read it. */
function refuse({ response, connection }: DevRequest, error: unknown): void {
  const refusal = error instanceof ApiError ? error : new ApiError('LOBBY_NOT_REACHABLE')
  const body = JSON.stringify(errorBody(refusal, { ray_id: '', main_url: '' }))
  const headers = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'no-store', ...READABLE]
  if (response === null) {
    const lines = linesOf(
      [...headers, 'content-length', String(Buffer.byteLength(body)), 'connection', 'close'],
      new Set(),
    )
    connection.socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines}\r\n${body}`)
  } else if (response.headersSent) response.destroy()
  else response.writeHead(refusal.status, headers).end(body)
}

/** Names and values in turn, as lines. */
function linesOf(headers: readonly string[], dropped: ReadonlySet<string>): string {
  let lines = ''
  for (let index = 0; index < headers.length; index += 2) {
    if (!dropped.has(headers[index]!.toLowerCase())) lines += `${headers[index]}: ${headers[index + 1]}\r\n`
  }
  return lines
}

function headersOf(lines: string): string[] {
  return lines
    .split('\r\n')
    .filter((line) => line !== '')
    .flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
}
