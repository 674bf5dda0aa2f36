// Ratings of players: a leaderboard, one player, a reset and an export.
import {
  csvCell,
  exportRatings,
  getIdentityRatings,
  listRatings,
  type ResponseOf,
  resetRatings,
} from '@musterhost/contract'
import { EXIT, Failure } from '../failure.ts'
import type { GlobalOptions } from '../options.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { openNamespace } from './games.ts'
import { confirmRemoval, type RemovalOptions } from './removal.ts'

type RatingRow = ResponseOf<typeof listRatings>['ratings'][number]
export type ExportOptions = GlobalOptions & { format: 'csv' | 'ndjson'; gameMode?: string }
export type ResetOptions = GlobalOptions & RemovalOptions & { identity?: string; gameMode?: string }

/** Ratings of one response. */
const PAGE_MAX = 256
/** Pages of an export: 256 ratings each. */
const EXPORT_PAGES_MAX = 100_000
/** Digits after the point in a table. */
const DIGITS = 2

const LINES = { csv: csvLine, ndjson: (rating: RatingRow) => JSON.stringify(rating) } as const

const NAMES = [
  'game_mode',
  'identity_id',
  'display_name',
  'account_number',
  'mu',
  'sigma',
  'ordinal',
  'matches',
  'update_ts',
] as const satisfies readonly (keyof RatingRow)[]

export async function showLeaderboard(
  terminal: Terminal,
  game_mode: string,
  options: GlobalOptions & { lines: number },
): Promise<void> {
  const { session, namespace, where } = await openNamespace(terminal, options)
  terminal.note(`Ratings of ${game_mode} in ${where}`)
  const { namespace_id } = namespace
  const ratings: RatingRow[] = []
  let anchor: string | undefined
  do {
    const limit = Math.min(PAGE_MAX, options.lines - ratings.length)
    const query = { namespace_id, game_mode, limit, ...(anchor === undefined ? {} : { anchor }) }
    const page = await session.client.call(listRatings, { query })
    ratings.push(...page.ratings)
    anchor = page.anchor
  } while (anchor !== undefined && ratings.length < options.lines)
  if (terminal.is_json) return terminal.json({ ratings, ...(anchor === undefined ? {} : { anchor }) })
  printTable(
    terminal,
    ratings.map((rating, index) => ({ ...rating, place: index + 1 })),
    [
      { title: '#', text: ({ place }) => String(place) },
      { title: 'PLAYER', text: ({ display_name, account_number }) => `${display_name}#${account_number}` },
      { title: 'ORDINAL', text: ({ ordinal }) => ordinal.toFixed(DIGITS) },
      { title: 'MU', text: ({ mu }) => mu.toFixed(DIGITS) },
      { title: 'SIGMA', text: ({ sigma }) => sigma.toFixed(DIGITS) },
      { title: 'MATCHES', text: ({ matches }) => String(matches) },
      { title: 'IDENTITY', text: ({ identity_id }) => identity_id, is_whole: true },
    ],
    'There is no rating. A lobby server reports results with POST /matchmaker/lobbies/result.',
  )
}

export async function showIdentity(terminal: Terminal, identity_id: string, options: GlobalOptions): Promise<void> {
  const { session, namespace, where } = await openNamespace(terminal, options)
  terminal.note(`Ratings of ${identity_id} in ${where}`)
  const query = { namespace_id: namespace.namespace_id }
  const { ratings } = await session.client.call(getIdentityRatings, { params: { identity_id }, query })
  if (terminal.is_json) return terminal.json({ ratings })
  printTable(
    terminal,
    ratings,
    [
      { title: 'GAME MODE', text: ({ game_mode }) => game_mode },
      { title: 'ORDINAL', text: ({ ordinal }) => ordinal.toFixed(DIGITS) },
      { title: 'MU', text: ({ mu }) => mu.toFixed(DIGITS) },
      { title: 'SIGMA', text: ({ sigma }) => sigma.toFixed(DIGITS) },
      { title: 'MATCHES', text: ({ matches }) => String(matches) },
      { title: 'LAST MATCH', text: ({ update_ts }) => ago(terminal, update_ts) },
    ],
    'The player has no rated match.',
  )
}

export async function reset(
  terminal: Terminal,
  { identity: identity_id, gameMode: game_mode, ...options }: ResetOptions,
): Promise<void> {
  if (identity_id === undefined && game_mode === undefined) {
    throw new Failure('--identity or --game-mode is missing.', {
      exit_code: EXIT.usage,
      remedy: 'Name the player, the game mode, or both.',
    })
  }
  const { session, namespace, where } = await openNamespace(terminal, options)
  const whose = identity_id === undefined ? 'every player' : identity_id
  const what = `the ratings of ${whose} in ${game_mode ?? 'every game mode'} of ${where}`
  await confirmRemoval(terminal, `Remove ${what}?`, options)
  const body = {
    namespace_id: namespace.namespace_id,
    ...(identity_id === undefined ? {} : { identity_id }),
    ...(game_mode === undefined ? {} : { game_mode }),
  }
  const response = await session.client.call(resetRatings, { body })
  if (terminal.is_json) return terminal.json(response)
  terminal.note(`Removed ${what}: ${response.removed_count}.`)
}

/** Prints each page as it comes. */
export async function exportAll(terminal: Terminal, options: ExportOptions): Promise<void> {
  const { session, namespace } = await openNamespace(terminal, options)
  const { namespace_id } = namespace
  if (options.format === 'csv') terminal.print(NAMES.join())
  let anchor: string | undefined
  for (let page = 0; page < EXPORT_PAGES_MAX; page++) {
    const query = {
      namespace_id,
      ...(options.gameMode === undefined ? {} : { game_mode: options.gameMode }),
      ...(anchor === undefined ? {} : { anchor }),
    }
    const response = await session.client.call(exportRatings, { query })
    for (const rating of response.ratings) terminal.print(LINES[options.format](rating))
    anchor = response.anchor
    if (anchor === undefined) return
  }
  throw new Failure(`There are more than ${EXPORT_PAGES_MAX * PAGE_MAX} ratings.`, {
    exit_code: EXIT.failed,
    remedy: 'Export one game mode: --game-mode NAME',
  })
}

function csvLine(rating: RatingRow): string {
  return NAMES.map((name) => csvCell(String(rating[name]))).join()
}
