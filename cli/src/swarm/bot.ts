// A bot: one player that finds a seat, connects to the lobby's server by WebSocket, stays, and leaves.
import WebSocket from 'ws'

/** To open the connection after the seat was found. */
const CONNECT_MS_MAX = 20_000
/** To say goodbye; then the socket is cut. */
const CLOSE_MS_MAX = 2_000
/** Bytes of one message of a game that a bot receives and drops. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024

export type BotSeat = { ports: Record<string, { url: string }>; player: { token: string } }

export type BotOptions = {
  find: () => Promise<BotSeat>
  /** Path and query of the game's WebSocket. `{token}` stands for the player's token. */
  path: string
  /** Name of the port; null: the first one with an HTTP address. */
  port: string | null
}

export type BotConnection = {
  find_ms: number
  connect_ms: number
  /** Resolves when the server closes the connection, with the reason. */
  lost: Promise<string>
  leave: () => Promise<void>
}

/** Throws what refused the seat, or an Error that names the connection. */
export async function play({ find, path, port }: BotOptions): Promise<BotConnection> {
  const began_ms = performance.now()
  const seat = await find()
  const found_ms = performance.now()
  const socket = await connect(addressOf(seat, port, path))
  const lost = new Promise<string>((resolve) => {
    socket.once('close', (code, reason) => resolve(reason.length > 0 ? String(reason) : `code ${code}`))
  })
  socket.on('error', () => {
    // `close` follows, which `lost` reports.
  })
  return {
    find_ms: found_ms - began_ms,
    connect_ms: performance.now() - found_ms,
    lost,
    async leave() {
      socket.close(1000)
      const cut = setTimeout(() => socket.terminate(), CLOSE_MS_MAX)
      await lost
      clearTimeout(cut)
    },
  }
}

function addressOf({ ports, player }: BotSeat, wanted: string | null, path: string): string {
  const names = Object.keys(ports)
  const name = wanted ?? names.find((candidate) => /^https?:/.test(ports[candidate]!.url))
  const port = name === undefined ? undefined : ports[name]
  if (port === undefined || !/^https?:/.test(port.url)) {
    throw new Error(`The lobby has no HTTP port ${wanted ?? ''} for WebSocket; its ports are ${names.join(', ')}.`)
  }
  const place = path.replaceAll('{token}', encodeURIComponent(player.token))
  return port.url.replace(/^http/, 'ws').replace(/\/$/, '') + place
}

function connect(url: string): Promise<WebSocket> {
  const options = { handshakeTimeout: CONNECT_MS_MAX, maxPayload: MESSAGE_BYTES_MAX, perMessageDeflate: false }
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, options)
    socket.once('open', () => resolve(socket))
    socket.once('error', reject)
  })
}
