// The Agones SDK over gRPC. One router serves all lobbies.
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Message } from '@bufbuild/protobuf'
import {
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import { CALLS, type Call, type Request, runCall } from './calls.ts'
import { ALPHA, BETA, CORE } from './descriptors.ts'
import type { GameServer } from './game-server.ts'

/** Bytes of one message. */
const MESSAGE_BYTES_MAX = 64 * 1024

const SERVER = createContextKey<GameServer | null>(null)
let handlers: Map<string, UniversalHandler> | null = null

export function serveGrpc(server: GameServer, request: Http2ServerRequest, response: Http2ServerResponse): void {
  handlers ??= createHandlers()
  const handler = handlers.get(request.url.split('?', 1)[0]!)
  if (handler === undefined) {
    response.writeHead(404).end()
    return
  }
  // The client keeps its deadlines itself. The router would make a timer of any length.
  delete request.headers['grpc-timeout']
  const values = createContextValues().set(SERVER, server)
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, values)
    handler(universal)
      .then((result) => universalResponseToNodeResponse(result, response))
      // The client has gone, or its stream is broken.
      .catch(() => response.stream?.destroy())
  } catch {
    // The request has no authority, or a header that is no header.
    response.writeHead(400).end()
  }
}

function createHandlers(): Map<string, UniversalHandler> {
  const router = createConnectRouter({
    grpc: true,
    grpcWeb: false,
    connect: false,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
  })
  for (const service of [CORE, BETA, ALPHA]) addService(router, service)
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]))
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
