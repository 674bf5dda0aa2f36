// Listeners of a socket that are removed together, when something else takes the socket over.
import type { Listenable } from './client-socket.ts'

export type Listeners = {
  data?: (chunk: Buffer) => void
  drain: () => void
  end: () => void
  error?: (error: NodeJS.ErrnoException) => void
  close: () => void
}

/** Returns a function that removes the listeners. */
export function listen(socket: Listenable, listeners: Listeners): () => void {
  const entries = Object.entries(listeners)
  for (const [event, listener] of entries) socket.on(event, listener)
  return () => {
    for (const [event, listener] of entries) socket.off(event, listener)
  }
}
