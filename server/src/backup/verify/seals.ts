// Whether what lies sealed in the database opens with the keys of the data folder.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientBase } from 'pg'
import { SEALED_COLUMNS, type SealedColumn } from '../../tokens/sealed-columns.ts'
import { openSeals, type Seals } from '../../tokens/seals.ts'
import { type BackupCheck, counted } from '../report.ts'

const KEYS = 'keys'
const RING_FILE = `${KEYS}/seals.json`
/** Rows of sealed values read at once. */
const PAGE_ROWS_MAX = 1_000
/** Findings that one check reports. */
const FINDINGS_MAX = 1_000

/** Makes no keys: where there are none, whatever is sealed is lost. */
export async function checkSeals(client: ClientBase, data_dir: string): Promise<BackupCheck> {
  const findings: string[] = []
  const seals = await readSeals(data_dir)
  let count = 0
  for (const { table, id, column, purposeOf } of SEALED_COLUMNS) {
    for await (const row of sealedRows(client, { table, id, column })) {
      count++
      const wrong = typeof seals === 'string' ? seals : openingError(seals, purposeOf(row.id), row.seal)
      if (wrong !== null && findings.length < FINDINGS_MAX)
        findings.push(`${column} of ${table} ${row.id} does not open: ${wrong}`)
    }
  }
  // Without a secret there is nothing that a missing ring could have closed.
  if (count === 0 && typeof seals === 'string' && existsSync(join(data_dir, RING_FILE))) findings.push(seals)
  return { name: 'seals', looked_at: counted(count, 'sealed secret'), findings, remarks: [] }
}

/** A text: why they cannot be had. */
async function readSeals(data_dir: string): Promise<Seals | string> {
  if (!existsSync(join(data_dir, RING_FILE))) return `${RING_FILE} is missing`
  return openSeals(join(data_dir, KEYS)).catch((error: Error) => error.message)
}

function openingError(seals: Seals, purpose: string, seal: string): string | null {
  try {
    seals.open(purpose, seal)
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function* sealedRows(
  client: ClientBase,
  { table, id, column }: Pick<SealedColumn, 'table' | 'id' | 'column'>,
): AsyncGenerator<{ id: string; seal: string }> {
  // A platform of an earlier version may lack it.
  const there = await client.query(
    `select from information_schema.columns where table_schema = 'public' and table_name = $1 and column_name = $2`,
    [table, column],
  )
  if (there.rows.length === 0) return
  let after: string | null = null
  for (;;) {
    const { rows }: { rows: { id: string; seal: string }[] } = await client.query(
      `select ${id}::text as id, ${column} as seal from ${table}
        where ${column} is not null ${after === null ? '' : `and ${id} > $2`} order by ${id} limit $1`,
      after === null ? [PAGE_ROWS_MAX] : [PAGE_ROWS_MAX, after],
    )
    yield* rows
    if (rows.length < PAGE_ROWS_MAX) return
    after = rows.at(-1)!.id
  }
}
