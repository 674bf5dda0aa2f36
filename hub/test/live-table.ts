// The table of running lobbies beside the tables of the platform, cell by cell.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { Platform, TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { bytes } from '../src/parts/numbers.ts'

/** The texts of a row, by the title of their column. */
type Cells = Record<string, string>
/** By lobby. */
type Table = Record<string, Cells>

/** The platform sends the use of memory in such steps. */
const SENT_BYTES = 64 * 1024
/** They hold no data of their own, or grow all the time. */
const NOT_COMPARED = ['Select', 'Lobby', 'Age']

async function shownTable(page: Page): Promise<Table> {
  const { titles, rows } = await page.evaluate(() => {
    const table = document.querySelector('table[aria-label="Running lobbies"]')
    const textsOf = (parent: Element | null | undefined, name: string): string[] =>
      [...(parent?.querySelectorAll(name) ?? [])].map((cell) => cell.textContent?.replaceAll(/\s+/g, ' ').trim() ?? '')
    return {
      titles: textsOf(table, 'th').map((title) => title.replace(/ [↑↓]$/, '')),
      rows: [...(table?.querySelectorAll('tbody tr') ?? [])].map((row) => ({
        lobby_id: row.querySelector('a')?.title ?? '',
        texts: textsOf(row, 'td'),
      })),
    }
  })
  return Object.fromEntries(
    rows.map(({ lobby_id, texts }) => {
      const cells = titles.map((title, at) => [title, texts[at] ?? ''] as const)
      return [lobby_id, Object.fromEntries(cells.filter(([title]) => !NOT_COMPARED.includes(title)))]
    }),
  )
}

type LobbyRow = {
  lobby_id: string
  game_mode: string
  is_closed: boolean
  is_stalled: boolean
  is_ready: boolean
  is_outdated: boolean
  max_players_normal: number
  version: string
  taken: number
  /** Cores that the tier gives, and the newest sample; null before the first one. */
  cpu_cores: number
  used_cores: number | null
  used_bytes: number | null
}

const LOBBIES_SQL = `
  select l.lobby_id, l.game_mode, l.is_closed, l.is_stalled, l.ready_ts is not null as is_ready, l.max_players_normal,
    l.version_id <> n.version_id as is_outdated, v.display_name as version, l.cpu_cores,
    u.cpu_cores as used_cores, u.memory_bytes as used_bytes,
    (select count(*)::int from players p where p.lobby_id = l.lobby_id and p.remove_ts is null) as taken
  from lobbies l
    join namespaces n using (namespace_id)
    join versions v on v.version_id = l.version_id
    left join lobby_usage u using (lobby_id)
  where l.namespace_id = $1 and l.stop_ts is null`

/** What the page must show once it has every change. */
export async function wantedTable({ ctx }: Platform, { namespace_id }: TestGame): Promise<Table> {
  const { rows } = await ctx.pool.query<LobbyRow>(LOBBIES_SQL, [namespace_id])
  return Object.fromEntries(rows.map((row) => [row.lobby_id, cellsOf(row)]))
}

function cellsOf(row: LobbyRow): Cells {
  return {
    State: row.is_outdated ? `${stateOf(row)} outdated` : stateOf(row),
    Players: `${row.taken} / ${row.max_players_normal}`,
    Mode: row.game_mode,
    Version: row.version,
    Region: 'Local',
    CPU: row.used_cores === null ? '' : `${Math.round((hundredths(row.used_cores) / row.cpu_cores) * 100)} %`,
    Memory: row.used_bytes === null ? '' : bytes(Math.round(row.used_bytes / SENT_BYTES) * SENT_BYTES),
  }
}

/** The platform sends the use of a processor in hundredths of a core. */
const hundredths = (cores: number): number => Math.round(cores * 100) / 100

function stateOf({ is_stalled, is_ready, is_closed, taken }: LobbyRow): string {
  if (is_stalled) return 'stalled'
  if (!is_ready) return 'starting'
  if (is_closed) return 'closed'
  return taken === 0 ? 'idle' : 'ready'
}

/** Waits until the page shows what the tables have. Returns the number of lobbies. */
export async function requireTrueTable(platform: Platform, game: TestGame, page: Page): Promise<number> {
  let shown: Table = {}
  let wanted: Table = {}
  await until('the page to show what the tables have', async () => {
    ;[wanted, shown] = [await wantedTable(platform, game), await shownTable(page)]
    return textOf(shown) === textOf(wanted)
  }).catch(() => undefined)
  assert.deepEqual(shown, wanted)
  return Object.keys(shown).length
}

function textOf(table: Table): string {
  const rows = Object.entries(table).map(([lobby_id, cells]) => [lobby_id, Object.entries(cells).sort()] as const)
  return JSON.stringify(rows.sort(([one], [other]) => (one < other ? -1 : 1)))
}
