// Whether a process of the platform can be reached: a TCP connection, which is closed at once. It costs the process no request.
import { connect, type Socket } from 'node:net'
import { bareHost } from '../text/bare-host.ts'

/** `refused`: the machine responds, and nothing listens there. `late`: no response came in time, or the network has an error. */
export type ProbeEnd = 'connected' | 'refused' | 'late'

export function probe(target: { host: string; port: number }, ms: number): Promise<ProbeEnd> {
  const { promise, resolve } = Promise.withResolvers<ProbeEnd>()
  const socket = connect(target)
  const cancel = whenLate(socket, ms, () => socket.destroy(new Error('The probe takes too long.')))
  socket.once('connect', () => {
    resolve('connected')
    socket.destroy()
  })
  socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED' ? 'refused' : 'late'))
  socket.once('close', cancel)
  return promise
}

/** Resolves to whether a connection could be made within `ms`. */
export async function canConnect(target: { host: string; port: number }, ms: number): Promise<boolean> {
  return (await probe(target, ms)) === 'connected'
}

/**
 * Calls `onLate` when the socket has no connection after `ms`. A process that was busy itself for so long learns first that the
 * time is over, and then that the connection was made long ago. So it looks once more after it has read its sockets.
 */
export function whenLate(socket: Socket, ms: number, onLate: () => void): () => void {
  const timer = setTimeout(() => {
    setImmediate(() => {
      if (socket.connecting) onLate()
    })
  }, ms)
  return () => clearTimeout(timer)
}

/** `address`: a host and a port, such as `[::1]:6421`. */
export function targetOf(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: bareHost(address.slice(0, colon)), port: Number(address.slice(colon + 1)) }
}
