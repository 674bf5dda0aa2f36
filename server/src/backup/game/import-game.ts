// Imports one game into a platform, running or stopped: from a game file, or from a backup of a whole platform. The game keeps its
// ids. Objects come first, under new keys, because the old ones may wait for their removal here. The rows come last, in one
// transaction: a broken import leaves no game, and no object.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientBase } from 'pg'
import type { Logger } from 'pino'
import { INSERT_SQL } from '../../audit/events.ts'
import { changedMembers } from '../../audit/members.ts'
import { StartError } from '../../config/start-error.ts'
import { MIGRATIONS } from '../../database/migrations/index.ts'
import { lockObjects } from '../../database/objects-lock.ts'
import { newId, newRayId } from '../../ids.ts'
import { newObjectKey } from '../../objects/objects.ts'
import { openSeals } from '../../tokens/seals.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { forEachAtOnce, readSums } from '../files.ts'
import { type LeftOut, objectFile } from '../manifest.ts'
import { type OpenedBackup, readObject } from '../repository.ts'
import { requireSound } from '../restore.ts'
import { connectAlone, disconnect } from '../source.ts'
import { storedFiles } from '../stored.ts'
import type { Platform } from '../take.ts'
import { importRows } from './import-rows.ts'
import { openScratch } from './scratch.ts'

const KEYS = 'keys'
/** Games that an error lists. */
const GAMES_SHOWN_MAX = 20
const WOKEN = [CHANNELS.namespaces, CHANNELS.schedules, CHANNELS.status_pages, CHANNELS.notices]

/**
 * `game`: name or id; null: the only one. `group_id`: who develops it here; null: the group of the backup, which is made where it is
 * missing. `name_id`: its short name here; null: the same.
 */
export type GameChoice = { game: string | null; group_id: string | null; name_id: string | null }

export type ImportedGame = {
  game_id: string
  name_id: string
  group: { group_id: string; display_name: string; is_new: boolean }
  create_ts: string
  row_count: number
  object_count: number
  object_bytes: number
  /** Stored files that the backup lacks. */
  lacking_count: number
  /** Null: a backup of a whole platform has everything. */
  left_out: LeftOut | null
}

type SourceGame = { game_id: string; name_id: string; developer_group_id: string }

/** Throws a StartError, and has changed nothing, when the backup is damaged, or the game cannot be imported as requested. */
export async function importGame(
  platform: Platform,
  backup: OpenedBackup,
  choice: GameChoice,
  { now, log }: { now: () => number; log: Logger },
): Promise<ImportedGame> {
  const { client, data_dir } = platform
  await requireSameVersion(client)
  // Objects of other games are not read. Those of this one are checked when they are copied.
  const manifest = await requireSound({ ...backup, reads: () => false }, now())
  await using opened = new AsyncDisposableStack()
  const scratch = await openScratch(data_dir, { folder: backup.folder, manifest, log })
  opened.defer(scratch.close)
  const source = await connectAlone(scratch.url)
  opened.defer(() => disconnect(source))

  const game = await findGame(source, choice.game, backup.label)
  const name_id = choice.name_id ?? game.name_id
  await requireFree(client, game, name_id)
  const group_id = choice.group_id ?? game.developer_group_id
  if (choice.group_id !== null) await requireGroup(client, group_id)
  const old_keys = join(backup.folder, KEYS)
  const old_seals = existsSync(join(old_keys, 'seals.json')) ? await openSeals(old_keys) : null
  const seals = await openSeals(join(data_dir, KEYS))

  await lockObjects(client)
  const copied = await copyGameObjects(platform, backup, { source, game_id: game.game_id })
  try {
    await client.query('begin')
    const group = await lockImportGroup(client, source, group_id)
    const now_ms = now()
    const row_count = await importRows({
      ...{ source, target: client, game_id: game.game_id, group_id, name_id },
      ...{ object_keys: copied.object_keys, old_seals, seals, now_ms },
    })
    await recordImport(client, { ...game, name_id }, now_ms)
    for (const channel of WOKEN) await client.query('select pg_notify($1, $2)', [channel, ''])
    await client.query('commit')
    const { object_count, object_bytes, lacking_count } = copied
    return {
      ...{ game_id: game.game_id, name_id, group, row_count, object_count, object_bytes, lacking_count },
      create_ts: manifest.create_ts,
      left_out: manifest.game?.left_out ?? null,
    }
  } catch (error) {
    await client.query('rollback')
    await copied.remove()
    throw error
  }
}

/** The rows are of the newest version when they are inserted. */
async function requireSameVersion(client: ClientBase): Promise<void> {
  const newest = MIGRATIONS.at(-1)!.name
  const { rowCount } = await client.query('select from migrations where name = $1', [newest])
  if (rowCount === 1) return
  throw new StartError('The platform has run another version of Muster. Start it once with this version, and repeat.')
}

