// The row of a version stays when its draining has ended, so that an end is written like a beginning.
import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['draining_versions']>
type Version = { version_id: string; is_draining: boolean }
type DrainingVersionRow = Version & { namespace_id: string }

/** The stored value is the version's id. */
export const draining_versions: ProjectedTable<DrainingVersionRow, Version, Selected, string> = {
  name: 'draining_versions',
  key: ['namespace_id', 'version_id'],
  columns: {
    namespace_id: ['uuid', 'fixed'],
    version_id: ['uuid', 'fixed'],
    is_draining: ['boolean', 'updated'],
  },
  addAffected(_, change, ids) {
    if (change.kind === 'version_draining') ids.add(change.version_id)
  },
  addUnended() {},
  valueOf: (book, version_id) => ({ version_id, is_draining: book.draining.has(version_id) }),
  rowOf: (namespace_id, version) => ({ namespace_id, ...version }),
  loaded: { where: 'is_draining' },
  storedOf: (row) => row.version_id,
}
