// Whether a process of the platform can be reached: a TCP connection, which is closed at once. It costs the process no request.
import { connect, type Socket } from 'node:net'

/** Resolves to whether a connection could be made within `ms`. */
export function canConnect(target: { host: string; port: number }, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(target)
  const cancel = whenLate(socket, ms, () => socket.destroy(new Error('The probe takes too long.')))
  socket.once('connect', () => {
    resolve(true)
    socket.destroy()
  })
  socket.once('error', () => resolve(false))
  socket.once('close', cancel)
  return promise
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
