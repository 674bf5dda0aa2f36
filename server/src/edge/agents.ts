// The connections from the edge to what is behind it. `kept` are pooled per target and used again; `single` carry one
// WebSocket handshake each and then belong to the splice.
import { Agent } from 'node:http'
import { FREE_SOCKET_MS_MAX, FREE_SOCKETS_PER_TARGET_MAX, SOCKETS_PER_TARGET_MAX } from './limits.ts'

export type Agents = { kept: Agent; single: Agent; close: () => void }

export function createAgents(): Agents {
  const kept = new Agent({
    keepAlive: true,
    maxSockets: SOCKETS_PER_TARGET_MAX,
    maxFreeSockets: FREE_SOCKETS_PER_TARGET_MAX,
    scheduling: 'lifo',
    timeout: FREE_SOCKET_MS_MAX,
  })
  const single = new Agent({ keepAlive: false, maxSockets: SOCKETS_PER_TARGET_MAX })
  return {
    kept,
    single,
    close: () => {
      kept.destroy()
      single.destroy()
    },
  }
}
