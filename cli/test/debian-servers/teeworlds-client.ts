// As much of a Teeworlds 0.7 client as proves that a server plays with it: it asks for a token, connects, says its version,
// keeps the connection alive, and reads the information of the server. All numbers are those of the protocol on the wire.
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { Datagrams } from './datagrams.ts'

const CONTROL = { keep_alive: 0, connect: 1, accept: 2, token: 5 } as const
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
/** The first byte of a packet outside a connection. The tokens of both follow. */
const CONNECTIONLESS = 0x21
const CONNECTIONLESS_HEAD_BYTES = 9
const INFORMATION_REQUEST = Buffer.concat([NO_TOKEN, Buffer.from('gie3\x01', 'latin1')])
const INFORMATION = Buffer.concat([NO_TOKEN, Buffer.from('inf3\x01', 'latin1')])
/** version, name, host, map, kind of game. */
const INFORMATION_TEXTS = 5

export type TeeworldsInformation = { name: string; clients: number; clients_max: number }

export class TeeworldsClient {
  readonly #socket: Datagrams
  readonly #own_token = randomBytes(4)
  #server_token: Buffer = NO_TOKEN

  private constructor(socket: Datagrams) {
    this.#socket = socket
  }

  /** `url`: `udp://HOST:PORT`. `address`: the local address. */
  static async open(t: TestContext, url: string, address: string): Promise<TeeworldsClient> {
    return new TeeworldsClient(await Datagrams.open(t, url, address))
  }

  /** How many packets have arrived. */
  get received(): number {
    return this.#socket.received
  }

  sendTokenRequest(): void {
    this.#socket.send(this.#tokenRequest())
  }

  async requestToken(): Promise<void> {
    const packet = await this.#socket.ask(this.#tokenRequest(), (one) => this.#control(one, CONTROL.token))
    this.#server_token = packet.subarray(HEAD_BYTES + 1, HEAD_BYTES + 1 + NO_TOKEN.length)
  }

  /** Connects with the token, as the server requires it. Resolves when the server has accepted. */
  async connect(): Promise<void> {
    const rest = Buffer.concat([this.#own_token, Buffer.alloc(PADDED_BYTES)])
    const request = this.#packet(FLAG_CONTROL, 0, Buffer.concat([Buffer.of(CONTROL.connect), rest]))
    await this.#socket.ask(request, (one) => this.#control(one, CONTROL.accept))
  }

  /** Says the version of the game. Resolves with the first packet of the game: the map that is played. */
  enter(): Promise<Buffer> {
    const message = Buffer.concat([MESSAGE_INFO, Buffer.from(`${VERSION}\0\0`)])
    const chunk = Buffer.concat([Buffer.of(FLAG_VITAL | (message.length >> 6), message.length & 0x3f, 1), message])
    const isOfGame = (one: Buffer) => this.#isOwn(one) && (one[0]! & FLAG_CONTROL) === 0 && one[2]! > 0
    return this.#socket.ask(this.#packet(0, 1, chunk), (one) => (isOfGame(one) ? one : null))
  }

  keepAlive(): void {
    this.#socket.send(this.#packet(FLAG_CONTROL, 0, Buffer.of(CONTROL.keep_alive)))
  }

  /** As a list of servers asks for it. Resolves with the first information that is `wanted`. */
  information(isWanted: (information: TeeworldsInformation) => boolean): Promise<TeeworldsInformation> {
    const head = Buffer.concat([Buffer.of(CONNECTIONLESS), this.#server_token, this.#own_token])
    return this.#socket.ask(Buffer.concat([head, INFORMATION_REQUEST]), (packet) => {
      const body = packet.subarray(CONNECTIONLESS_HEAD_BYTES)
      if (packet[0] !== CONNECTIONLESS || !body.subarray(0, INFORMATION.length).equals(INFORMATION)) return null
      const information = readInformation(body.subarray(INFORMATION.length))
      return isWanted(information) ? information : null
    })
  }

  #tokenRequest(): Buffer {
    const rest = Buffer.concat([this.#own_token, Buffer.alloc(PADDED_BYTES)])
    return this.#packet(FLAG_CONTROL, 0, Buffer.concat([Buffer.of(CONTROL.token), rest]))
  }

  #packet(flags: number, chunks: number, body: Buffer): Buffer {
    return Buffer.concat([Buffer.of(flags, 0, chunks), this.#server_token, body])
  }

  #isOwn(packet: Buffer): boolean {
    return packet.length >= HEAD_BYTES && packet.subarray(3, HEAD_BYTES).equals(this.#own_token)
  }

  #control(packet: Buffer, message: number): Buffer | null {
    return this.#isOwn(packet) && (packet[0]! & FLAG_CONTROL) !== 0 && packet[HEAD_BYTES] === message ? packet : null
  }
}

function readInformation(body: Buffer): TeeworldsInformation {
  let at = 0
  const texts = Array.from({ length: INFORMATION_TEXTS }, () => {
    const end = body.indexOf(0, at)
    const text = body.toString('latin1', at, end)
    at = end + 1
    return text
  })
  // Each number below 64 is one byte: flags, skill, players, their maximum, clients, their maximum.
  const [clients = 0, clients_max = 0] = body.subarray(at + 4)
  return { name: texts[1] ?? '', clients, clients_max }
}
