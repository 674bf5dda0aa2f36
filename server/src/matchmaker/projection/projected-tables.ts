// The tables that the journal is projected to, by name.
import { captcha_clients } from './tables/captcha-clients.ts'
import type { ProjectedTable } from './tables/descriptor.ts'
import { draining_versions } from './tables/draining-versions.ts'
import { lobbies } from './tables/lobbies.ts'
import { parties } from './tables/parties.ts'
import { players } from './tables/players.ts'
import { tickets } from './tables/tickets.ts'

export const TABLES = { lobbies, players, captcha_clients, draining_versions, parties, tickets }
export type TableName = keyof typeof TABLES
export const TABLE_NAMES = Object.keys(TABLES) as TableName[]

export type RowOf<N extends TableName> = ReturnType<(typeof TABLES)[N]['rowOf']>
export type StoredOf<N extends TableName> = ReturnType<(typeof TABLES)[N]['storedOf']>

type AnyTable = ProjectedTable<Record<string, unknown>, unknown, { namespace_id: string }, unknown>
/** For code that treats all tables alike. */
export const tableOf = (name: TableName): AnyTable => TABLES[name] as unknown as AnyTable

/** One value for each table. */
export function forEachTable<T>(toValue: (name: TableName) => T): Record<TableName, T> {
  return Object.fromEntries(TABLE_NAMES.map((name) => [name, toValue(name)])) as Record<TableName, T>
}
