// The allocation service of Agones, over gRPC and REST. Who allocates what is decided by the caller of this file.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { create, type Message, toJson } from '@bufbuild/protobuf'
import { ConnectError, type HandlerContext, type ServiceImpl } from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { type HttpRequest, type HttpResponse, pathParts, sendJson } from '../../http-body.ts'
import type { ProtocolEndpoint } from '../../protocol.ts'
import { CallError, callErrorOf } from '../call-error.ts'
import { createGrpcRouter, handlersOf, isGrpc, runHandler } from '../grpc-calls.ts'
import { readBody, requireRequest, sendRefusal } from '../json-calls.ts'
import { ALLOCATION_REQUEST, ALLOCATION_RESPONSE, ALLOCATION_SERVICE, type AllocationRequest } from './messages.ts'

const REST_PATH = 'gameserverallocation'
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
  readonly #grpc: ReadonlyMap<string, UniversalHandler>
  #calls = 0

  constructor(allocate: Allocate, log: (line: string) => void) {
    this.#allocate = allocate
    this.#log = log
    const router = createGrpcRouter()
    const handler = { allocate: (request: Message, context: HandlerContext) => this.#overGrpc(request, context) }
    router.service(ALLOCATION_SERVICE, handler as unknown as ServiceImpl<typeof ALLOCATION_SERVICE>)
    this.#grpc = handlersOf(router)
  }

  request(request: HttpRequest, response: HttpResponse): void {
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    if (isGrpc(request)) runHandler(this.#grpc, request, response as Http2ServerResponse)
    else void this.#serveRest(request as IncomingMessage, response as ServerResponse)
  }

  /** Allocations under way go on to their end. */
  close(): void {}

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
      const asked = requireRequest(ALLOCATION_REQUEST, (await readBody(request)) ?? {}) as AllocationRequest
      const authorization = request.headers.authorization ?? null
      const allocated = await this.#call({ request: asked, authorization, signal: gone.signal })
      sendJson(response, 200, toJson(ALLOCATION_RESPONSE, allocated, { alwaysEmitImplicit: true }))
    } catch (error) {
      sendRefusal(response, callErrorOf(error, this.#log))
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
