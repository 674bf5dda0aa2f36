import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { TicketRecord } from '../../../journal/changes.ts'
import type { Ticket } from '../../book/matching/ticket.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['tickets']>
type TicketRow = ReturnType<typeof rowOf>

/** A ticket that has ended leaves its row as it was, with its end: see addAffected(). */
export const tickets: ProjectedTable<TicketRow, Ticket, Selected, TicketRecord> = {
  name: 'tickets',
  key: ['player_id'],
  columns: {
    player_id: ['uuid', 'fixed'],
    namespace_id: ['uuid', 'fixed'],
    record: ['jsonb', 'fixed'],
    create_ts: ['time', 'fixed'],
    end_ts: ['time', 'updated'],
    end_reason: ['text', 'updated'],
  },
  addAffected(_, change, ids) {
    if (change.kind === 'ticket_put') ids.add(change.ticket.player_id)
    else if (change.kind === 'ticket_ended') ids.add(change.player_id)
  },
  // A ticket has no deadline that an outage moves.
  addUnended() {},
  valueOf: (book, player_id) => book.matching.get(player_id) ?? book.matching.ended(player_id),
  rowOf,
  loaded: { where: 'end_ts is null', order_by: 'create_ts, player_id' },
  storedOf: (row) => row.record as TicketRecord,
}

function rowOf(namespace_id: string, ticket: Ticket) {
  const { calls, terms, candidate, due_ms, is_provisional, is_outdated, end, ...record } = ticket
  return {
    player_id: ticket.player_id,
    namespace_id,
    record,
    create_ts: ticket.create_ms,
    end_ts: end?.ms ?? null,
    end_reason: end?.reason ?? null,
  }
}
