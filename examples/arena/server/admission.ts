// Admission of players and spectators. A socket must present the player token that its browser got from find, and the platform
// consumes it and says the role.
// When the socket of an admitted player closes, for any reason, the seat is returned exactly once: it is free, or kept for a
// player who may be back.
import { type Lobby, MusterError } from 'musterhost-sdk/server'
import type { WebSocket } from 'ws'
import { BROKEN_RETURN_MS, CLOSE, cleanName } from '../game/messages.ts'

const TOKEN_LENGTH_MAX = 2048
/** The maximum of a close frame. */
const REASON_BYTES_MAX = 123
/** The code of a WebSocket whose page is gone. */
const GOING_AWAY = 1001
/** How long the seat of a player is kept, by the code: the page was loaded again or closed, or the connection broke. */
const RETURN_MS: Readonly<Record<number, number>> = {
  [GOING_AWAY]: 10_000,
  [CLOSE.BROKEN]: BROKEN_RETURN_MS,
  [CLOSE.AWAY]: BROKEN_RETURN_MS,
}

export type Guest = { token: string; name: string }
export type Role = 'player' | 'spectator'

/** Reads `/?token=…&name=…`. */
export function readGuest(url: string): Guest {
  const query = new URLSearchParams(url.split('?')[1] ?? '')
  return { token: query.get('token')?.slice(0, TOKEN_LENGTH_MAX) ?? '', name: cleanName(query.get('name') ?? '') }
}

/** The sockets of admitted players, by token. `left` resolves once the seat of a closed socket is kept or free. */
const admitted = new Map<string, { socket: WebSocket; left: Promise<void> }>()

/** The role of the guest, who is admitted and still connected. Null: the socket is closed and no seat is taken. */
export async function admit(lobby: Lobby, socket: WebSocket, { token }: Guest): Promise<Role | null> {
  const returnSeat = (hold_ms: number): Promise<void> =>
    // Nothing more can be done here: the platform frees the seat when the lobby ends.
    lobby.disconnected(token, { hold_ms }).catch((error: unknown) => console.error('A seat was not returned:', error))
  // A player whose network has changed comes before the old connection is noticed to be dead.
  const before = admitted.get(token)
  before?.socket.terminate()
  await before?.left
  let role: Role
  try {
    role = (await lobby.connected(token)).role ?? 'player'
  } catch (error) {
    const refusal = error instanceof MusterError ? error : new MusterError('INTERNAL_ERROR', 'The lobby has a fault.')
    // Without a response, the token may have been consumed.
    if (refusal.status < 400 || refusal.status >= 500) void returnSeat(0)
    socket.close(
      CLOSE.REFUSED,
      Buffer.from(refusal.message)
        .subarray(0, REASON_BYTES_MAX)
        .toString()
        .replace(/\uFFFD+$/, ''),
    )
    return null
  }
  if (socket.readyState !== socket.OPEN) {
    void returnSeat(returnMs(CLOSE.BROKEN))
    return null
  }
  const left = new Promise<void>((resolve) => {
    socket.once('close', async (code) => {
      await returnSeat(returnMs(code))
      if (admitted.get(token)?.socket === socket) admitted.delete(token)
      resolve()
    })
  })
  admitted.set(token, { socket, left })
  return role
}

/** Zero for a player who leaves by the page, which sends another code. */
export function returnMs(close_code: number): number {
  return RETURN_MS[close_code] ?? 0
}
