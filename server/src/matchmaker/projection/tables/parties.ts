import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { PartyRecord } from '../../../journal/changes.ts'
import type { Party } from '../../book/parties.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['parties']>
type PartyRow = ReturnType<typeof rowOf>

export const parties: ProjectedTable<PartyRow, Party, Selected, PartyRecord> = {
  name: 'parties',
  key: ['party_id'],
  columns: {
    party_id: ['uuid', 'fixed'],
    namespace_id: ['uuid', 'fixed'],
    code: ['text', 'updated'],
    leader_identity_id: ['uuid', 'updated'],
    members: ['jsonb', 'updated'],
    revision: ['integer', 'updated'],
    create_ts: ['time', 'fixed'],
    expire_ts: ['time', 'updated'],
    end_ts: ['time', 'updated'],
  },
  addAffected(_, change, ids) {
    if (change.kind === 'party_put') ids.add(change.party.party_id)
    else if (change.kind === 'party_ended') ids.add(change.party_id)
  },
  addUnended(book, ids) {
    for (const { party_id, end_ms } of book.parties.all()) if (end_ms === null) ids.add(party_id)
  },
  valueOf: (book, party_id) => book.parties.get(party_id),
  rowOf,
  loaded: { where: 'end_ts is null', order_by: 'create_ts, party_id' },
  storedOf: (row) => ({
    party_id: row.party_id,
    code: row.code,
    leader_identity_id: row.leader_identity_id,
    members: row.members,
    create_ms: row.create_ts.getTime(),
    expire_ms: row.expire_ts.getTime(),
    revision: row.revision,
  }),
}

function rowOf(namespace_id: string, party: Party) {
  return {
    party_id: party.party_id,
    namespace_id,
    code: party.code,
    leader_identity_id: party.leader_identity_id,
    members: party.members,
    revision: party.revision,
    create_ts: party.create_ms,
    expire_ts: party.expire_ms,
    end_ts: party.end_ms,
  }
}
