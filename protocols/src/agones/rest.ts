// The Agones SDK over REST, with the JSON of its gateway: names in snake_case, empty members present, int64 as strings.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type JsonObject, type JsonValue, type Message, toJson } from '@bufbuild/protobuf'
import { WebSocketServer } from 'ws'
import { BODY_BYTES_MAX, sendJson } from '../http-body.ts'
import { CallError } from './call-error.ts'
import { CALLS, type Call, type Request, runCall } from './calls.ts'
import { CORE, GAME_SERVER } from './descriptors.ts'
import type { GameServer } from './game-server.ts'
import { readBody, requireRequest, sendRefusal } from './json-calls.ts'

const WATCH_PATH = '/watch/gameserver'
const LIST_MEMBERS = ['name', 'capacity', 'values']

type Route = { verb: string; pattern: RegExp; param: string | null; call: Call | 'health' | 'watch' }

const ROUTES: readonly Route[] = [
  ...CALLS.map((call) => routeOf(call.verb, call.path, call)),
  routeOf('POST', '/health', 'health'),
  routeOf('GET', WATCH_PATH, 'watch'),
]

const WEB_SOCKETS = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: BODY_BYTES_MAX,
})

export async function serveRest(server: GameServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { route, param } = findRoute(request)
    if (route.call === 'watch') return await streamLines(server, response)
    const body = await readBody(request)
    if (route.call === 'health') {
      if (body === undefined) throw new CallError('INVALID_ARGUMENT', 'the body is empty; send {}')
      requireRequest(CORE.method.health!.input, body)
      server.ping()
      return sendJson(response, 200, {})
    }
    const result = await runCall(route.call, server, decode(route, body, param))
    sendJson(response, 200, jsonOf(route.call.method.output, result))
  } catch (error) {
    sendRefusal(response, server.refusalOf(error))
  }
}

export function serveWebSocket(server: GameServer, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  socket.on('error', () => undefined)
  if (pathOf(request) !== WATCH_PATH) {
    socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    return
  }
  const gone = new AbortController()
  let objects: AsyncGenerator<Message>
  try {
    objects = server.watch(gone.signal)
  } catch {
    socket.end('HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    return
  }
  socket.once('close', () => gone.abort())
  WEB_SOCKETS.handleUpgrade(request, socket, head, async (client) => {
    client.on('error', () => gone.abort())
    for await (const object of objects)
      await new Promise<void>((resolve) => client.send(watchText(object), () => resolve()))
    client.close(1000)
  })
}

async function streamLines(server: GameServer, response: ServerResponse): Promise<void> {
  const gone = new AbortController()
  const objects = server.watch(gone.signal)
  response.once('close', () => gone.abort())
  response.writeHead(200, { 'content-type': 'application/json' })
  try {
    for await (const object of objects)
      if (!response.write(`${watchText(object)}\n`)) await once(response, 'drain', { signal: gone.signal })
  } catch {
    // The reader has gone while a line waited for it.
  }
  response.end()
}

function watchText(object: Message): string {
  return JSON.stringify({ result: jsonOf(GAME_SERVER, object) })
}

function jsonOf(schema: Parameters<typeof toJson>[0], message: Message): JsonValue {
  const json = toJson(schema, message, { alwaysEmitImplicit: true, useProtoFieldName: true }) as JsonObject
  // The gateway writes null for a message that is not set. No other response has one.
  if (schema === GAME_SERVER) json.status = { players: null, ...(json.status as JsonObject) }
  return json
}

function routeOf(verb: string, path: string, call: Route['call']): Route {
  const param = /\{(\w+)\}/.exec(path)?.[1] ?? null
  return { verb, param, call, pattern: new RegExp(`^${path.replace(/\{\w+\}/, '([^/:]+)')}$`) }
}

function findRoute(request: IncomingMessage): { route: Route; param: string | null } {
  const path = pathOf(request)
  const routes = ROUTES.filter(({ pattern }) => pattern.test(path))
  if (routes.length === 0) throw new CallError('NOT_FOUND', 'Not Found')
  const route = routes.find(({ verb }) => verb === request.method)
  if (route === undefined) throw new CallError('UNIMPLEMENTED', 'Method Not Allowed')
  const param = route.pattern.exec(path)![1]
  try {
    return { route, param: param === undefined ? null : decodeURIComponent(param) }
  } catch {
    throw new CallError('INVALID_ARGUMENT', 'the path is not valid percent-encoding')
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0]!
}

/** The request of a call. Without a body all its members have their defaults. */
function decode({ call, param: name }: Route, body: JsonValue | undefined, param: string | null): Request {
  const { method, body: member, verb } = call as Call
  const json = verb === 'GET' || body === undefined ? {} : body
  const whole = member === null ? json : { [member]: json, ...(member === 'list' && { update_mask: maskOf(json) }) }
  const message = requireRequest(method.input, whole)
  const target = member === null ? message : (message[member] as Record<string, unknown> | undefined)
  if (target === undefined) throw new CallError('INVALID_ARGUMENT', 'the body must be an object')
  if (name !== null) target[name] = param
  return message as Request
}

/** The gateway changes those members of a list that the body has. */
function maskOf(json: JsonValue): string {
  const members = typeof json === 'object' && json !== null ? Object.keys(json) : []
  return LIST_MEMBERS.filter((member) => members.includes(member)).join()
}
