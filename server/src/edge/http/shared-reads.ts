// Sockets that read into one buffer, of which as much is copied as has come. Node gives each read of a socket 64 KiB of its
// own and cuts them down afterwards: for messages of some hundred bytes that costs more than all that the edge does with
// them. Nothing else runs between a read and the copy, so one buffer is enough for all.
import { connect, type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net'
import type { Address } from '../routes.ts'

const READ_BYTES = 64 * 1024
const buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Gets what has come, at the beginning of a buffer that is good until it returns. */
export type OnRead = (shared: Buffer, length: number) => void

/** A connection under way. Without `onRead` what comes over it comes as data events. */
export function connectSharingReads({ hostname, port }: Address, onRead?: OnRead): Socket {
  const socket: Socket = connect({
    host: hostname,
    port,
    noDelay: true,
    onread: readsOf(onRead ?? ((shared, length) => emit(socket, shared, length))),
  })
  return socket
}

/** What a socket's types do not show: what it reads from, and the server that counts it. */
type Inner = { _handle: SocketConstructorOpts['handle'] | null; _server: unknown }

/**
 * A connection that a server has accepted, and from which nothing has been read. A server cannot be asked for sockets that
 * read so: this one gives up what it stands on to another.
 */
export function acceptSharingReads(accepted: Socket): Socket {
  const old = accepted as unknown as Inner
  const handle = old._handle
  if (!handle) return accepted
  const onread = readsOf((shared, length) => emit(socket, shared, length))
  const options = { handle, allowHalfOpen: accepted.allowHalfOpen, onread }
  const socket: Socket = new Socket(options)
  const taken = socket as unknown as Inner
  taken._server = old._server
  old._server = null
  old._handle = null
  return socket
}

function readsOf(onRead: OnRead): OnReadOpts {
  return {
    buffer,
    callback: (length) => {
      onRead(buffer, length)
      return true
    },
  }
}

function emit(socket: Socket, shared: Buffer, length: number): void {
  const bytes = Buffer.allocUnsafe(length)
  shared.copy(bytes, 0, 0, length)
  socket.emit('data', bytes)
}
