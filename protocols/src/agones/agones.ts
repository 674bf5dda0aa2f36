// Agones: a server that speaks its SDK runs unchanged. gRPC and REST come to both listeners; the content type distinguishes
// them. The object is named `lobby-<lobby id>`; its namespace is the namespace id.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { ProtocolLobby } from '../lobby.ts'
import type { Endpoints, Protocol, ProtocolEndpoint, ProtocolOptions } from '../protocol.ts'
import { GameServer } from './game-server.ts'
import { serveGrpc } from './grpc.ts'
import { isGrpc } from './grpc-calls.ts'
import type { HealthRules } from './health.ts'
import { serveRest, serveWebSocket } from './rest.ts'

export const agones: Protocol = {
  listeners: { grpc: 9357, http: 9358 },

  additions(_facts, endpoints) {
    const grpc = requireEndpoint(endpoints, 'grpc')
    const http = requireEndpoint(endpoints, 'http')
    return {
      env: {
        AGONES_SDK_GRPC_HOST: grpc.host,
        AGONES_SDK_GRPC_PORT: String(grpc.port),
        AGONES_SDK_HTTP_HOST: http.host,
        AGONES_SDK_HTTP_PORT: String(http.port),
      },
      files: [],
    }
  },

  open: (lobby, options) => openAgones(lobby, options),
}

/** `rules`: absent: the defaults of Agones. */
export function openAgones(lobby: ProtocolLobby, options: ProtocolOptions, rules?: HealthRules): ProtocolEndpoint {
  const server = new GameServer(lobby, options, rules)
  return {
    request(request, response) {
      request.on('error', () => undefined)
      response.on('error', () => undefined)
      if (isGrpc(request)) serveGrpc(server, request, response as Http2ServerResponse)
      // HTTP/2 has the same interface here.
      else void serveRest(server, request as IncomingMessage, response as ServerResponse)
    },
    upgrade: (request, socket, head) => serveWebSocket(server, request, socket, head),
    close: () => server.close(),
  }
}

function requireEndpoint(endpoints: Endpoints, name: string): Endpoints[string] {
  const endpoint = endpoints[name]
  if (endpoint === undefined) throw new Error(`the endpoint ${name} is missing`)
  return endpoint
}