async function findGame(source: ClientBase, wanted: string | null, label: string): Promise<SourceGame> {
  const { rows } = await source.query<SourceGame>(
    `select game_id::text, name_id, developer_group_id::text from games
      where $1::text is null or name_id = $1 or game_id::text = $1 order by name_id`,
    [wanted],
  )
  if (rows.length === 1) return rows[0]!
  const there = await source.query<{ name_id: string }>('select name_id from games order by name_id limit $1', [
    GAMES_SHOWN_MAX,
  ])
  const names = there.rows.map((row) => row.name_id).join(', ') || 'none'
  throw new StartError(
    wanted === null
      ? `${label} has several games. Name one with --game: ${names}.`
      : `${label} has no game ${wanted}. It has: ${names}.`,
  )
}

async function requireFree(client: ClientBase, { game_id }: SourceGame, name_id: string): Promise<void> {
  const { rows } = await client.query<{ game_id: string; name_id: string }>(
    'select game_id::text, name_id from games where game_id = $1 or name_id = $2',
    [game_id, name_id],
  )
  const same = rows.find((row) => row.game_id === game_id)
  if (same !== undefined) {
    throw new StartError(
      `This platform has the game already, as ${same.name_id}. Delete it first ("muster games delete"), or import it into another platform.`,
    )
  }
  if (rows.length > 0)
    throw new StartError(
      `Another game has the name ${name_id}. Choose another name with --name, for example ${name_id}-2.`,
    )
}

async function requireGroup(client: ClientBase, group_id: string): Promise<void> {
  const { rowCount } = await client.query('select from groups where group_id::text = $1', [group_id])
  if (rowCount !== 1)
    throw new StartError(
      `There is no group ${group_id}. "muster groups list" shows the ids; without --group, the group of the game is made.`,
    )
}

/** Locks the group as every change of its games does. */
async function lockImportGroup(
  client: ClientBase,
  source: ClientBase,
  group_id: string,
): Promise<ImportedGame['group']> {
  const found = await source.query<{ display_name: string; create_ts: Date }>(
    'select display_name, create_ts from groups where group_id = $1',
    [group_id],
  )
  const { display_name, create_ts } = found.rows[0] ?? { display_name: '', create_ts: null }
  const made =
    create_ts === null
      ? { rowCount: 0 }
      : await client.query(
          'insert into groups (group_id, display_name, create_ts) values ($1, $2, $3) on conflict do nothing',
          [group_id, display_name, create_ts],
        )
  const { rows } = await client.query<{ display_name: string }>(
    'select display_name from groups where group_id = $1 for no key update',
    [group_id],
  )
  if (rows[0] === undefined) throw new StartError(`The group ${group_id} was deleted meanwhile.`)
  return { group_id, display_name: rows[0].display_name, is_new: made.rowCount === 1 }
}

type CopiedGame = Pick<ImportedGame, 'object_count' | 'object_bytes' | 'lacking_count'> & {
  object_keys: ReadonlyMap<string, string>
  /** Removes the copies. */
  remove: () => Promise<void>
}

async function copyGameObjects(
  { objects }: Platform,
  backup: OpenedBackup,
  { source, game_id }: { source: ClientBase; game_id: string },
): Promise<CopiedGame> {
  const sums = await readSums(backup.folder)
  const object_keys = new Map<string, string>()
  const copied = { object_count: 0, object_bytes: 0, lacking_count: 0 }
  const remove = (): Promise<void> => forEachAtOnce(object_keys.values(), (key) => objects.delete(key))
  try {
    await forEachAtOnce(storedFiles(source, game_id), async ({ object_key, content_length }) => {
      const path = objectFile(object_key)
      const sha256 = sums.get(path)
      const new_key = newObjectKey()
      object_keys.set(object_key, new_key)
      if (sha256 === undefined) {
        copied.lacking_count++
        return
      }
      const stored = await objects.put(new_key, await readObject(backup, object_key), content_length)
      if (stored.sha256 !== sha256) throw new StartError(`${path} of the backup is damaged; nothing has been imported.`)
      copied.object_count++
      copied.object_bytes += content_length
    })
  } catch (error) {
    await remove()
    throw error
  }
  return { ...copied, object_keys, remove }
}

async function recordImport(
  client: ClientBase,
  { game_id, name_id }: Pick<SourceGame, 'game_id' | 'name_id'>,
  now_ms: number,
): Promise<void> {
  const event = {
    ...{ event_id: newId(now_ms), create_ts: new Date(now_ms), game_id, actor_kind: 'platform', client_ip: '-' },
    ...{ ray_id: newRayId(), operation: 'admin.restoreGame', outcome: 'done', dropped_count: 0 },
    changes: changedMembers({}, { name_id }),
  }
  await client.query(INSERT_SQL, [JSON.stringify([event])])
}
