// Listeners of a socket that are taken off together, when it becomes somebody else's.
import type { Socket } from 'node:net'

export type Listeners = {
  data?: (chunk: Buffer) => void
  drain: () => void
  end: () => void
  error?: (error: NodeJS.ErrnoException) => void
  close: () => void
}

/** Answers how to take them off. */
export function listen(socket: Socket, listeners: Listeners): () => void {
  const entries = Object.entries(listeners)
  for (const [event, listener] of entries) socket.on(event, listener)
  return () => {
    for (const [event, listener] of entries) socket.off(event, listener)
  }
}
