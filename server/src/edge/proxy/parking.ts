// The edge's end of a parking channel (parking-protocol.ts): one connection to each role, over which the role announces
// the responses to requests that wait there without a connection of their own. It is opened when the role offers it, and
// again whenever it is lost. What was parked over a lost channel is lost with it. Without a channel requests keep their
// connections.
import { connect, type Socket } from 'node:net'
import { CHANNEL_PROTOCOL, CLAIM_HEADER, createLineReader, PARK_HEADER, parkingLine } from '../../parking-protocol.ts'
import { EDGE_PROOF_HEADER } from '../../tokens/edge-proof.ts'
import type { Exchange } from '../http/exchange.ts'
import { PARKING_OPEN_MS_MAX, PARKING_PAUSE_MS } from '../limits.ts'
import type { Address } from '../routes.ts'

export type ParkingChannelOptions = {
  address: Address
  proof: string
  /** The same for the life of this process. */
  edge_id: string
  /** The response to the request is there: it is to be fetched. */
  onDone: (exchange: Exchange) => void
  /** There will be no response. */
  onLost: (exchange: Exchange) => void
}

const ACCEPTED = 'HTTP/1.1 101 '
const HEAD_END = '\r\n\r\n'
const HEAD_LENGTH_MAX = 1_024

export class ParkingChannel {
  readonly #options: ParkingChannelOptions
  /** By their numbers: requests whose response is not being fetched yet. */
  readonly #waiting = new Map<number, Exchange>()
  #socket: Socket | null = null
  #opening: Socket | null = null
  #retry: NodeJS.Timeout | undefined
  #is_closed = false
  /** The header that lets a role park a request, as a line. */
  readonly park_line: string

  constructor(options: ParkingChannelOptions) {
    this.#options = options
    this.park_line = `${PARK_HEADER}: ${options.edge_id}\r\n`
  }

  /** The role offers a channel. */
  open(): void {
    if (this.#socket === null && this.#opening === null && this.#retry === undefined && !this.#is_closed) this.#dial()
  }

  /** The role has parked the request under this number. False: the channel is lost, so there will be no response. */
  park(exchange: Exchange, number: number): boolean {
    if (this.#socket === null || !Number.isSafeInteger(number)) return false
    exchange.parked = { number, claim_line: `${CLAIM_HEADER}: ${number}\r\n` }
    this.#waiting.set(number, exchange)
    this.#socket.write(parkingLine('parked', number))
    return true
  }

  /** Nobody waits for the response any more: the role is told at once. */
  abandon(exchange: Exchange): void {
    if (this.forget(exchange)) this.#socket?.write(parkingLine('gone', exchange.parked!.number))
  }

  /** The response is being fetched: what becomes of the channel does not matter to it. False: that was so before. */
  forget(exchange: Exchange): boolean {
    const number = exchange.parked?.number ?? -1
    return this.#waiting.get(number) === exchange && this.#waiting.delete(number)
  }

  close(): void {
    this.#is_closed = true
    clearTimeout(this.#retry)
    this.#opening?.destroy()
    this.#socket?.destroy()
  }

  #dial(): void {
    const { address, proof } = this.#options
    const socket = connect({ host: address.hostname, port: address.port, noDelay: true })
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
    // A role that is down refuses the connection; its close follows in any case.
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
    const exchange = this.#waiting.get(number)
    // Its client may have hung up in the same moment.
    if (exchange === undefined) return
    if (word === 'done') this.#options.onDone(exchange)
    else if (word === 'lost' && this.forget(exchange)) this.#options.onLost(exchange)
  }

  #onClose(socket: Socket): void {
    if (this.#opening === socket) this.#opening = null
    if (this.#socket === socket) {
      this.#socket = null
      const lost = [...this.#waiting.values()]
      this.#waiting.clear()
      for (const exchange of lost) this.#options.onLost(exchange)
    }
    if (this.#is_closed) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#dial()
    }, PARKING_PAUSE_MS)
    this.#retry.unref()
  }
}
