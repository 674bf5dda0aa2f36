// Whether a platform is whole, running or stopped: its seats, its stored files, what its versions refer to, its sealed
// secrets and its keys. It reads one snapshot of the database, which blocks nothing.
import { createHash } from 'node:crypto'
import type { ClientBase } from 'pg'
import { StartError } from '../../config/start-error.ts'
import { lockObjects } from '../../database/objects-lock.ts'
import { ObjectNotFound } from '../../objects/objects.ts'
import { checkCredentials } from '../credentials.ts'
import { forEachAtOnce } from '../files.ts'
import { knownMigrations } from '../migrations.ts'
import { type BackupCheck, counted, inMegabytes } from '../report.ts'
import { readTables } from '../rows.ts'
import { type StoredFile, storedFiles } from '../stored.ts'
import type { Platform } from '../take.ts'
import { checkSeals } from './seals.ts'
import { checkSeats } from './seats.ts'

/** Findings that one check reports. */
const FINDINGS_MAX = 1_000

/** Reads every stored byte. */
export async function checkPlatform(platform: Platform, now_ms: number): Promise<BackupCheck[]> {
  const { client, data_dir } = platform
  await lockObjects(client)
  await client.query('begin isolation level repeatable read read only')
  const checks = [
    await checkTables(client),
    await checkSeats(client),
    await checkStored(platform),
    await checkVersions(client),
    await checkSeals(client, data_dir),
  ]
  await client.query('commit')
  return [...checks, await checkCredentials(data_dir, now_ms)]
}

async function checkTables(client: ClientBase): Promise<BackupCheck> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'select name, checksum from migrations order by name collate "C"',
  )
  const findings: string[] = []
  try {
    knownMigrations(rows)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    findings.push(error.message)
  }
  const tables = await readTables(client)
  const looked_at = `${counted(tables.length, 'table')}, ${counted(rows.length, 'migration')}`
  return { name: 'tables', looked_at, findings, remarks: [] }
}

async function checkStored({ client, objects }: Platform): Promise<BackupCheck> {
  const findings: string[] = []
  const remarks: string[] = []
  let count = 0
  let bytes = 0
  await forEachAtOnce(storedFiles(client), async (file) => {
    count++
    bytes += file.content_length
    const body = await objects.read(file.object_key).catch((error: unknown) => {
      if (error instanceof ObjectNotFound) return null
      throw error
    })
    const lack = file.is_marked ? 'is damaged, and was set aside' : 'is missing'
    const wrong = body === null ? lack : await differenceOf(body, file)
    if (wrong === null || findings.length >= FINDINGS_MAX) return
    findings.push(`object ${file.object_key} ${wrong}`)
    remarks.push(`object ${file.object_key} is ${file.origin}`)
  })
  findings.sort()
  remarks.sort()
  return { name: 'objects', looked_at: `${counted(count, 'object')}, ${inMegabytes(bytes)}`, findings, remarks }
}

/** Null: the bytes are those that the upload was completed with. */
async function differenceOf(body: AsyncIterable<Uint8Array>, file: StoredFile): Promise<string | null> {
  const hash = createHash('sha256')
  let content_length = 0
  for await (const chunk of body) {
    hash.update(chunk)
    content_length += chunk.length
  }
  if (file.sha256 === null) return 'belongs to a complete upload, and its hash is not recorded'
  if (content_length !== file.content_length)
    return `has ${content_length} bytes, and its upload had ${file.content_length}`
  return hash.digest('hex') === file.sha256 ? null : 'has other bytes than its upload had'
}

/** Builds and sites that a version names are there, in its game, and complete. */
async function checkVersions(client: ClientBase): Promise<BackupCheck> {
  const { rows } = await client.query<{ finding: string }>(
    `with named as (
        select version_id, game_id, 'build' as kind, jsonb_path_query(config, '$.matchmaker.**.image_id') #>> '{}' as id
          from versions
        union
        select version_id, game_id, 'site', config #>> '{cdn,site_id}' from versions
      ), there as (
        select b.build_id as id, b.game_id, 'build' as kind, u.complete_ts
          from builds b join uploads u on u.upload_id = b.upload_id
        union all
        select s.site_id, s.game_id, 'site', u.complete_ts from sites s join uploads u on u.upload_id = s.upload_id
      )
      select format('version %s names %s %s, which is not %s', named.version_id, named.kind, named.id,
          case when there.id is null then 'there' else 'complete' end) as finding
        from named left join there on there.id::text = named.id and there.kind = named.kind
          and there.game_id = named.game_id
        where named.id is not null and there.complete_ts is null
        order by named.version_id limit ${FINDINGS_MAX}`,
  )
  const { rows: counts } = await client.query<{ count: string }>('select count(*) from versions')
  const findings = rows.map(({ finding }) => finding)
  return { name: 'versions', looked_at: counted(Number(counts[0]!.count), 'version'), findings, remarks: [] }
}
