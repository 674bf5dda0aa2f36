// Steps of the tests of backups: platforms to back up and to restore into, and the comparison of all their rows.
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { findLobby } from '@musterhost/contract'
import pg from 'pg'
import { contentsOf } from '../../src/backup/files.ts'
import type { Manifest } from '../../src/backup/manifest.ts'
import { StartError } from '../../src/config/start-error.ts'
import { openKeys } from '../../src/tokens/keys.ts'
import { administer } from '../run/database-server.ts'
import { createDatabase } from '../support/database.ts'
import type { Platform, TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** Where the commands look for a platform. */
export type Place = { MUSTER_DATA: string; DATABASE_URL: string }

export async function temporary(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-backup-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A data folder that is not there yet, and a database that has been migrated and nothing else. */
export async function emptyPlatform(t: TestContext): Promise<Place> {
  return { MUSTER_DATA: join(await temporary(t), 'data'), DATABASE_URL: await createDatabase(t) }
}

/** A data folder of a platform that has nothing but its keys. */
export async function dataFolder(t: TestContext): Promise<string> {
  const folder = await temporary(t)
  await openKeys(join(folder, 'keys'))
  return folder
}

/** A database without a single table. */
export async function bareDatabase(t: TestContext): Promise<string> {
  const url = await createDatabase(t)
  await administer(url, 'drop schema public cascade; drop schema graphile_worker cascade; create schema public')
  return url
}

/** That many reserved players in one lobby. Resolves to it, when the tables say so too. */
export async function seatPlayers(platform: Platform, game: TestGame, count: number): Promise<string> {
  platform.playServers()
  const wish = { body: { game_modes: ['default'] } }
  const seats = await Promise.all(Array.from({ length: count }, () => game.player.call(findLobby, wish)))
  const { lobby_id } = seats[0]!.lobby
  await until('the tables to show the seats', async () => {
    const row = await platform.ctx.db
      .selectFrom('lobbies')
      .select(['player_count', 'ready_ts'])
      .where('lobby_id', '=', lobby_id)
      .executeTakeFirst()
    return row?.player_count === count && row.ready_ts !== null
  })
  return lobby_id
}

export async function openClient(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  let isEnded = false
  client.once('end', () => {
    isEnded = true
  })
  t.after(() => (isEnded ? undefined : client.end()))
  return client
}

export async function query(t: TestContext, url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = await openClient(t, url)
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

/** Every row of every table, as text, by table. The leases are the running matchmaker's, and migrations run when they run. */
export async function rowsOf(t: TestContext, url: string): Promise<Record<string, string[]>> {
  const tables = await query(
    t,
    url,
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
      and relname not in ('migrations', 'additive_migrations', 'node_versions', 'matchmakers', 'shard_leases', 'port_claims', 'shard_room', 'place_room',
        'node_use', 'backups', 'verifications', 'restores', 'job_runs')`,
  )
  const rows: Record<string, string[]> = {}
  for (const { name } of tables) {
    const found = await query(t, url, `select t::text as text from "${name}" t order by 1`)
    rows[String(name)] = found.map(({ text }) => String(text))
  }
  return rows
}

/** Returns a function that undoes it. `place` is from 0, the first byte, to 1. */
export async function changeByte(path: string, place: number, mask: number): Promise<() => Promise<void>> {
  const file = await open(path, 'r+')
  try {
    const at = Math.floor((await file.stat()).size * place)
    const byte = (await file.read(Buffer.alloc(1), 0, 1, at)).buffer
    const turn = (): Promise<unknown> => writeAt(path, Buffer.from([(byte[0] ?? 0) ^ mask]), at)
    await turn()
    return () => writeAt(path, byte, at)
  } finally {
    await file.close()
  }
}

async function writeAt(path: string, bytes: Buffer, at: number): Promise<void> {
  const file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, at)
  await file.close()
}

/** As somebody would who writes backups, and not by accident: the sums fit. */
export async function replaceManifest(folder: string, alter: (manifest: Manifest) => object): Promise<void> {
  const path = join(folder, 'manifest.json')
  await writeFile(path, JSON.stringify(alter(JSON.parse(await readFile(path, 'utf8')) as Manifest)))
  const { sha256 } = await contentsOf(path)
  const sums = await readFile(join(folder, 'SHA256SUMS'), 'utf8')
  await writeFile(join(folder, 'SHA256SUMS'), sums.replace(/^.* {2}manifest\.json$/m, `${sha256}  manifest.json`))
}

export function isStartError(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof StartError && message.test(error.message)
}
