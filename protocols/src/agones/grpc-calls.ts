// Calls of Agones over gRPC, for its SDK and its allocation service alike.
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { type ConnectRouter, type ContextValues, createConnectRouter } from '@connectrpc/connect'
import type { UniversalHandler } from '@connectrpc/connect/protocol'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { HttpRequest } from '../http-body.ts'

/** Bytes of one message. */
const MESSAGE_BYTES_MAX = 64 * 1024

export function isGrpc(request: HttpRequest): request is Http2ServerRequest {
  return request.httpVersionMajor === 2 && request.headers['content-type']?.startsWith('application/grpc') === true
}

export function createGrpcRouter(): ConnectRouter {
  return createConnectRouter({
    grpc: true,
    grpcWeb: false,
    connect: false,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
  })
}

/** By the path of the method. */
export function handlersOf({ handlers }: ConnectRouter): ReadonlyMap<string, UniversalHandler> {
  return new Map(handlers.map((handler) => [handler.requestPath, handler]))
}

export function runHandler(
  handlers: ReadonlyMap<string, UniversalHandler>,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  values?: ContextValues,
): void {
  const handler = handlers.get(request.url.split('?', 1)[0]!)
  if (handler === undefined) {
    response.writeHead(404).end()
    return
  }
  // The client keeps its deadlines itself. The router would make a timer of any length.
  delete request.headers['grpc-timeout']
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
