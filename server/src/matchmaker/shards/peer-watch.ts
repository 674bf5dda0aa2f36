// Notices at once that another matchmaker has ended. One connection to each is kept open, without a request. When a process ends, its
// system closes the connection, and refuses the next one. A process that is suspended, or cut off, closes nothing: its heartbeat
// shows that (heartbeats.ts).
import { connect, type Socket } from 'node:net'
import { targetOf } from '../../outbound/tcp-probe.ts'
import type { Member } from './lease.ts'

/** From the end of a connection to the next one. It doubles until a connection stays. */
const PAUSE_MS_MIN = 20
/** The longest pause. */
const PAUSE_MS_MAX = 2_000
/** A connection that was open for this long stays. The server closes one without a request after 10 s. */
const STAYS_MS = 1_000
/** How long a connection may take to open. */
const CONNECT_MS_MAX = 2_000

/** `is_known`: a connection could be made since the process was last seen to end. */
type Peer = {
  address: string
  socket: Socket | null
  timer: NodeJS.Timeout | undefined
  pause_ms: number
  is_known: boolean
}

export class PeerWatch {
  readonly #elapsed: () => number
  readonly #onEnded: (writer: string) => void
  readonly #peers = new Map<string, Peer>()

  /** `onEnded` is called when the machine of a process refuses connections to it, and has accepted them before. */
  constructor(elapsed: () => number, onEnded: (writer: string) => void) {
    this.#elapsed = elapsed
    this.#onEnded = onEnded
  }

  /** Watches these processes, and no others. */
  follow(members: readonly Pick<Member, 'writer' | 'address'>[]): void {
    for (const [writer, peer] of this.#peers)
      if (!members.some((member) => member.writer === writer)) this.#drop(writer, peer)
    for (const { writer, address } of members) {
      if (this.#peers.has(writer)) continue
      const peer: Peer = { address, socket: null, timer: undefined, pause_ms: PAUSE_MS_MIN, is_known: false }
      this.#peers.set(writer, peer)
      this.#open(writer, peer)
    }
  }

  close(): void {
    this.follow([])
  }

  #open(writer: string, peer: Peer): void {
    const socket = connect(targetOf(peer.address))
    peer.socket = socket
    let connected_ms = Number.POSITIVE_INFINITY
    let is_refused = false
    const late = setTimeout(() => socket.destroy(), CONNECT_MS_MAX)
    socket.once('connect', () => {
      clearTimeout(late)
      peer.is_known = true
      connected_ms = this.#elapsed()
    })
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      is_refused = code === 'ECONNREFUSED'
    })
    // The server sends a response when it closes the connection.
    socket.resume()
    socket.once('close', () => {
      clearTimeout(late)
      if (this.#peers.get(writer) !== peer) return
      if (this.#elapsed() - connected_ms >= STAYS_MS) peer.pause_ms = PAUSE_MS_MIN
      peer.timer = setTimeout(() => this.#open(writer, peer), peer.pause_ms)
      peer.pause_ms = Math.min(2 * peer.pause_ms, PAUSE_MS_MAX)
      if (!is_refused || !peer.is_known) return
      peer.is_known = false
      this.#onEnded(writer)
    })
  }

  #drop(writer: string, { socket, timer }: Peer): void {
    this.#peers.delete(writer)
    clearTimeout(timer)
    socket?.destroy()
  }
}
