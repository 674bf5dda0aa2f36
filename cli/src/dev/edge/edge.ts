// The edge of `muster dev`: players reach the server through it, as on the platform. It has the ports of the first game mode,
// except ranges, which no proxy serves there either.
import type { GameModeConfig } from '@musterhost/contract'
import { openHttpPort } from './http-port.ts'
import { type DevPort, type OpenDevPort, SocketPairs } from './port.ts'
import { DevSeats } from './seats.ts'
import { openTcpPort } from './tcp-port.ts'
import { openUdpPort } from './udp-port.ts'

/**
 * Loopback network in which each player gets an address, as where lobbies share the network of a machine. Only Linux has
 * it: other systems have one loopback address.
 */
const PLAYER_NETWORK = '127.64.0.0/10'
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1']

/** Where the server listens at a port, and to which number players connect. */
export type PortNumbers = Readonly<Record<string, { listening: number; public: number }>>

/** `host`: of this machine, as players reach it. */
export type DevEdgeOptions = {
  mode: GameModeConfig
  numbers: PortNumbers
  host: string
  lobby_id: string
  namespace_id: string
  event: (text: string) => void
  now: () => number
}

export type DevEdge = { seats: DevSeats; close(): Promise<void> }

export async function openDevEdge({ mode, numbers, host, event, now, ...lobby }: DevEdgeOptions): Promise<DevEdge> {
  const seats = new DevSeats({
    ...{ ...lobby, hold_ms: mode.seat_hold_ms, player_deadline_ms: mode.player_deadline_ms },
    has_protocol: mode.protocol !== null,
    event,
    now,
  })
  const pairs = new SocketPairs()
  const opened: OpenDevPort[] = []
  const close = async (): Promise<void> => {
    seats.close()
    await Promise.all(opened.map((port) => port.close()))
  }
  try {
    for (const config of mode.ports) {
      const number = numbers[config.name]
      if (number === undefined) continue
      const has_addresses = config.admission?.has_addresses === true && hasPlayerAddresses()
      const port: DevPort = {
        ...{ ...config, ...number, ...{ seats, pairs, lobby_id: lobby.lobby_id } },
        bind: bindOf(host),
        player_network: has_addresses ? PLAYER_NETWORK : null,
      }
      opened.push(await openerOf(config.protocol)(port))
    }
  } catch (error) {
    await close()
    throw error
  }
  return { seats, close }
}

/** Players on other machines need every address. */
function bindOf(host: string): string | undefined {
  if (host === '::1') return host
  return LOOPBACK_NAMES.includes(host) ? '127.0.0.1' : undefined
}

/** Whether connections can come from any address of 127.0.0.0/8. */
export function hasPlayerAddresses(): boolean {
  return process.platform === 'linux'
}

function openerOf(protocol: string): (port: DevPort) => Promise<OpenDevPort> {
  if (protocol === 'udp') return openUdpPort
  return protocol === 'tcp' || protocol === 'tcp_tls' ? openTcpPort : openHttpPort
}
