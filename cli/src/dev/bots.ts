// Bots of `muster dev`: each finds a seat, connects by WebSocket with its player token, and stays until the command ends.
import { findLobby } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { WebSocket } from 'ws'

/** Bots at once. */
const BOTS_MAX = 64
/** From the seat to an open connection. */
const CONNECT_MS_MAX = 10_000

export class Bots {
  readonly #client: Client
  readonly #game_mode: string
  readonly #event: (text: string) => void
  readonly #sockets = new Set<WebSocket>()
  #count = 0

  /** `client`: with the development token. */
  constructor(client: Client, game_mode: string, event: (text: string) => void) {
    this.#client = client
    this.#game_mode = game_mode
    this.#event = event
  }

  async add(): Promise<void> {
    if (this.#sockets.size >= BOTS_MAX) {
      this.#event(`there are ${BOTS_MAX} bots already`)
      return
    }
    const name = `bot ${++this.#count}`
    const { ports, player } = await this.#client.call(findLobby, { body: { game_modes: [this.#game_mode] } })
    const port = Object.values(ports).find(({ url }) => url.startsWith('http'))
    if (port === undefined) {
      this.#event('a bot needs a port with the protocol http')
      return
    }
    const url = new URL('/', port.url.replace(/^http/, 'ws'))
    // Both names are in use: games read one of them.
    url.searchParams.set('token', player.token)
    url.searchParams.set('player_token', player.token)
    const socket = new WebSocket(url, { handshakeTimeout: CONNECT_MS_MAX })
    this.#sockets.add(socket)
    socket.on('open', () => this.#event(`${name} is connected`))
    socket.on('error', (error) => this.#event(`${name} could not connect: ${error.message}`))
    socket.on('close', (code) => {
      if (this.#sockets.delete(socket)) this.#event(`${name} left (${code})`)
    })
  }

  close(): void {
    for (const socket of this.#sockets) {
      this.#sockets.delete(socket)
      socket.terminate()
    }
  }
}
