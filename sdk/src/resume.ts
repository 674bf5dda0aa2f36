// What a browser stores for a page, and the seat that its player has already: each client stores the token of its last seat for the
// tab, so that a page which is loaded again finds the seat.
import { MusterError } from './error.ts'

export type PageStorage = Pick<Storage, 'getItem' | 'setItem'>
type StorageName = 'localStorage' | 'sessionStorage'

export function pageStorage(name: StorageName): PageStorage {
  return {
    getItem: (key) => access(name, (storage) => storage.getItem(key)),
    setItem: (key, value) => void access(name, (storage) => storage.setItem(key, value)),
  }
}

/** Null: there is none, or it is blocked. Browsers may block the storage of a page in a frame of another site: then all access throws. */
function access<T>(name: StorageName, use: (storage: Storage) => T): T | null {
  try {
    const storage = (globalThis as { [N in StorageName]?: Storage })[name]
    return storage === undefined ? null : use(storage)
  } catch (error) {
    if (error instanceof DOMException) return null
    throw error
  }
}

type WithToken = { player: { token: string } }

export type StoredSeat = { keep<S extends WithToken>(seat: S): S; token(): string | null; forget(): void }

/** The identity tokens of players begin with it. */
const IDENTITY_LABEL = 'game_user.'
const SEAT_KEY = 'muster.seat'

export function storedSeat(option: PageStorage | null | undefined): StoredSeat {
  const storage = option === undefined ? pageStorage('sessionStorage') : option
  return {
    keep(seat) {
      storage?.setItem(SEAT_KEY, seat.player.token)
      return seat
    },
    token: () => storage?.getItem(SEAT_KEY) || null,
    forget: () => storage?.setItem(SEAT_KEY, ''),
  }
}

/** `post` sends the body to the platform. `token`: of the client. Null: the player has no seat. */
export async function resumeSeat<S extends WithToken & { is_connected: boolean }>(
  stored: StoredSeat,
  token: string | undefined,
  post: (body: { player_token?: string }) => Promise<{ seats: S[] }>,
): Promise<S | null> {
  const player_token = stored.token()
  if (player_token === null && !token?.startsWith(IDENTITY_LABEL)) return null
  try {
    const { seats } = await post(player_token === null ? {} : { player_token })
    const seat =
      seats.find(({ player }) => player.token === player_token) ?? seats.find(({ is_connected }) => !is_connected)
    if (seat === undefined) stored.forget()
    return seat === undefined ? null : stored.keep(seat)
  } catch (error) {
    // The tab has the token of another namespace, or of a platform that was set up again.
    if (!(error instanceof MusterError) || error.code !== 'PLAYER_TOKEN_INVALID' || player_token === null) throw error
    stored.forget()
    return resumeSeat(stored, token, post)
  }
}
