// Admission of players. A socket must present the player token that its browser got from find, and the platform consumes it.
// When the socket of an admitted player closes, for any reason, the seat is returned exactly once.
import { type Lobby, MusterError } from 'musterhost-sdk/server'
import type { WebSocket } from 'ws'
import { CLOSE, cleanName } from '../game/messages.ts'

const TOKEN_LENGTH_MAX = 2048
/** The maximum of a close frame. */
const REASON_BYTES_MAX = 123

export type Guest = { token: string; name: string }

/** Reads `/?token=…&name=…`. */
export function readGuest(url: string): Guest {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  return { token: query.get('token')?.slice(0, TOKEN_LENGTH_MAX) ?? '', name: cleanName(query.get('name') ?? '') }
}

/** Whether the guest is admitted and still connected. Otherwise the socket is closed and no seat is taken. */
export async function admit(lobby: Lobby, socket: WebSocket, { token }: Guest): Promise<boolean> {
  const returnSeat = () => {
    // Nothing more can be done here: the platform frees the seat when the lobby ends.
    lobby.disconnected(token).catch((error: unknown) => console.error('A seat was not returned:', error))
  }
  try {
    await lobby.connected(token)
  } catch (error) {
    const refusal = error instanceof MusterError ? error : new MusterError('INTERNAL_ERROR', 'The lobby has a fault.')
    // Without a response, the token may have been consumed.
    if (refusal.status < 400 || refusal.status >= 500) returnSeat()
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
    returnSeat()
    return false
  }
  socket.once('close', returnSeat)
  return true
}
