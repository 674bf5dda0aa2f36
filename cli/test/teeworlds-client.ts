// As much of a Teeworlds 0.7 client as proves that a server plays with it: it asks for a token, connects, says its version,
// keeps the connection alive, and leaves. All numbers are those of the protocol on the wire.
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

const CONTROL = { keep_alive: 0, connect: 1, accept: 2, close: 4, token: 5 } as const
const NO_TOKEN = Buffer.from([0xff, 0xff, 0xff, 0xff])
const HEAD_BYTES = 7
/** In the first byte of a packet, above two bits of the acknowledged number. */
const FLAG_CONTROL = 1 << 2
/** Requests are padded, so that a server cannot be used to amplify traffic. */
const PADDED_BYTES = 512
/** A chunk that must arrive: flag, length, its number. */
const FLAG_VITAL = 0x40
/** The first message of a client: a system message with the number 1. */
const MESSAGE_INFO = Buffer.of((1 << 1) | 1)
const VERSION = '0.7 802f1be60a05665f'

export class TeeworldsClient {
  readonly #socket: Socket
  readonly #own_token = randomBytes(4)
  readonly #port: number
  readonly #host: string
  #server_token: Buffer = NO_TOKEN
  readonly #packets: Buffer[] = []

  private constructor(socket: Socket, host: string, port: number) {
    this.#socket = socket
    this.#host = host
    this.#port = port
    socket.on('message', (packet) => this.#packets.push(packet))
  }

  /** `url`: `udp://HOST:PORT`. `address`: the local address. */
  static async open(url: string, address: string): Promise<TeeworldsClient> {
    const { hostname, port } = new URL(url)
    const socket = createSocket('udp4')
    socket.bind(0, address)
    await once(socket, 'listening')
    return new TeeworldsClient(socket, hostname, Number(port))
  }

  /** How many packets have arrived. */
  get received(): number {
    return this.#packets.length
  }

  /** Asks for a token. Null: no response within the time. */
  async requestToken(wait_ms: number): Promise<Buffer | null> {
    const padding = Buffer.alloc(PADDED_BYTES)
    this.#sendControl(CONTROL.token, Buffer.concat([this.#own_token, padding]))
    const packet = await this.#control(CONTROL.token, wait_ms)
    if (packet === null) return null
    this.#server_token = packet.subarray(HEAD_BYTES + 1, HEAD_BYTES + 1 + 4)
    return this.#server_token
  }

  /** Connects with the token, as the server requires it. Resolves when the server has accepted. */
  async connect(wait_ms: number): Promise<void> {
    const padding = Buffer.alloc(PADDED_BYTES)
    this.#sendControl(CONTROL.connect, Buffer.concat([this.#own_token, padding]))
    if ((await this.#control(CONTROL.accept, wait_ms)) === null) throw new Error('The server did not accept.')
  }

  /** Says the version of the game. Resolves with the first packet of the game: the map that is played. */
  async enter(wait_ms: number): Promise<Buffer> {
    const text = Buffer.from(`${VERSION}\0\0`)
    const message = Buffer.concat([MESSAGE_INFO, text])
    const chunk = Buffer.concat([Buffer.of(FLAG_VITAL | (message.length >> 6), message.length & 0x3f, 1), message])
    this.#send(0, 1, chunk)
    const packet = await this.#next((one) => (one[0]! & FLAG_CONTROL) === 0 && one[2]! > 0, wait_ms)
    if (packet === null) throw new Error('The server sent no map.')
    return packet
  }

  keepAlive(): void {
    this.#sendControl(CONTROL.keep_alive)
  }

  leave(): void {
    this.#sendControl(CONTROL.close)
  }

  close(): void {
    this.#socket.close()
  }

  #sendControl(message: number, rest: Buffer = Buffer.alloc(0)): void {
    this.#send(FLAG_CONTROL, 0, Buffer.concat([Buffer.of(message), rest]))
  }

  #send(flags: number, chunks: number, body: Buffer): void {
    this.#socket.send(Buffer.concat([Buffer.of(flags, 0, chunks), this.#server_token, body]), this.#port, this.#host)
  }

  #control(message: number, wait_ms: number): Promise<Buffer | null> {
    const isIt = (one: Buffer): boolean => (one[0]! & FLAG_CONTROL) !== 0 && one[HEAD_BYTES] === message
    return this.#next(isIt, wait_ms)
  }

  async #next(isWanted: (packet: Buffer) => boolean, wait_ms: number): Promise<Buffer | null> {
    const late = AbortSignal.timeout(wait_ms)
    for (;;) {
      const found = this.#packets.find(
        (packet) =>
          packet.length >= HEAD_BYTES && packet.subarray(3, HEAD_BYTES).equals(this.#own_token) && isWanted(packet),
      )
      if (found !== undefined) return found
      if (late.aborted) return null
      await once(this.#socket, 'message', { signal: late }).catch(() => undefined)
    }
  }
}
