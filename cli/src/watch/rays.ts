// Requests that the platform kept, and the search for a player, a lobby, a ray or an address in all namespaces of a game.
import { listGameRays, type ResponseOf, searchGame } from '@musterhost/contract'
import type { GlobalOptions } from '../options.ts'
import { openSession } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago, durationText } from '../times.ts'

export type RayOptions = GlobalOptions & {
  code?: string
  operation?: string
  slower?: number
  player?: string
  since?: number
  until?: number
  lines: number
}
type Ray = ResponseOf<typeof listGameRays>['rays'][number]

/** Pages of one command. A page may have fewer rays than asked for, because its search is bounded. */
const PAGES_MAX = 50
/** Rays that one call lists. */
const PAGE_SIZE_MAX = 100
const US_PER_MS = 1000

export async function listRays(terminal: Terminal, options: RayOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const { game_id, name_id } = await session.game()
  const namespace = options.namespace === undefined ? null : await session.namespace()
  const query = {
    ...(namespace === null ? {} : { namespace_id: namespace.namespace_id }),
    ...(options.code === undefined ? {} : { code: options.code }),
    ...(options.operation === undefined ? {} : { operation: options.operation }),
    ...(options.slower === undefined ? {} : { duration_min: options.slower * US_PER_MS }),
    ...(options.player === undefined ? {} : { player_id: options.player }),
    ...(options.since === undefined ? {} : { query_start: new Date(options.since).toISOString() }),
    ...(options.until === undefined ? {} : { query_end: new Date(options.until).toISOString() }),
  }
  terminal.note(
    `Kept requests of ${namespace === null ? name_id : `${name_id}/${namespace.name_id}`} at ${session.url}`,
  )
  const rays: Ray[] = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_MAX && rays.length < options.lines; page++) {
    const limit = Math.min(PAGE_SIZE_MAX, options.lines - rays.length)
    const response = await session.client.call(listGameRays, {
      params: { game_id },
      query: { ...query, limit, ...(cursor === undefined ? {} : { cursor }) },
    })
    rays.push(...response.rays)
    cursor = response.next_cursor
    if (cursor === undefined) break
  }
  const is_cut = cursor !== undefined
  if (terminal.is_json) return terminal.json({ rays, ...(cursor === undefined ? {} : { next_cursor: cursor }) })
  printRays(terminal, rays, 'No kept request matches. Failed and slow requests are kept, and a sample of the others.')
  if (is_cut) terminal.note('There are more: narrow the time with --since and --until, or ask for more with --lines.')
}

export async function search(terminal: Terminal, text: string, options: GlobalOptions): Promise<void> {
  const session = await openSession(terminal, options)
  const game = await session.gameFull()
  terminal.note(`Searching ${game.name_id} at ${session.url}`)
  const found = await session.client.call(searchGame, { params: { game_id: game.game_id }, query: { text } })
  if (terminal.is_json) return terminal.json(found)
  const namespaceName = (id: string): string =>
    game.namespaces.find(({ namespace_id }) => namespace_id === id)?.name_id ?? id
  printTable(
    terminal,
    found.players.items,
    [
      { title: 'PLAYER', text: ({ player_id }) => player_id, is_whole: true },
      { title: 'NAMESPACE', text: ({ namespace_id }) => namespaceName(namespace_id) },
      { title: 'LOBBY', text: ({ lobby_id }) => lobby_id.slice(-12), is_whole: true },
      { title: 'CLIENT', text: ({ client_key }) => client_key },
      { title: 'CAME', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'LEFT', text: ({ remove_ts, remove_reason }) => leftText(terminal, remove_ts, remove_reason) },
    ],
    'No player.',
  )
  printTable(
    terminal,
    found.lobbies.items,
    [
      { title: 'LOBBY', text: ({ lobby_id }) => lobby_id, is_whole: true },
      { title: 'NAMESPACE', text: ({ namespace_id }) => namespaceName(namespace_id) },
      { title: 'MODE', text: ({ game_mode }) => game_mode },
      { title: 'CREATED', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'STOPPED', text: ({ stop_ts }) => (stop_ts === undefined ? 'runs' : ago(terminal, stop_ts)) },
    ],
    'No lobby.',
  )
  printRays(terminal, found.rays.items, 'No kept request.')
  if ([found.players, found.lobbies, found.rays].some(({ is_cut }) => is_cut)) {
    terminal.note('There are more; these are the newest 20 of each kind.')
  }
}

function printRays(terminal: Terminal, rays: readonly Ray[], empty: string): void {
  printTable(
    terminal,
    rays,
    [
      { title: 'RAY', text: ({ ray_id }) => ray_id, is_whole: true },
      { title: 'WHEN', text: ({ ts }) => ago(terminal, ts) },
      { title: 'OPERATION', text: ({ operation }) => operation },
      { title: 'TOOK', text: ({ duration }) => durationText(duration / US_PER_MS), align: 'right' },
      { title: 'CODE', text: ({ code }) => code ?? '' },
    ],
    empty,
  )
}

function leftText(terminal: Terminal, remove_ts: string | undefined, reason: string | undefined): string {
  return remove_ts === undefined ? '' : `${ago(terminal, remove_ts)} (${reason ?? 'unknown'})`
}
