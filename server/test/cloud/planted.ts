// Where a secret that a test has planted could be found: in the rows of the database, and in the files of the data folder.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Platform } from '../support/platform.ts'

/** Every row of every table, as text. */
export async function dump(platform: Platform): Promise<string> {
  const { rows } = await sql<{ name: string }>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`.execute(platform.ctx.db)
  const tables = await Promise.all(
    rows.map(async ({ name }) => {
      const content = await sql<{ text: string }>`select t::text as text from ${sql.raw(name)} t`.execute(
        platform.ctx.db,
      )
      return content.rows.map((row) => `${name} ${row.text}`).join('\n')
    }),
  )
  return tables.join('\n')
}

/** Bytes of a file that is read. The image of a lobby's disk is larger, and holds what the lobby's own server wrote. */
const FILE_BYTES_MAX = 256 * 1024 ** 2

export async function filesIn(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const texts = files.map(async (file) => ((await stat(file)).size <= FILE_BYTES_MAX ? readFile(file, 'latin1') : ''))
  return (await Promise.all(texts)).join('\n')
}
