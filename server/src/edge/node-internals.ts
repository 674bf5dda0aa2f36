// Everything that relies on Node's internals. The self-test at the start of the edge checks that they are as expected. Where
// one is not, its optimisation is left out and the log says so.
//
// Shared reads: Node gives each read of a socket 64 KiB of memory and shrinks it afterwards. For messages of some hundred
// bytes this costs more than all else that the edge does with them. So sockets read into one shared buffer, and the bytes
// that arrived are copied. Nothing else runs between a read and its copy. For connections that the edge makes, the public
// option `onread` does this. A server cannot be given that option: the handle of an accepted socket moves to another one.
//
// Tolerated write errors: Node destroys a socket on the first failed write, and loses a response that has already arrived.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net'
import type { Logger } from 'pino'
import { bareHost } from '../text/bare-host.ts'
import { openConnection, type SocketHandle } from './handles.ts'
import { SELF_TEST_MS_MAX } from './limits.ts'
import type { Address } from './routes/routes.ts'

const READ_BYTES = 64 * 1024
const buffer = Buffer.allocUnsafeSlow(READ_BYTES)

/** Called with the bytes that arrived, at the beginning of a buffer that is valid until the function returns. */
export type OnRead = (shared: Buffer, length: number) => void

type Reading = {
  /** Without it, bytes arrive as data events. */
  onRead?: OnRead | undefined
  allowHalfOpen?: boolean
  /** The most bytes of one read: no more than this is buffered here for a socket that is paused. */
  bytes_max?: number
}

/** Begins a connection whose reads use the shared buffer. */
export function connectSharingReads(address: Address, reading: Reading = {}): Socket {
  const { onRead, allowHalfOpen = false, bytes_max = READ_BYTES } = reading
  const onread = readOptions(onRead ?? ((shared, length) => emit(socket, shared, length)), bytes_max)
  const socket: Socket = connectTo(address, { allowHalfOpen, onread })
  return socket
}

function connectTo(
  { hostname, port, path, local_address, tls }: Address,
  options: { allowHalfOpen: boolean; onread: OnReadOpts },
): Socket {
  if (tls !== undefined) return tls.connect({ host: bareHost(hostname), port, ...options })
  return connect({
    ...(path === undefined ? { host: hostname, port } : { path }),
    ...(local_address !== undefined && { localAddress: local_address }),
    noDelay: true,
    ...options,
  })
}

/** A connection that another process had, with shared reads. It reads nothing before `resume`. */
export function openSharingReads(handle: SocketHandle, bytes_max: number = READ_BYTES): Socket {
  const onread = readOptions((shared, length) => emit(socket, shared, length), bytes_max)
  const socket: Socket = openConnection(handle, { onread })
  return socket
}

export type NodeInternals = {
  /** Returns the same connection with shared reads. `accepted`: paused, and nothing has been read from it. */
  acceptSharingReads: (accepted: Socket) => Socket
  /** From here on, a failed write does not destroy the socket if `isTolerated` returns true for its error. */
  tolerateWriteErrors: (socket: Socket, isTolerated: (error: Error) => boolean) => void
}

/** Returns what this version of Node supports. What fails its self-test is replaced by plain behaviour, and logged. */
export async function checkNodeInternals(log: Logger): Promise<NodeInternals> {
  const moves_handles = await test(movesHandles)
  const tolerates_errors = await test(toleratesWriteErrors)
  if (!moves_handles) log.warn('the handles of sockets cannot be moved in this version of Node; reads cost more')
  if (!tolerates_errors)
    log.warn('failed writes cannot be tolerated in this version of Node; early responses may be lost')
  return {
    acceptSharingReads: moves_handles ? moveHandle : (accepted) => accepted,
    tolerateWriteErrors: tolerates_errors ? wrapWrites : () => {},
  }
}

/** Members of a socket that its types do not show: the handle that it reads from, and the server that counts it. */
type Inner = { _handle: SocketConstructorOpts['handle'] | null; _server: unknown }

function moveHandle(accepted: Socket): Socket {
  const old = accepted as unknown as Inner
  const handle = old._handle
  if (!handle) return accepted
  const onread = readOptions((shared, length) => emit(socket, shared, length), READ_BYTES)
  const socket: Socket = new Socket({ handle, allowHalfOpen: accepted.allowHalfOpen, onread })
  const inner = socket as unknown as Inner
  inner._server = old._server
  old._server = null
  old._handle = null
  return socket
}

/** The option of a socket that reads into the shared buffer. */
function readOptions(onRead: OnRead, bytes_max: number): OnReadOpts {
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

type Done = (error?: Error | null) => void

function wrapWrites(socket: Socket, isTolerated: (error: Error) => boolean): void {
  const { _write, _writev } = socket
  const wrapped =
    (done: Done): Done =>
    (error) =>
      done(error && !isTolerated(error) ? error : null)
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, wrapped(done))
  socket._writev = (chunks, done) => _writev!.call(socket, chunks, wrapped(done))
}

async function test(check: () => Promise<boolean>): Promise<boolean> {
  try {
    return await check()
  } catch {
    // An internal that is missing throws; it is reported as one that does not work.
    return false
  }
}

/** A connection over loopback: its bytes must arrive at the new socket, and the server must count the close of it. */
async function movesHandles(): Promise<boolean> {
  const SENT = 'muster'
  const signal = AbortSignal.timeout(SELF_TEST_MS_MAX)
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening', { signal })
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  try {
    client.on('error', () => {})
    const [accepted] = (await once(server, 'connection', { signal })) as [Socket]
    const moved = moveHandle(accepted)
    client.write(SENT)
    moved.resume()
    const bytes = await firstBytes(moved, signal)
    const closed = once(server, 'close', { signal })
    server.close()
    moved.destroy()
    await closed
    return moved !== accepted && bytes.toString() === SENT
  } finally {
    client.destroy()
    server.close()
  }
}

/** Rejects when the socket closes before it has received bytes. */
async function firstBytes(socket: Socket, signal: AbortSignal): Promise<Buffer> {
  const closed = new AbortController()
  socket.once('close', () => closed.abort())
  const [bytes] = (await once(socket, 'data', { signal: AbortSignal.any([signal, closed.signal]) })) as [Buffer]
  return bytes
}

/** A socket whose writes fail, one alone and two together: it must stay open, and each error must be seen. */
async function toleratesWriteErrors(): Promise<boolean> {
  const socket = new Socket()
  let error_count = 0
  socket._write = (_chunk, _encoding, done) => done(new Error('A write fails.'))
  socket._writev = (_chunks, done) => done(new Error('Two writes fail.'))
  socket.on('error', () => {})
  wrapWrites(socket, () => {
    error_count++
    return true
  })
  await new Promise<void>((resolve) => void socket.write('a', () => resolve()))
  socket.cork()
  socket.write('b')
  const written = new Promise<void>((resolve) => void socket.write('c', () => resolve()))
  socket.uncork()
  await written
  const is_open = !socket.destroyed
  socket.destroy()
  return is_open && error_count === 2
}
