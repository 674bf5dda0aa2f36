// The calls of the Agones SDK that have one request and one response, each with its REST route.
import { create, type DescMethod, type DescService, type Message } from '@bufbuild/protobuf'
import { CallError } from './call-error.ts'
import { ALPHA, BETA, CORE } from './descriptors.ts'
import type { GameServer } from './game-server.ts'

export type Call = {
  method: DescMethod
  verb: 'GET' | 'POST' | 'PUT' | 'PATCH'
  /** A part in braces is a member of the request, or of its `body`. */
  path: string
  /** The member of the request that the HTTP body has; null: the body is the request. */
  body: string | null
  /** Returns the response, its members, or a promise of them. Undefined: a response without members. */
  run(server: GameServer, request: Request): unknown
}

/** Runs a call to its end and returns its response. */
export async function runCall(call: Call, server: GameServer, request: Request): Promise<Message> {
  const members = ((await call.run(server, request)) ?? {}) as Record<string, unknown>
  return create(call.method.output, members)
}

/** The members that requests have. A decoded request has those of its message, with their defaults. */
export type Request = {
  key: string
  value: string
  seconds: bigint
  name: string
  count: bigint
  playerID: string
  counterUpdateRequest?: { name: string; count?: bigint; capacity?: bigint; countDiff: bigint }
  list?: { name: string; capacity: bigint; values: string[] }
  updateMask?: { paths: string[] }
}

export const CALLS: readonly Call[] = [
  call(CORE, 'ready', 'POST /ready', (server) => server.ready()),
  call(CORE, 'allocate', 'POST /allocate', (server) => server.allocate()),
  call(CORE, 'shutdown', 'POST /shutdown', (server) => server.shutdown()),
  call(CORE, 'reserve', 'POST /reserve', (server, { seconds }) => server.reserve(seconds)),
  call(CORE, 'getGameServer', 'GET /gameserver', (server) => server.object()),
  call(CORE, 'setLabel', 'PUT /metadata/label', (server, { key, value }) => server.setLabel(key, value)),
  call(CORE, 'setAnnotation', 'PUT /metadata/annotation', (server, { key, value }) => server.setAnnotation(key, value)),

  call(BETA, 'getCounter', 'GET /v1beta1/counters/{name}', (server, { name }) => ({ name, ...server.counter(name) })),
  call(BETA, 'updateCounter', 'PATCH /v1beta1/counters/{name}', updateCounter, 'counterUpdateRequest'),
  call(BETA, 'getList', 'GET /v1beta1/lists/{name}', (server, { name }) => listOf(name, server.list(name))),
  call(BETA, 'updateList', 'PATCH /v1beta1/lists/{name}', updateList, 'list'),
  call(BETA, 'addListValue', 'POST /v1beta1/lists/{name}:addValue', async (server, { name, value }) =>
    listOf(name, await server.addValue(name, value)),
  ),
  call(BETA, 'removeListValue', 'POST /v1beta1/lists/{name}:removeValue', async (server, { name, value }) =>
    listOf(name, await server.removeValue(name, value)),
  ),

  call(ALPHA, 'playerConnect', 'POST /alpha/player/connect', async (server, { playerID }) => ({
    bool: await server.connectPlayer(playerID),
  })),
  call(ALPHA, 'playerDisconnect', 'POST /alpha/player/disconnect', async (server, { playerID }) => ({
    bool: await server.disconnectPlayer(playerID),
  })),
  call(ALPHA, 'setPlayerCapacity', 'PUT /alpha/player/capacity', (server, { count }) =>
    server.setPlayerCapacity(count),
  ),
  call(ALPHA, 'getPlayerCapacity', 'GET /alpha/player/capacity', (server) => ({ count: server.players().capacity })),
  call(ALPHA, 'getPlayerCount', 'GET /alpha/player/count', (server) => ({
    count: BigInt(server.players().ids.length),
  })),
  call(ALPHA, 'isPlayerConnected', 'GET /alpha/player/connected/{playerID}', (server, { playerID }) => ({
    bool: server.players().ids.includes(playerID),
  })),
  call(ALPHA, 'getConnectedPlayers', 'GET /alpha/player/connected', (server) => ({ list: [...server.players().ids] })),
]

function call(service: DescService, name: string, route: string, run: Call['run'], body: string | null = null): Call {
  const [verb, path] = route.split(' ') as [Call['verb'], string]
  return { method: service.method[name]!, verb, path, body, run }
}

function updateCounter(server: GameServer, { counterUpdateRequest }: Request): object {
  if (counterUpdateRequest === undefined) throw new CallError('INVALID_ARGUMENT', 'counterUpdateRequest is required')
  const { name, count, capacity, countDiff } = counterUpdateRequest
  return { name, ...server.updateCounter(name, { count, capacity, diff: countDiff }) }
}

/** Agones returns an empty list. */
async function updateList(server: GameServer, { list, updateMask }: Request): Promise<object> {
  if (list === undefined) throw new CallError('INVALID_ARGUMENT', 'list is required')
  if (updateMask === undefined) throw new CallError('INVALID_ARGUMENT', 'update_mask is required')
  await server.updateList(list.name, list, updateMask.paths)
  return {}
}

function listOf(name: string, { capacity, values }: { capacity: number; values: readonly string[] }): object {
  return { name, capacity: BigInt(capacity), values: [...values] }
}
