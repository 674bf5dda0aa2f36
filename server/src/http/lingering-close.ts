// A request that is refused before its body has come, with a word that the connection ends with the answer. Who closes a
// connection in which there are bytes that nobody has read resets it, and a reset may take the answer along before its
// reader has seen it: the edge would have to say 503, and a client would try again what can never be. So our side of the
// connection ends, and what still comes is thrown away for a moment.
import type { IncomingMessage } from 'node:http'

/** Who reads the answer stops sending; who does not is cut off. */
const REST_MS_MAX = 2_000

/** To be said before the answer is sent. */
export function lingerClose(request: IncomingMessage): void {
  const { socket } = request
  const close = socket.destroySoon.bind(socket)
  // What Node's server calls behind the last answer of a connection.
  socket.destroySoon = () => {
    if (request.complete) return close()
    socket.end()
    request.resume()
    const late = setTimeout(() => socket.destroy(), REST_MS_MAX)
    request.once('close', () => socket.destroy())
    socket.once('close', () => clearTimeout(late))
  }
}
