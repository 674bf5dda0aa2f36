// The UDP echo, for native clients that measure their latency. A source can be forged, so the echo must be of no use against a
// third one. It returns only datagrams of its own form, never more bytes than it got, and few of them to one client.
//
// - client to edge: `"MUST" 6`, then 8 to 56 bytes that the client chooses and knows again.
// - edge to client: `"MUST" 7`, then the same bytes.
import type { RemoteInfo, Socket } from 'node:dgram'
import { networkInterfaces } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { clientKey } from '../../addresses/client-ip.ts'
import { createRateLimiter } from '../../addresses/rate-limit.ts'
import type { Context } from '../../context.ts'
import {
  PING_BYTES_MAX,
  PING_CLIENTS_MAX,
  PING_PORT_PAUSE_MS,
  PINGS_AT_ONCE_MAX,
  PINGS_PER_MINUTE_MAX,
} from '../limits.ts'
import { addressesWithSockets, bindBeside, bindUdp } from './udp-socket.ts'

const PING = Buffer.from('MUST\x06')
const PONG = Buffer.from('MUST\x07')
const CHOSEN_BYTES_MIN = 8

export type PingEcho = { close: () => void }

/** Opens the port of the settings. While another program has it, the edge before this one perhaps, it is tried again. */
export function openPingEcho(ctx: Context): PingEcho {
  const port = ctx.config.edge_ping_port
  const sockets: Socket[] = []
  const closing = new AbortController()
  if (port !== null) {
    openSockets(ctx, port, closing.signal, sockets).catch((error: unknown) => {
      if (!closing.signal.aborted) ctx.log.warn({ err: error, port }, 'the udp echo cannot be opened')
    })
  }
  return {
    close() {
      closing.abort()
      for (const socket of sockets.splice(0)) socket.close()
    },
  }
}

/** Addresses that the machine gets later have no socket of their own: the echo is for measuring, and a client tries again. */
async function openSockets(ctx: Context, port: number, signal: AbortSignal, sockets: Socket[]): Promise<void> {
  const { host } = ctx.config.edge_ports
  const limiter = createRateLimiter({
    ...{ per_minute: PINGS_PER_MINUTE_MAX, burst: PINGS_AT_ONCE_MAX, keys_max: PING_CLIENTS_MAX },
  })
  const add = (socket: Socket): void => {
    if (signal.aborted) {
      socket.close()
      return
    }
    sockets.push(socket)
    socket.on('message', (datagram, source) => {
      const reply = pongOf(datagram)
      if (reply === null || limiter.take(clientKey(source.address), ctx.elapsed()) > 0) return
      send(socket, reply, source)
    })
  }
  const main = await bindWhenFree(ctx, port, signal)
  add(main)
  if (host !== null) return
  const { addresses } = addressesWithSockets(networkInterfaces(), ctx.config.lobby_network)
  for (const address of addresses) if (!signal.aborted) add(await bindBeside(main, address))
}

async function bindWhenFree(ctx: Context, port: number, signal: AbortSignal): Promise<Socket> {
  for (let is_reported = false; ; is_reported = true) {
    const socket = await bindUdp(ctx.log, port, ctx.config.edge_ports.host)
    if (socket !== null) return socket
    if (!is_reported) ctx.log.info({ port }, 'another program has the port of the udp echo; trying again')
    await delay(PING_PORT_PAUSE_MS, undefined, { ref: false, signal })
  }
}

/** Null: the datagram is no ping. */
export function pongOf(datagram: Buffer): Buffer | null {
  const has_length = datagram.length >= PING.length + CHOSEN_BYTES_MIN && datagram.length <= PING_BYTES_MAX
  if (!has_length || !datagram.subarray(0, PING.length).equals(PING)) return null
  return Buffer.concat([PONG, datagram.subarray(PING.length)])
}

/** A reply that cannot be sent is lost, as datagrams are. */
function send(socket: Socket, reply: Buffer, { port, address }: RemoteInfo): void {
  if (port !== 0) socket.send(reply, port, address, () => {})
}
