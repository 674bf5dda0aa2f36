// What each protocol is, to those who start lobbies: where its server expects the platform, and who serves one lobby there.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { ProtocolOptions } from '@musterhost/contract'
import type { LobbyFacts, ProtocolLobby } from './lobby.ts'

export type { ProtocolOptions } from '@musterhost/contract'

/** Where the lobby's server reaches the endpoint, by the name of the listener. */
export type Endpoints = Readonly<Record<string, { host: string; port: number }>>

/** `files`: by their path in the lobby's writable folder. */
export type ProgramAdditions = { env: Record<string, string>; files: { path: string; content: string }[] }

export type Protocol = {
  /** Listeners by name, with the port that servers expect on their loopback interface. */
  listeners: Readonly<Record<string, number>>
  /** What the lobby's program starts with beside its own. `secret`: unguessable, the same in every call for a lobby. */
  additions(facts: LobbyFacts, endpoints: Endpoints, options: ProtocolOptions, secret: string): ProgramAdditions
  /** Serves one lobby until `close`. `secret`: that of `additions`. */
  open(lobby: ProtocolLobby, options: ProtocolOptions, secret: string): ProtocolEndpoint
}

/** Serves the requests of one lobby's server, whichever of the listeners they come to. It trusts nothing in them. */
export type ProtocolEndpoint = {
  /** HTTP/1.1 requests, and HTTP/2 requests without TLS. */
  request(request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): void
  /** Absent: upgrades are refused. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends its timers and streams. The sockets are closed by the caller. */
  close(): void
}
