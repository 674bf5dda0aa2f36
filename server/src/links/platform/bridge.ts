// Joins a stream of a node to a socket of the platform's machine.
import { once } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import { connect, type Socket } from 'node:net'
import type { Config } from '../../config/config.ts'
import { bareHost } from '../../text/bare-host.ts'
import { joinStreams } from '../streams.ts'

/** To a port of the internal address. */
export function bridgePort(
  { internal_host }: Pick<Config, 'internal_host'>,
  port: number,
  stream: ServerHttp2Stream,
): Promise<void> {
  return bridge(stream, connect({ host: bareHost(internal_host), port, allowHalfOpen: true, noDelay: true }))
}

/** To the unix socket of all links. */
export function bridgeLink(path: string, stream: ServerHttp2Stream): Promise<void> {
  return bridge(stream, connect({ path, allowHalfOpen: true }))
}

async function bridge(stream: ServerHttp2Stream, socket: Socket): Promise<void> {
  await once(socket, 'connect')
  if (stream.destroyed) return void socket.destroy()
  stream.respond({ ':status': 200 })
  joinStreams(stream, socket)
}
