// The audit log of a group: who changed what, when and from where.
import { type AuditEvent, type AuditOutcome, listGroupAuditEvents } from '@muster/contract'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { ago } from '../times.ts'
import { type GroupOptions, openGroup } from './groups.ts'

export type AuditOptions = GroupOptions & {
  actor?: string
  operation?: string
  outcome?: AuditOutcome
  since?: number
  until?: number
  lines: number
}

/** Events of one response. */
const PAGE_SIZE_MAX = 200

export async function showAudit(terminal: Terminal, options: AuditOptions): Promise<void> {
  const { client, group } = await openGroup(terminal, options)
  const query = {
    ...(options.actor === undefined ? {} : { actor_id: options.actor }),
    ...(options.operation === undefined ? {} : { operation: options.operation }),
    ...(options.outcome === undefined ? {} : { outcome: options.outcome }),
    ...(options.since === undefined ? {} : { query_start: new Date(options.since).toISOString() }),
    ...(options.until === undefined ? {} : { query_end: new Date(options.until).toISOString() }),
  }
  const events: AuditEvent[] = []
  let is_cut = true
  while (is_cut && events.length < options.lines) {
    const limit = Math.min(PAGE_SIZE_MAX, options.lines - events.length)
    const last = events.at(-1)
    const page = await client.call(listGroupAuditEvents, {
      params: { group_id: group.group_id },
      query: { ...query, limit, ...(last === undefined ? {} : { before_event_id: last.event_id }) },
    })
    events.push(...page.events)
    is_cut = page.is_cut && page.events.length > 0
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

function changesText({ changes }: AuditEvent): string {
  return changes
    .map(({ member, before, after, is_secret }) =>
      is_secret ? `${member}: (secret)` : `${member}: ${before ?? '-'} → ${after ?? '-'}`,
    )
    .join(', ')
}
