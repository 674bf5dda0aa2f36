// Sockets that read into one buffer, of which as much is copied as has come. Node gives each read of a socket 64 KiB of its
// own and cuts them down afterwards: for messages of some hundred bytes that costs more than all that the edge does with
// them. Nothing else runs between a read and the copy, so one buffer is enough for all.
import { connect, type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net'
import type { Address } from './routes.ts'

const READ_BYTES = 64 * 1024
const buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Gets what has come, at the beginning of a buffer that is good until it returns. */
export type OnRead = (shared: Buffer, length: number) => void

type Reading = {
  /** Without it what comes over the connection comes as data events. */
  onRead?: OnRead | undefined
  allowHalfOpen?: boolean
  /** Of one read. Who is not read from any more has no more than this waiting here: nothing is read ahead. */
  bytes_max?: number
}

/** A connection under way. */
export function connectSharingReads({ hostname, port }: Address, reading: Reading = {}): Socket {
  const { onRead, allowHalfOpen = false, bytes_max = READ_BYTES } = reading
  const socket: Socket = connect({
    host: hostname,
    port,
    noDelay: true,
    allowHalfOpen,
    onread: readsOf(onRead ?? ((shared, length) => emit(socket, shared, length)), bytes_max),
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
  const onread = readsOf((shared, length) => emit(socket, shared, length), READ_BYTES)
  const options = { handle, allowHalfOpen: accepted.allowHalfOpen, onread }
  const socket: Socket = new Socket(options)
  const taken = socket as unknown as Inner
  taken._server = old._server
  old._server = null
  old._handle = null
  return socket
}

function readsOf(onRead: OnRead, bytes_max: number): OnReadOpts {
  return {
    buffer: buffer.subarray(0, bytes_max),
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
