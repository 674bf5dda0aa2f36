// A PostgreSQL for the rows of a backup while one game is taken from them. It runs in the data folder for as long as the import,
// so a backup of an earlier version is migrated there, and the database of the platform gets rows of its own version only.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { StartError } from '../../config/start-error.ts'
import { endEmbedded, startEmbedded } from '../../database/embedded/embedded.ts'
import { lockFile } from '../../database/embedded/lock.ts'
import type { Manifest } from '../manifest.ts'
import { knownMigrations } from '../migrations.ts'
import { restoreRows } from '../restore-rows.ts'

const FOLDER = 'imported-game'
/** Nothing of it outlives the import. */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }

/** `close` removes it. */
export type Scratch = { url: string; close: () => Promise<void> }

/** Throws a StartError while another import is under way, and where PostgreSQL cannot run in the data folder. */
export async function openScratch(
  data_dir: string,
  { folder, manifest, log }: { folder: string; manifest: Manifest; log: Logger },
): Promise<Scratch> {
  const migrations = knownMigrations(manifest.migrations)
  const place = join(data_dir, FOLDER)
  const lock = lockFile(join(data_dir, `${FOLDER}.lock`))
  if (lock === null) throw new StartError('Another game is being imported; wait for its end.')
  await using opened = new AsyncDisposableStack()
  opened.defer(() => lock.release())
  // An import that was killed may have left its processes and its folder.
  await endEmbedded(place, log)
  await rm(place, { recursive: true, force: true })
  opened.defer(() => rm(place, { recursive: true, force: true }))
  await mkdir(place, { mode: 0o711 })
  const embedded = await startEmbedded({ data_dir: place, log, settings: SETTINGS })
  opened.defer(() => embedded.stop())
  await restoreRows(embedded.url, { folder, manifest, migrations, log })
  const closing = opened.move()
  return { url: embedded.url, close: () => closing.disposeAsync() }
}
