// The edge's end of a parking channel (parking-protocol.ts): one connection to each process of a role. Over it the role announces responses
// to requests that wait there without a connection. The channel is opened when the role offers it, and again whenever it is
// lost. Requests parked over a lost channel are lost too. Without a channel, requests keep their connections.
import { connect, type Socket } from 'node:net'
import { bareHost } from '../../text/bare-host.ts'
import { CLAIM_HEADER, EDGE_PROOF_HEADER, PARK_HEADER } from '../../wire/headers.ts'
import { CHANNEL_PROTOCOL, createLineReader, parkingLine } from '../../wire/parking-protocol.ts'
import { PARKING_OPEN_MS_MAX, PARKING_PAUSE_MS } from '../limits.ts'
import type { Address } from '../routes/routes.ts'

/** `claim_line`: the header that fetches the response. */
export type ParkedRequest = { number: number; claim_line: string }

type Parkable = { parked: ParkedRequest | null }

export type ParkingChannelOptions<T> = {
  address: Address
  proof: string
  /** Identifies this process. */
  edge_id: string
  /** The role has announced the response to the request. */
  onDone: (request: T) => void
  /** There will be no response. */
  onLost: (request: T) => void
}

const ACCEPTED = 'HTTP/1.1 101 '
const HEAD_END = '\r\n\r\n'
/** Characters of the head with which a role opens the channel. */
const HEAD_LENGTH_MAX = 1_024

export class ParkingChannel<T extends Parkable> {
  readonly #options: ParkingChannelOptions<T>
  /** By number: requests whose response is not being fetched yet. */
  readonly #waiting = new Map<number, T>()
  #socket: Socket | null = null
  #opening: Socket | null = null
  #retry: NodeJS.Timeout | undefined
  #is_closed = false
  /** The header line that lets a role park a request. */
  readonly park_line: string

  constructor(options: ParkingChannelOptions<T>) {
    this.#options = options
    this.park_line = `${PARK_HEADER}: ${options.edge_id}\r\n`
  }

  /** The role offers a channel. */
  open(): void {
    if (this.#socket === null && this.#opening === null && this.#retry === undefined && !this.#is_closed)
      this.#connect()
  }

  /** The role has parked the request under this number. Returns false when the channel is lost: no response will come. */
  park(request: T, number: number): boolean {
    if (this.#socket === null || !Number.isSafeInteger(number)) return false
    request.parked = { number, claim_line: `${CLAIM_HEADER}: ${number}\r\n` }
    this.#waiting.set(number, request)
    this.#socket.write(parkingLine('parked', number))
    return true
  }

  /** The client is gone: the role is notified at once. */
  abandon(request: T): void {
    if (this.forget(request)) this.#socket?.write(parkingLine('gone', request.parked!.number))
  }

  /** The response is being fetched, and no longer depends on the channel. Returns false when that was so before. */
  forget(request: T): boolean {
    const number = request.parked?.number ?? -1
    return this.#waiting.get(number) === request && this.#waiting.delete(number)
  }

  /** No response will come over it. */
  drop(): void {
    this.#opening?.destroy()
    this.#socket?.destroy()
  }

  close(): void {
    this.#is_closed = true
    clearTimeout(this.#retry)
    this.#opening?.destroy()
    this.#socket?.destroy()
  }

  #connect(): void {
    const { address, proof } = this.#options
    const { hostname: host, port, path, tls } = address
    const target = { host: bareHost(host), port }
    const socket = tls?.connect(target) ?? connect(path === undefined ? { ...target, noDelay: true } : { path })
    this.#opening = socket
    const late = setTimeout(() => socket.destroy(), PARKING_OPEN_MS_MAX)
    let head = ''
    const readLines = createLineReader((word, number) => this.#onLine(word, number))
    const read = (bytes: Buffer): void => {
      if (!readLines(bytes)) socket.destroy()
    }
    const readHead = (bytes: Buffer): void => {
      head += bytes.toString('latin1')
      const head_end = head.indexOf(HEAD_END)
      if (head_end === -1 ? head.length > HEAD_LENGTH_MAX : !head.startsWith(ACCEPTED)) socket.destroy()
      if (head_end === -1 || socket.destroyed) return
      clearTimeout(late)
      this.#opening = null
      this.#socket = socket
      socket.off('data', readHead).on('data', read)
      read(Buffer.from(head.slice(head_end + HEAD_END.length), 'latin1'))
    }
    // A role that is down refuses the connection; the close event follows in any case.
    socket.on('error', () => {})
    socket.on('data', readHead)
    socket.once('close', () => {
      clearTimeout(late)
      this.#onClose(socket)
    })
    socket.write(
      `GET / HTTP/1.1\r\nHost: ${CHANNEL_PROTOCOL}\r\nConnection: Upgrade\r\nUpgrade: ${CHANNEL_PROTOCOL}\r\n${EDGE_PROOF_HEADER}: ${proof}\r\n${this.park_line}\r\n`,
      'latin1',
    )
  }

  #onLine(word: string, number: number): void {
    const request = this.#waiting.get(number)
    // The client may have disconnected at the same moment.
    if (request === undefined) return
    if (word === 'done') this.#options.onDone(request)
    else if (word === 'lost' && this.forget(request)) this.#options.onLost(request)
  }

  #onClose(socket: Socket): void {
    if (this.#opening === socket) this.#opening = null
    if (this.#socket === socket) {
      this.#socket = null
      const lost = [...this.#waiting.values()]
      this.#waiting.clear()
      for (const request of lost) this.#options.onLost(request)
    }
    if (this.#is_closed) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#connect()
    }, PARKING_PAUSE_MS)
    this.#retry.unref()
  }
}
