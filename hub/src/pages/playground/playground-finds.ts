// Finds of the playground. A find needs a token of the game: one is made for each action and revoked right after it.
import type { BodyOf, findLobby as find, ResponseOf } from '@musterhost/contract'
import { call, callWithToken } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import { confirmed } from '../../api/confirmed.ts'
import {
  createCloudToken,
  createGameNamespaceTokenPublic,
  deleteMatchmakerLobbyPlayer,
  findLobby,
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  revokeGameCloudToken,
  revokeGameNamespaceTokenPublic,
  searchGame,
} from '../../api/operations.gen.ts'
import { showToast } from '../../toasts.ts'

export type Ids = { game_id: string; namespace_id: string }
export type FindBody = BodyOf<typeof find>
type Seat = ResponseOf<typeof find>
/** What one find returned. `seat` is null after a refusal. */
export type FindOutcome = { seat: Seat | null; error: CallError | null; ray_id: string | null; took_ms: number }

/** Fake players of one page. */
export const FAKE_PLAYERS_MAX = 32
/** The cloud token of fake players expires even when the page is closed before it is revoked. */
const TOKEN_TTL_MS = 5 * 60_000
/** The projection writes a new player about once a second. */
const SEARCHES_MAX = 10
const SEARCH_PAUSE_MS = 500
/** Fake players have addresses of 198.18.0.0/15, the range for measurements, so that no real client is meant. */
const FAKE_NETWORK = '198.18'

/** As a player's browser does: with a public token. Limits and captcha hold for the address of this browser. */
export async function findAsPlayer(ids: Ids, body: FindBody): Promise<FindOutcome> {
  const { tokens: before } = await call(listGameNamespaceTokensPublic, { params: ids })
  const { token } = await call(createGameNamespaceTokenPublic, { params: ids })
  try {
    return await findWith(token, body)
  } finally {
    const { tokens: after } = await call(listGameNamespaceTokensPublic, { params: ids })
    await revokeNew(before, after, (token_id) =>
      confirmed(() => call(revokeGameNamespaceTokenPublic, { params: { ...ids, token_id } })),
    )
  }
}

/** As the game's own backend does for its players: with a cloud token and the address of each player. */
export async function findAsBackend(
  { game_id, namespace_id }: Ids,
  body: FindBody,
  addresses: readonly string[],
  onOutcome: (outcome: FindOutcome, address: string) => void,
): Promise<void> {
  const params = { game_id }
  const { tokens: before } = await call(listGameCloudTokens, { params })
  const { token } = await call(createCloudToken, { params, body: { ttl: TOKEN_TTL_MS } })
  try {
    for (const address of addresses.slice(0, FAKE_PLAYERS_MAX)) {
      onOutcome(await findWith(token, { ...body, namespace_id, clients: [{ address }] }), address)
    }
  } finally {
    const { tokens: after } = await call(listGameCloudTokens, { params })
    // The token revokes itself: a person with a passkey would have to confirm.
    await revokeNew(before, after, (token_id) =>
      callWithToken(revokeGameCloudToken, { params: { ...params, token_id } }, token),
    )
  }
}

type Issued = { token_id: string }

/** The token of this page is the one that was not there before. When somebody else made one meanwhile, neither is touched. */
async function revokeNew(
  before: readonly Issued[],
  after: readonly Issued[],
  revoke: (token_id: string) => Promise<unknown>,
): Promise<void> {
  const known = new Set(before.map(({ token_id }) => token_id))
  const fresh = after.filter(({ token_id }) => !known.has(token_id))
  if (fresh.length === 1) await revoke(fresh[0]!.token_id)
}

async function findWith(token: string, body: FindBody): Promise<FindOutcome> {
  const start_ms = performance.now()
  const took = (): number => performance.now() - start_ms
  try {
    const { response, ray_id } = await callWithToken(findLobby, { body }, token)
    return { seat: response, error: null, ray_id, took_ms: took() }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    return { seat: null, error, ray_id: error.ray_id, took_ms: took() }
  }
}

/** Addresses that no other fake player of this page has. */
export function fakeAddresses(wanted: number, taken: ReadonlySet<string>): string[] {
  const addresses = new Set<string>()
  while (addresses.size < wanted) {
    const [third, fourth] = crypto.getRandomValues(new Uint8Array(2))
    const address = `${FAKE_NETWORK}.${third}.${fourth}`
    if (!taken.has(address)) addresses.add(address)
  }
  return [...addresses]
}

/** Gives the seat of a fake player back. Its id is not in the response of find, so it is searched by its address. */
export async function removeFakePlayer({ game_id }: Ids, address: string, lobby_id: string): Promise<void> {
  for (let search = 0; search < SEARCHES_MAX; search++) {
    const { players } = await call(searchGame, { params: { game_id }, query: { text: address } })
    const player = players.items.find((found) => found.lobby_id === lobby_id)
    if (player !== undefined) {
      const { player_id } = player
      if (player.remove_ts === undefined) {
        await call(deleteMatchmakerLobbyPlayer, { params: { game_id, lobby_id, player_id } })
      }
      return
    }
    await new Promise((resolve) => setTimeout(resolve, SEARCH_PAUSE_MS))
  }
  throw new CallError('PLAYER_NOT_FOUND', 'The seat of this player is not known yet. Try again in a moment.')
}

export function showFailure(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  showToast('bad', message, error instanceof CallError ? error.ray_id : null)
}
