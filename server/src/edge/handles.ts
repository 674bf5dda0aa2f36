// Open sockets as handles that another process can receive. Everything here relies on Node's internals, because Node passes
// sockets only between a parent and its child. `checkHandles` tests them; where they are not as expected, an edge hands
// nothing over, and its restart breaks connections as a crash does.
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { type Server, Socket, type SocketConstructorOpts } from 'node:net'

/** A socket below the level of Node's classes. Its members are those that this room uses. */
export type SocketHandle = {
  readonly fd: number
  reading?: boolean
  readStart: () => number
  readStop: () => number
  recvStart?: () => number
  recvStop?: () => number
  close: () => void
}

type WithHandle = { _handle: SocketHandle | null }
type DatagramState = { handle: SocketHandle; connectState: number }

/** The value of `connectState` after `connect`. */
const CONNECTED = 2

/** Null for a socket that is closed, or that is not open yet. */
export function handleOf(socket: Socket | Server): SocketHandle | null {
  return (socket as unknown as WithHandle)._handle
}

/** A TCP connection. One over a unix socket leads to a link of this process, so another process cannot continue it. */
export function isTcp(socket: Socket): boolean {
  return handleOf(socket)?.constructor.name === 'TCP'
}

/** Reads nothing more from the socket until `resumeReading`. What was read before is emitted now. */
export function stopReading(socket: Socket): void {
  socket.pause()
  const handle = handleOf(socket)
  if (handle === null) return
  handle.reading = false
  handle.readStop()
  // In a paused stream, each read emits its bytes.
  while (socket.read() !== null) {}
}

/** Reads on after `stopReading`. */
export function startReading(socket: Socket): void {
  const handle = handleOf(socket)
  if (handle !== null && handle.reading === false) {
    handle.reading = true
    handle.readStart()
  }
  socket.resume()
}

/** A connection that another process had. It reads nothing before `resume`. */
export function openConnection(
  handle: SocketHandle,
  options: Pick<SocketConstructorOpts, 'onread'> & { highWaterMark?: number },
): Socket {
  const inner = { handle, allowHalfOpen: true, pauseOnCreate: true, ...options }
  return new Socket(inner as unknown as SocketConstructorOpts)
}

/** Null for a socket that is closed. */
export function datagramHandleOf(socket: DatagramSocket): SocketHandle | null {
  return stateOf(socket)?.handle ?? null
}

/** Datagrams stay in the system's buffer until `startReceiving`. */
export function stopReceiving(socket: DatagramSocket): void {
  datagramHandleOf(socket)?.recvStop?.()
}

export function startReceiving(socket: DatagramSocket): void {
  datagramHandleOf(socket)?.recvStart?.()
}

/**
 * A UDP socket that another process had, and had connected if `is_connected`. It receives nothing before `startReceiving`.
 * `lookup` is that of the new socket. The handle replaces that of a socket that was bound to any port, as Node itself does
 * for the workers of a cluster.
 */
export async function openDatagramSocket(
  handle: SocketHandle,
  {
    type,
    lookup,
    is_connected,
  }: { type: 'udp4' | 'udp6'; lookup: (hostname: string, ...rest: unknown[]) => void; is_connected: boolean },
): Promise<DatagramSocket> {
  const socket = createSocket({ type, lookup } as Parameters<typeof createSocket>[0])
  const bound = once(socket, 'listening')
  socket.bind({ port: 0, address: type === 'udp4' ? '127.0.0.1' : '::1', exclusive: true })
  await bound
  const state = stateOf(socket)
  const owner = state && symbolOf(state.handle, 'owner_symbol')
  if (state == null || owner == null) throw new Error('A UDP socket of this version of Node has other members.')
  const before = state.handle
  // Node gives a udp6 handle the methods for IPv6 in this way.
  for (const member of ['onmessage', 'lookup', 'bind', 'connect', 'send']) {
    Reflect.set(handle, member, Reflect.get(before, member))
  }
  Reflect.set(handle, owner, socket)
  state.handle = handle
  if (is_connected) state.connectState = CONNECTED
  before.close()
  return socket
}

function stateOf(socket: DatagramSocket): DatagramState | null {
  const symbol = symbolOf(socket, 'state symbol')
  return symbol === null ? null : ((Reflect.get(socket, symbol) as DatagramState | undefined) ?? null)
}

function symbolOf(object: object, description: string): symbol | null {
  return Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description) ?? null
}
