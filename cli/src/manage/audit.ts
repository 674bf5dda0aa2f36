// The audit log of a group: who changed what, when and from where.
import { type AuditEvent, type AuditOutcome, csvCell, listGroupAuditEvents, type QueryOf } from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { EXIT, Failure } from '../failure.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { type GroupOptions, openGroup } from './groups.ts'

export type AuditOptions = GroupOptions & {
  actor?: string
  operation?: string
  outcome?: AuditOutcome
  code?: string
  ray?: string
  address?: string
  since?: number
  until?: number
  lines?: number
  csv?: boolean
}

/** Events of one response. */
const PAGE_SIZE_MAX = 200
const EVENTS_DEFAULT = 50
/** Events of one CSV output, as of an exported file. */
const CSV_EVENTS_MAX = 1_000_000

/** The columns of a file that the platform exports. */
const CSV_CELLS: readonly (readonly [name: string, cell: (event: AuditEvent) => string | undefined])[] = [
  ['event_id', ({ event_id }) => event_id],
  ['create_ts', ({ create_ts }) => create_ts],
  ['group_id', ({ group_id }) => group_id],
  ['game_id', ({ game_id }) => game_id],
  ['namespace_id', ({ namespace_id }) => namespace_id],
  ['actor_kind', ({ actor }) => actor.kind],
  ['user_id', ({ actor }) => actor.user_id],
  ['name', ({ actor }) => actor.name],
  ['token_id', ({ actor }) => actor.token_id],
  ['client_ip', ({ client_ip }) => client_ip],
  ['ray_id', ({ ray_id }) => ray_id],
  ['operation', ({ operation }) => operation],
  ['outcome', ({ outcome }) => outcome],
  ['code', ({ code }) => code],
  ['changes', ({ changes }) => JSON.stringify(changes)],
  ['dropped_count', ({ dropped_count }) => String(dropped_count ?? 0)],
]

export async function showAudit(terminal: Terminal, options: AuditOptions): Promise<void> {
  if (options.csv && terminal.is_json) {
    throw new Failure('--csv and --json exclude each other.', {
      exit_code: EXIT.usage,
      remedy: 'Leave one of them out.',
    })
  }
  const { client, group } = await openGroup(terminal, options)
  const query = {
    ...(options.actor === undefined ? {} : { actor_id: options.actor }),
    ...(options.operation === undefined ? {} : { operation: options.operation }),
    ...(options.outcome === undefined ? {} : { outcome: options.outcome }),
    ...(options.code === undefined ? {} : { code: options.code }),
    ...(options.ray === undefined ? {} : { ray_id: options.ray }),
    ...(options.address === undefined ? {} : { client_ip: options.address }),
    ...(options.since === undefined ? {} : { query_start: new Date(options.since).toISOString() }),
    ...(options.until === undefined ? {} : { query_end: new Date(options.until).toISOString() }),
  }
  const pages = pagesOf(client, group.group_id, query, options.lines ?? (options.csv ? CSV_EVENTS_MAX : EVENTS_DEFAULT))
  if (options.csv) return printCsv(terminal, pages)
  const events: AuditEvent[] = []
  let is_cut = false
  for await (const page of pages) {
    events.push(...page.events)
    is_cut = page.is_cut
  }
  if (terminal.is_json) return terminal.json({ events, is_cut })
  printTable(
    terminal,
    events,
    [
      { title: 'WHEN', text: ({ create_ts }) => ago(terminal, create_ts) },
      { title: 'WHO', text: ({ actor }) => actor.name ?? actor.kind },
      { title: 'FROM', text: ({ client_ip }) => client_ip },
      { title: 'OPERATION', text: ({ operation }) => operation },
      { title: 'OUTCOME', text: ({ outcome, code }) => (code === undefined ? outcome : `${outcome} (${code})`) },
      { title: 'CHANGES', text: changesText },
    ],
    'No event matches.',
  )
  if (is_cut) terminal.note('There are older events: --until, or more with --lines.')
}

type Page = { events: AuditEvent[]; is_cut: boolean }
type Query = Omit<QueryOf<typeof listGroupAuditEvents>, 'limit' | 'before_event_id'>

/** Newest first, page by page, until there are no more or `count_max` were read. */
async function* pagesOf(client: Client, group_id: string, query: Query, count_max: number): AsyncGenerator<Page> {
  let last: AuditEvent | undefined
  for (let count = 0; count < count_max; ) {
    const limit = Math.min(PAGE_SIZE_MAX, count_max - count)
    const before = last === undefined ? {} : { before_event_id: last.event_id }
    const page = await client.call(listGroupAuditEvents, {
      params: { group_id },
      query: { ...query, limit, ...before },
    })
    yield page
    last = page.events.at(-1)
    if (!page.is_cut || last === undefined) return
    count += page.events.length
  }
}

/** Each page is printed as it arrives. No cell is a formula, or drives a terminal. */
async function printCsv(terminal: Terminal, pages: AsyncIterable<Page>): Promise<void> {
  terminal.print(CSV_CELLS.map(([name]) => name).join())
  let is_cut = false
  for await (const page of pages) {
    for (const event of page.events) terminal.print(CSV_CELLS.map(([, cell]) => csvCell(cell(event) ?? '')).join())
    is_cut = page.is_cut
  }
  if (is_cut) terminal.note('There are older events: --until, or more with --lines.')
}

function changesText({ changes }: AuditEvent): string {
  return changes
    .map(({ member, before, after, is_secret }) =>
      is_secret ? `${member}: (secret)` : `${member}: ${before ?? '-'} → ${after ?? '-'}`,
    )
    .join(', ')
}
