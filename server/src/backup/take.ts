// Taking a backup. One read-only transaction sees the database as it is at one moment, while the platform goes on; the
// objects that it names cannot change, and are kept from being removed until they have been copied. Keys are read last:
// whatever the rows know of was signed by a key that is there by then.
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import type { ClientBase } from 'pg'
import { StartError } from '../config/start-error.ts'
import { lockObjects } from '../database/objects-lock.ts'
import { ObjectNotFound, type Objects } from '../objects/objects.ts'
import { syncFolder } from '../objects/sync-folder.ts'
import { type CopiedObjects, copyObjects } from './copy-objects.ts'
import { credentialFiles } from './credentials.ts'
import { createFileWriter, type FileWriter, filesOf, forEachAtOnce } from './files.ts'
import { dumpJobs } from './jobs.ts'
import { FORMAT, JOBS_FILE, MANIFEST_FILE, type Manifest, objectFile, tableFile } from './manifest.ts'
import { backupName, type Repository, requireUsable } from './repository.ts'
import { dump, readSequences, readTables } from './rows.ts'
import { type StoredFile, storedFiles } from './stored.ts'

/** Any number, but always this one: of the advisory lock of a backup into a repository. */
const TURN_KEY = '7365882113'

export type Platform = { client: ClientBase; objects: Objects; data_dir: string; muster_version: string }

/**
 * Writes the backup to `target`, which must not exist: it appears when it is complete and durable. Objects that the
 * platform itself lacks are named in the manifest. Throws a StartError for a target that is there.
 */
export async function takeBackup(platform: Platform, target: string): Promise<Manifest> {
  const path = resolve(target)
  if (existsSync(path)) throw new StartError(`${path} is there already; a backup is a new folder.`)
  await mkdir(dirname(path), { recursive: true })
  const draft = await mkdtemp(`${path}.partial-`)
  try {
    const files = createFileWriter(draft)
    const manifest = await writeAll(platform, files, async (counts) => {
      await forEachAtOnce(storedFiles(platform.client), (file) => writeObject(platform.objects, file, files, counts))
    })
    await writeManifest(files, manifest)
    await rename(draft, path)
    await syncFolder(dirname(path))
    return manifest
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

/** A backup of a repository, and what of its objects was new. `copied_keys`: the new objects. */
export type TakenBackup = {
  name: string
  manifest: Manifest
  copied_count: number
  copied_bytes: number
  copied_keys: ReadonlySet<string>
}

/**
 * Adds a backup to a repository: objects first, then its other files, the manifest last. Throws a StartError when another
 * backup into a repository is under way.
 */
export async function takeIntoRepository(
  platform: Platform,
  repository: Repository,
  work_folder: string,
): Promise<TakenBackup> {
  const { client, objects } = platform
  await requireTurn(client)
  await requireUsable(repository, await readPlatformId(client))
  const draft = await mkdtemp(join(work_folder, 'draft-'))
  const files = createFileWriter(draft)
  let copied: CopiedObjects | null = null
  const copied_keys = new Set<string>()
  const manifest = await writeAll(platform, files, async (counts) => {
    copied = await copyObjects(client, { from: objects, to: repository.objects }, ({ object_key, sha256 }, is_new) => {
      files.note(objectFile(object_key), sha256)
      if (is_new) copied_keys.add(object_key)
    })
    const { object_count, object_bytes, lacking_objects } = copied
    Object.assign(counts, { object_count, object_bytes, lacking_objects })
  })
  await writeManifest(files, manifest)
  const name = backupName(manifest.create_ts)
  const paths = (await filesOf(draft)).filter((path) => path !== MANIFEST_FILE)
  for (const path of [...paths, MANIFEST_FILE]) await repository.write(`${name}/${path}`, join(draft, path))
  const { copied_count, copied_bytes } = copied!
  return { name, manifest, copied_count, copied_bytes, copied_keys }
}

/** Until the connection ends. An object that one backup relies on must not be removed by the clean-up of another. */
async function requireTurn(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ is_free: boolean }>('select pg_try_advisory_lock($1) as is_free', [TURN_KEY])
  if (rows[0]?.is_free !== true)
    throw new StartError('Another backup into a repository is under way; wait for its end.')
}

async function writeAll(
  platform: Platform,
  files: FileWriter,
  writeObjects: (counts: Manifest) => Promise<void>,
): Promise<Manifest> {
  const { client, data_dir, muster_version } = platform
  await lockObjects(client)
  await client.query('begin isolation level repeatable read read only')
  const manifest = await beginManifest(client, muster_version)
  for (const table of await readTables(client)) {
    const row_count = await dump(client, table, (body) => files.write(tableFile(table.name), body))
    manifest.tables.push({ ...table, row_count })
  }
  manifest.job_count = await dumpJobs(client, (body) => files.write(JOBS_FILE, body))
  await writeObjects(manifest)
  manifest.lacking_objects.sort((a, b) => (a.object_key < b.object_key ? -1 : 1))
  manifest.sequences = await readSequences(client)
  await client.query('commit')
  for (const path of await credentialFiles(data_dir)) await files.write(path, createReadStream(join(data_dir, path)))
  return manifest
}

/** The last file of a backup. */
export async function writeManifest(files: FileWriter, manifest: Manifest): Promise<void> {
  await files.write(MANIFEST_FILE, Readable.from([Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)]))
  await files.finish()
}

/** The first query of the transaction: its snapshot is taken here. */
export async function beginManifest(client: ClientBase, muster_version: string): Promise<Manifest> {
  const { rows } = await client.query<{ moment: Date; postgres_major: number }>(
    "select clock_timestamp() as moment, current_setting('server_version_num')::int / 10000 as postgres_major",
  )
  const { moment, postgres_major } = rows[0]!
  const migrations = await client.query<Manifest['migrations'][number]>(
    'select name, checksum from migrations order by name collate "C"',
  )
  const platform_id = await readPlatformId(client)
  return {
    format: FORMAT,
    create_ts: moment.toISOString(),
    muster_version,
    ...(platform_id === null ? {} : { platform_id }),
    postgres_major,
    migrations: migrations.rows,
    tables: [],
    sequences: [],
    job_count: 0,
    object_count: 0,
    object_bytes: 0,
    lacking_objects: [],
  }
}

/** Null: the database is of an earlier version. */
async function readPlatformId(client: ClientBase): Promise<string | null> {
  const there = await client.query<{ is_there: boolean }>("select to_regclass('platform_ids') is not null as is_there")
  if (there.rows[0]?.is_there !== true) return null
  const { rows } = await client.query<{ platform_id: string }>('select platform_id from platform_ids limit 1')
  return rows[0]?.platform_id ?? null
}

async function writeObject(objects: Objects, file: StoredFile, files: FileWriter, manifest: Manifest): Promise<void> {
  const { object_key, content_length, sha256 } = file
  const body = await readIfThere(objects, object_key)
  if (body === null) {
    manifest.lacking_objects.push({ object_key, reason: file.is_marked ? 'damaged' : 'missing' })
    return
  }
  const expected = sha256 === null ? undefined : { sha256, content_length }
  const contents = await files.write(objectFile(object_key), body, expected)
  if (contents === null) {
    manifest.lacking_objects.push({ object_key, reason: 'damaged' })
    return
  }
  manifest.object_count++
  manifest.object_bytes += contents.content_length
}

async function readIfThere(objects: Objects, object_key: string): Promise<Readable | null> {
  try {
    return await objects.read(object_key)
  } catch (error) {
    if (error instanceof ObjectNotFound) return null
    throw error
  }
}
