// The protocol of another platform that the server of `muster dev` speaks. Each start of the server gets an endpoint of its
// own, as each lobby has one on the platform. This room is loaded only for a game mode with a protocol.

import { randomBytes } from 'node:crypto'
import type { Server } from 'node:net'
import type { ServerProtocol } from '@musterhost/contract'
import { protocolTitle } from '@musterhost/contract/protocol-words'
import { type LobbyFacts, loadProtocol, type ProgramAdditions } from '@musterhost/protocols'
import { listenForOne, ProtocolSockets } from '@musterhost/protocols/serve'
import { DevProtocolLobby, type ProtocolSurroundings } from './protocol-lobby.ts'

const LOOPBACK = '127.0.0.1'
const SECRET_BYTES = 24

export type DevProtocol = {
  /** Serves a server that is about to start. Returns what the server starts with. The endpoint of the one before has ended. */
  serve(facts: LobbyFacts): Promise<ProgramAdditions>
  /** Ends the endpoint. The next server gets another one. */
  end(): Promise<void>
}

export type DevProtocolAround = Omit<ProtocolSurroundings, 'name' | 'end_unhealthy'>
type Served = { server: Server; close(): void }

export async function openDevProtocol(
  { name, options }: ServerProtocol,
  around: DevProtocolAround,
): Promise<DevProtocol> {
  const protocol = await loadProtocol(name)
  const sockets = new ProtocolSockets()
  let served: Served | null = null

  async function end(): Promise<void> {
    if (served === null) return
    const { server, close } = served
    served = null
    const closed = new Promise((resolve) => server.close(resolve))
    close()
    await closed
  }

  return {
    async serve(facts) {
      await end()
      const secret = randomBytes(SECRET_BYTES).toString('base64url')
      const lobby = new DevProtocolLobby(facts, { ...around, name, end_unhealthy: options.end_unhealthy ?? false })
      const endpoint = protocol.open(lobby, options, secret)
      const close = (): void => {
        endpoint.close()
        sockets.forget(endpoint)
        lobby.close()
      }
      try {
        const { server, port } = await listenForOne(sockets, endpoint, { host: LOOPBACK, port: 0 })
        served = { server, close }
        around.event(`${protocolTitle(name)}: served at ${LOOPBACK}:${port}`)
        const names = Object.keys(protocol.listeners)
        const endpoints = Object.fromEntries(names.map((listener) => [listener, { host: LOOPBACK, port }]))
        return protocol.additions(facts, endpoints, options, secret)
      } catch (error) {
        close()
        throw error
      }
    },
    end,
  }
}
