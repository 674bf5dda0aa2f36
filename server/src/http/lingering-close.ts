// Closes a connection whose request is refused before its whole body has arrived. A socket that is closed with unread bytes
// is reset, and a reset may discard the response before the client has read it. Then the edge would return 503, and the
// client would retry without success. So only our side is closed, and bytes that still arrive are discarded for a moment.
import type { IncomingMessage } from 'node:http'

/** A client that reads the response stops sending within this time. Otherwise it is cut off. */
const REST_MS_MAX = 2_000

/** Call it before the response is sent. */
export function lingerClose(request: IncomingMessage): void {
  const { socket } = request
  const close = socket.destroySoon.bind(socket)
  // Node's server calls this after the last response of a connection.
  socket.destroySoon = () => {
    if (request.complete) return close()
    socket.end()
    request.resume()
    const late = setTimeout(() => socket.destroy(), REST_MS_MAX)
    request.once('close', () => socket.destroy())
    socket.once('close', () => clearTimeout(late))
  }
}
