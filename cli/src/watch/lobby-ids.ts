// Ids of lobbies for people. They begin with the time, so lobbies of one minute begin alike: the short form is the end of the
// id, and every command accepts it.
import { getAnalyticsMatchmakerLive, listNamespaceLobbies } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { didYouMean } from '@musterhost/contract/suggestion'
import { EXIT, Failure } from '../failure.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const ENDING = /^[0-9a-f]{6,12}$/
const SHORT_LENGTHS = [8, 12] as const
/** Pages of past lobbies that are searched for an ending. A page has 64. */
const PAGES_MAX = 16

/** The shortest ending that differs for all of these. */
export function shortIds(ids: readonly string[]): (id: string) => string {
  const length = SHORT_LENGTHS.find((one) => new Set(ids.map((id) => id.slice(-one))).size === new Set(ids).size)
  return (id) => (length === undefined ? id : id.slice(-length))
}

/** The lobby with this id, or with this ending of its id. */
export async function findLobbyId(
  client: Client,
  params: { game_id: string; namespace_id: string },
  text: string,
): Promise<string> {
  const wanted = text.toLowerCase()
  if (UUID.test(wanted)) return wanted
  if (!ENDING.test(wanted)) {
    throw new Failure(`${text} is not the id of a lobby.`, {
      exit_code: EXIT.usage,
      remedy: 'Give the id, or its last 6 to 12 characters, as muster lobbies shows them.',
    })
  }
  const { lobbies } = await client.call(getAnalyticsMatchmakerLive, { params })
  const ids = new Set(lobbies.map(({ lobby_id }) => lobby_id))
  let before_create_ts: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    const found = [...ids].filter((id) => id.endsWith(wanted))
    if (found.length === 1) return found[0]!
    if (found.length > 1)
      throw new Failure(`Several lobbies end in ${wanted}.`, { remedy: `Their ids: ${found.join(', ')}` })
    const query = before_create_ts === undefined ? {} : { before_create_ts }
    const past = await client.call(listNamespaceLobbies, { params, query })
    for (const { lobby_id } of past.lobbies) ids.add(lobby_id)
    before_create_ts = past.lobbies.at(-1)?.create_ts
    if (!past.is_cut) break
  }
  const last = [...ids].filter((id) => id.endsWith(wanted))
  if (last.length === 1) return last[0]!
  const endings = [...ids].map((id) => id.slice(-wanted.length))
  throw new Failure(`No lobby of the namespace ends in ${wanted}.${didYouMean(wanted, endings)}`, {
    remedy: 'See all: muster lobbies --all',
  })
}
