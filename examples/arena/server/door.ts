// Admits players. A socket must present the player token that its browser got from find, and the platform consumes it. Only
// then there is a player. When the socket closes, for any reason, the seat is returned exactly once.
import { type Lobby, MusterError } from '@muster/sdk/server'
import type { WebSocket } from 'ws'
import { CLOSE, cleanName } from '../game/messages.ts'

const TOKEN_LENGTH_MAX = 2048
/** What a close frame can carry. */
const REASON_BYTES_MAX = 123

export type Guest = { token: string; name: string }

/** Reads `/?token=…&name=…`. */
export function readGuest(url: string): Guest {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  return { token: query.get('token')?.slice(0, TOKEN_LENGTH_MAX) ?? '', name: cleanName(query.get('name') ?? '') }
}

/** Whether the guest is a player now and still there. If not, the socket is closed and no seat is held. */
export async function admit(lobby: Lobby, socket: WebSocket, { token }: Guest): Promise<boolean> {
  const freeBuffer = () => {
    // The platform removes a player whose lobby ends; more than to say so cannot be done here.
    lobby.disconnected(token).catch((error: unknown) => console.error('A seat was not given back:', error))
  }
  try {
    await lobby.connected(token)
  } catch (error) {
    const refusal = error instanceof MusterError ? error : new MusterError('INTERNAL_ERROR', 'The lobby has a fault.')
    // Without a response, the token may still have been consumed.
    if (refusal.status < 400 || refusal.status >= 500) freeBuffer()
    socket.close(
      CLOSE.REFUSED,
      Buffer.from(refusal.message)
        .subarray(0, REASON_BYTES_MAX)
        .toString()
        .replace(/\uFFFD+$/, ''),
    )
    return false
  }
  if (socket.readyState !== socket.OPEN) {
    freeBuffer()
    return false
  }
  socket.once('close', freeBuffer)
  return true
}
