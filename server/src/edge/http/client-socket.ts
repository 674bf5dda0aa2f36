// What HTTP uses of a client's connection. A socket has all of it; so has a stream of HTTP/2 (http2/stream-socket.ts), which
// is a connection for one request.
import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'

export type ClientSocket = {
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly destroyed: boolean
  readonly writable: boolean
  readonly writableFinished: boolean
  readonly writableNeedDrain: boolean
  write: {
    (text: string, encoding: 'latin1'): boolean
    (bytes: Uint8Array, onWritten?: (error?: Error | null) => void): boolean
  }
  cork: () => void
  uncork: () => void
  end: () => void
  destroy: () => void
  destroySoon: () => void
  resetAndDestroy: () => void
  pause: () => void
  resume: () => void
  isPaused: () => boolean
} & Listenable &
  Pick<Socket, 'remoteFamily'>

/** What the listeners of a connection need (socket-listeners.ts). */
export type Listenable = Pick<EventEmitter, 'on' | 'off' | 'once'>
