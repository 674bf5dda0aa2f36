// The allocation service of Agones, over gRPC and REST. Who allocates what is decided by the caller of this file.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { create, fromJson, type JsonValue, type Message, toJson } from '@bufbuild/protobuf'
import { ConnectError, createConnectRouter, type HandlerContext, type ServiceImpl } from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import { type HttpRequest, type HttpResponse, pathParts, RequestError, readJson, sendJson } from '../../http-body.ts'
import type { ProtocolEndpoint } from '../../protocol.ts'
import { CallError, callErrorOf } from '../call-error.ts'
import { ALLOCATION_REQUEST, ALLOCATION_RESPONSE, ALLOCATION_SERVICE, type AllocationRequest } from './messages.ts'

const REST_PATH = 'gameserverallocation'
/** Bytes of one message. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** Allocations under way. */
const CALLS_MAX = 1_000

/** `authorization`: the header of the request; null: it has none. `signal`: the client has gone. */
export type AllocationCall = { request: AllocationRequest; authorization: string | null; signal: AbortSignal }
/** Returns the members of an AllocationResponse. Throws a CallError or a LobbyError. */
export type Allocate = (call: AllocationCall) => Promise<Record<string, unknown>>

/** `log`: receives a line for each fault of this program. */
export class AllocationEndpoint implements ProtocolEndpoint {
  readonly #allocate: Allocate
  readonly #log: (line: string) => void
  readonly #grpc: UniversalHandler
  #calls = 0

  constructor(allocate: Allocate, log: (line: string) => void) {
    this.#allocate = allocate
    this.#log = log
    const router = createConnectRouter({
      grpc: true,
      grpcWeb: false,
      connect: false,
      acceptCompression: [],
      readMaxBytes: MESSAGE_BYTES_MAX,
    })
    const handler = { allocate: (request: Message, context: HandlerContext) => this.#overGrpc(request, context) }
    router.service(ALLOCATION_SERVICE, handler as unknown as ServiceImpl<typeof ALLOCATION_SERVICE>)
    this.#grpc = router.handlers[0]!
  }

  request(request: HttpRequest, response: HttpResponse): void {
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    const is_grpc = request.headers['content-type']?.startsWith('application/grpc') === true
    if (is_grpc && request.httpVersionMajor === 2)
      this.#serveGrpc(request as Http2ServerRequest, response as Http2ServerResponse)
    else void this.#serveRest(request as IncomingMessage, response as ServerResponse)
  }

  /** Allocations under way go on to their end. */
  close(): void {}

  #serveGrpc(request: Http2ServerRequest, response: Http2ServerResponse): void {
    if (request.url.split('?', 1)[0] !== this.#grpc.requestPath) {
      response.writeHead(404).end()
      return
    }
    try {
      this.#grpc(universalRequestFromNodeRequest(request, response, undefined, undefined))
        .then((result) => universalResponseToNodeResponse(result, response))
        // The client has gone, or its stream is broken.
        .catch(() => response.stream?.destroy())
    } catch {
      // The request has no authority, or a header that is no header.
      response.writeHead(400).end()
    }
  }

  async #overGrpc(request: Message, { requestHeader, signal }: HandlerContext): Promise<Message> {
    try {
      const authorization = requestHeader.get('authorization')
      return await this.#call({ request: request as unknown as AllocationRequest, authorization, signal })
    } catch (error) {
      const { message, code } = callErrorOf(error, this.#log)
      throw new ConnectError(message, code)
    }
  }

  async #serveRest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      if (pathParts(request).join('/') !== REST_PATH) throw new CallError('NOT_FOUND', 'Not Found')
      if (request.method !== 'POST') throw new CallError('UNIMPLEMENTED', 'Method Not Allowed')
      const asked = requestOf((await readBody(request)) ?? {})
      const authorization = request.headers.authorization ?? null
      const allocated = await this.#call({ request: asked, authorization, signal: gone.signal })
      sendJson(response, 200, toJson(ALLOCATION_RESPONSE, allocated, { alwaysEmitImplicit: true }))
    } catch (error) {
      const { code, status, message } = callErrorOf(error, this.#log)
      sendJson(response, status, { code, message, details: [] })
    }
  }

  async #call(call: AllocationCall): Promise<Message> {
    if (this.#calls >= CALLS_MAX) throw new CallError('UNAVAILABLE', `${CALLS_MAX} allocations are under way`)
    this.#calls++
    try {
      return create(ALLOCATION_RESPONSE, await this.#allocate(call))
    } finally {
      this.#calls--
    }
  }
}

async function readBody(request: IncomingMessage): Promise<JsonValue | undefined> {
  try {
    return (await readJson(request)) as JsonValue | undefined
  } catch (error) {
    if (!(error instanceof RequestError)) throw new CallError('INVALID_ARGUMENT', 'The request ended early.')
    throw new CallError(error.status === 413 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT', error.message)
  }
}

function requestOf(json: JsonValue): AllocationRequest {
  try {
    return fromJson(ALLOCATION_REQUEST, json, { ignoreUnknownFields: true }) as unknown as AllocationRequest
  } catch (error) {
    throw new CallError('INVALID_ARGUMENT', (error as Error).message.slice(0, 200))
  }
}
