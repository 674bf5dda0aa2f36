// The Agones SDK over gRPC. One router serves all lobbies.
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Message } from '@bufbuild/protobuf'
import {
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { CALLS, type Call, type Request, runCall } from './calls.ts'
import { ALPHA, BETA, CORE } from './descriptors.ts'
import type { GameServer } from './game-server.ts'
import { createGrpcRouter, handlersOf, runHandler } from './grpc-calls.ts'

const SERVER = createContextKey<GameServer | null>(null)
let handlers: ReadonlyMap<string, UniversalHandler> | null = null

export function serveGrpc(server: GameServer, request: Http2ServerRequest, response: Http2ServerResponse): void {
  handlers ??= createHandlers()
  runHandler(handlers, request, response, createContextValues().set(SERVER, server))
}

function createHandlers(): ReadonlyMap<string, UniversalHandler> {
  const router = createGrpcRouter()
  for (const service of [CORE, BETA, ALPHA]) addService(router, service)
  return handlersOf(router)
}

function addService(router: ConnectRouter, service: typeof CORE): void {
  const unary = CALLS.filter(({ method }) => method.parent === service)
  const implementation: Record<string, unknown> = Object.fromEntries(
    unary.map((call) => [
      call.method.localName,
      (request: Message, context: HandlerContext) => run(call, request, context),
    ]),
  )
  if (service === CORE) {
    implementation.health = health
    implementation.watchGameServer = watch
  }
  router.service(service, implementation as ServiceImpl<typeof service>)
}

async function run(call: Call, request: Message, context: HandlerContext): Promise<Message> {
  const server = context.values.get(SERVER)!
  try {
    return await runCall(call, server, request as unknown as Request)
  } catch (error) {
    throw refusal(server, error)
  }
}

/** The stream of pings stays open as long as the server runs. */
async function health(pings: AsyncIterable<Message>, context: HandlerContext): Promise<object> {
  const server = context.values.get(SERVER)!
  for await (const _ of pings) server.ping()
  return {}
}

async function* watch(_request: Message, context: HandlerContext): AsyncGenerator<Message> {
  const server = context.values.get(SERVER)!
  let objects: AsyncGenerator<Message>
  try {
    objects = server.watch(context.signal)
  } catch (error) {
    throw refusal(server, error)
  }
  yield* objects
}

function refusal(server: GameServer, error: unknown): ConnectError {
  const { message, code } = server.refusalOf(error)
  return new ConnectError(message, code)
}
