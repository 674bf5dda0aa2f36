// A game file: all of one game in a tar archive, as of one moment. It has the form of a backup (manifest.ts), so what checks and
// restores a backup reads it too. Its rows are collected in a folder first, because an entry of an archive begins with its length.
// Objects are streamed. Secrets are not in it: only the keys of the platform open them.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ClientBase } from 'pg'
import { type Pack, pack } from 'tar-stream'
import { StartError } from '../../config/start-error.ts'
import { lockObjects } from '../../database/objects-lock.ts'
import { type Recorded, soundBytes } from '../../objects/damage.ts'
import type { Objects } from '../../objects/objects.ts'
import { createFileWriter, filesOf } from '../files.ts'
import {
  type ExportedGame,
  JOBS_FILE,
  MANIFEST_FILE,
  type Manifest,
  objectFile,
  SUMS_FILE,
  tableFile,
} from '../manifest.ts'
import { dump, readTables, type Table } from '../rows.ts'
import { storedFiles } from '../stored.ts'
import { beginManifest, type Platform, writeManifest } from '../take.ts'
import { GAME_TABLES, type GameTable, parentOf, rowsOfGame } from './game-tables.ts'

/** Rows of these are left out: only their own platform opens their secrets. */
const SEALED_TABLES: readonly GameTable[] = ['game_secrets', 'notice_targets']
/** Columns that are empty in the file, by table: secrets, and people of the platform. */
const EMPTY_COLUMNS: Partial<Record<GameTable, string>> = { versions: 'secrets', namespace_versions: 'caller_user_id' }
const ENTRY_MODE = 0o600

/**
 * Streams the archive. `folder`: an empty one for the rows. Throws a StartError for an unknown game. The stream fails where an
 * object is found damaged on the way.
 */
export async function packGame(platform: Platform, game_id: string, folder: string): Promise<Readable> {
  const { client, objects } = platform
  await lockObjects(client)
  await client.query('begin isolation level repeatable read read only')
  const manifest = await beginManifest(client, platform.muster_version)
  manifest.game = await describeGame(client, game_id)
  const files = createFileWriter(folder)
  for (const table of await readTables(client)) {
    const rows = rowsTextOf(table, game_id)
    if (rows === null) continue
    const row_count = await dump(client, rows, (body) => files.write(tableFile(table.name), body))
    manifest.tables.push({ ...table, row_count })
  }
  await files.write(JOBS_FILE, Readable.from([]))
  const sound = await findObjects(client, objects, game_id, manifest)
  await client.query('commit')
  for (const { object_key, sha256 } of sound) files.note(objectFile(object_key), sha256)
  await writeManifest(files, manifest)
  return archiveOf(folder, sound, { objects, mtime: new Date(manifest.create_ts) })
}

/** Null: no row of the table belongs to the game. */
function rowsTextOf({ name, columns }: Table, game_id: string): string | null {
  const parent = GAME_TABLES.find((table) => table === parentOf(name))
  if (parent === undefined || SEALED_TABLES.includes(parent)) return null
  const selected = columns.map((column) => (column === EMPTY_COLUMNS[parent] ? `null as "${column}"` : `"${column}"`))
  return `select ${selected.join(', ')} from "${name}" where ${rowsOfGame(game_id)[parent]}`
}

async function describeGame(client: ClientBase, game_id: string): Promise<ExportedGame> {
  const { rows } = await client.query<{ name_id: string }>('select name_id from games where game_id = $1', [game_id])
  if (rows[0] === undefined) throw new StartError(`There is no game ${game_id}.`)
  const namesOf = async (text: string): Promise<string[]> => {
    const found = await client.query<{ name: string }>(text, [game_id])
    return found.rows.map(({ name }) => name)
  }
  const countOf = async (table: string): Promise<number> => {
    const found = await client.query<{ count: number }>(
      `select count(*)::integer as count from ${table} where game_id = $1`,
      [game_id],
    )
    return found.rows[0]!.count
  }
  const of_game = 'namespace_id in (select namespace_id from namespaces where game_id = $1)'
  return {
    game_id,
    name_id: rows[0].name_id,
    left_out: {
      secrets: await namesOf('select distinct name from game_secrets where game_id = $1 order by 1'),
      versions: await namesOf(
        'select display_name as name from versions where game_id = $1 and secrets is not null order by create_ts',
      ),
      notice_targets: await countOf('notice_targets'),
      domains: await namesOf(`select domain as name from domains where ${of_game} order by 1`),
      tokens: await countOf('tokens'),
    },
  }
}

type SoundObject = Recorded & { sha256: string }

/** Notes in the manifest which objects are there, and which are not. */
async function findObjects(
  client: ClientBase,
  objects: Objects,
  game_id: string,
  manifest: Manifest,
): Promise<SoundObject[]> {
  const sound: SoundObject[] = []
  for await (const { object_key, content_length, is_marked, ...file } of storedFiles(client, game_id)) {
    const there = is_marked ? null : await objects.stat(object_key)
    const sha256 = file.sha256 ?? there?.sha256
    if (there === null || sha256 === undefined || there.content_length !== content_length) {
      manifest.lacking_objects.push({ object_key, reason: is_marked ? 'damaged' : 'missing' })
      continue
    }
    sound.push({ object_key, content_length, sha256 })
    manifest.object_count++
    manifest.object_bytes += content_length
  }
  return sound
}

function archiveOf(
  folder: string,
  sound: readonly SoundObject[],
  { objects, mtime }: { objects: Objects; mtime: Date },
): Readable {
  const archive = pack()
  const fill = async (): Promise<void> => {
    const names = (await filesOf(folder)).filter((name) => name !== MANIFEST_FILE && name !== SUMS_FILE)
    for (const name of [MANIFEST_FILE, SUMS_FILE, ...names.sort()]) {
      const path = join(folder, name)
      await addEntry(archive, { name, size: (await stat(path)).size, mtime }, createReadStream(path))
    }
    for (const file of sound) {
      const { object_key, content_length: size } = file
      await addEntry(archive, { name: objectFile(object_key), size, mtime }, Readable.from(soundBytes(objects, file)))
    }
    archive.finalize()
  }
  fill().catch((error: unknown) => archive.destroy(error as Error))
  return Readable.from(archive)
}

async function addEntry(
  archive: Pack,
  header: { name: string; size: number; mtime: Date },
  body: Readable,
): Promise<void> {
  const entry = archive.entry({ ...header, mode: ENTRY_MODE, type: 'file' })
  await pipeline(body, entry)
}
