// Entries: each key has the value of its last acknowledged write, or of an unknown one; keys that are always written
// together have one value; and the row of usage adds up.
import type { ClientBase } from 'pg'
import type { Entry, History } from '../history.ts'
import type { Findings } from './findings.ts'
import { possibleValues } from './last-value.ts'

type EntryRow = { namespace_id: string; key: string; value: string; revision: number }
type UsageRow = {
  namespace_id: string
  entry_count: number
  byte_count: number
  revision: number
  found_count: number
  found_bytes: number
  found_revision: number
}

export async function checkEntries(db: ClientBase, history: History, findings: Findings): Promise<void> {
  const { rows } = await db.query<EntryRow>('select namespace_id, key, value, revision::float8 from kv_entries')
  const stored = new Map(
    rows.map(({ namespace_id, key, value }) => [`${namespace_id} ${key}`, JSON.parse(value) as string]),
  )
  const groups = Map.groupBy(history.of('kv_write'), ({ namespace_id, keys }) => `${namespace_id} ${keys.join(',')}`)
  for (const writes of groups.values()) checkGroup(writes, stored, findings)
  await checkUsage(db, findings)
}

function checkGroup(
  writes: readonly Entry<'kv_write'>[],
  stored: ReadonlyMap<string, string>,
  findings: Findings,
): void {
  const { namespace_id, keys } = writes[0]!
  const possible = possibleValues(writes, ({ value }) => value, null)
  const values = keys.map((key) => stored.get(`${namespace_id} ${key}`) ?? null)
  const value = values[0] ?? null
  findings.require(new Set(values).size === 1, `the keys ${keys} were written together, and have the values ${values}`)
  findings.require(possible.has(value), `the keys ${keys} have the value ${value}, of ${[...possible]}`)
}

async function checkUsage(db: ClientBase, findings: Findings): Promise<void> {
  const { rows } = await db.query<UsageRow>(
    `select u.namespace_id, u.entry_count::float8, u.byte_count::float8, u.revision::float8,
        count(e.key)::float8 as found_count, coalesce(max(e.revision), 0)::float8 as found_revision,
        coalesce(sum(octet_length(e.key) + octet_length(e.value)), 0)::float8 as found_bytes
      from kv_usage u left join kv_entries e on e.namespace_id = u.namespace_id
      group by u.namespace_id, u.entry_count, u.byte_count, u.revision`,
  )
  for (const row of rows) {
    findings.require(
      row.entry_count === row.found_count && row.byte_count === row.found_bytes && row.revision >= row.found_revision,
      `the usage of namespace ${row.namespace_id} does not add up: ${JSON.stringify(row)}`,
    )
  }
}
