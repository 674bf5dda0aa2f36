// The platform's database, whether the platform runs or not. DATABASE_URL names an external one. The embedded PostgreSQL of a
// running platform is reached at the address in its data folder. That of a stopped platform is started for as long as it is
// needed, under the lock that keeps the platform from starting meanwhile.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { PrimaryClient } from '../database/connect.ts'
import { embeddedUrl, startEmbedded } from '../database/embedded/embedded.ts'
import { findPrimaryUrl } from '../database/primary.ts'
import { readTarget } from '../database/tls.ts'
import { requireFinishedRestore } from '../supervisor/folders.ts'
import { lockFolder } from '../supervisor/lock.ts'

/** Time for a connection to end in order. */
const END_MS_MAX = 2_000

export type Source = {
  /** A connection of its own: no statement of it is cut off, and `close` ends it. */
  client: pg.Client
  /** `DATABASE_URL`, or how the embedded PostgreSQL was found. */
  found: 'DATABASE_URL' | 'running' | 'stopped'
  close: () => Promise<void>
}

/** Throws a StartError when there is no platform in the data folder, or its database does not answer. */
export async function openSource(config: Config, options: { now_ms: number; log: Logger }): Promise<Source> {
  const { data_dir, database_url } = config
  if (!existsSync(join(data_dir, 'keys', 'ring.json'))) {
    throw new StartError(`There is no platform in ${data_dir}; MUSTER_DATA names its data folder.`)
  }
  requireFinishedRestore(data_dir)
  await using opened = new AsyncDisposableStack()
  let url = database_url
  let found: Source['found'] = 'DATABASE_URL'
  if (url === null) {
    const lock = lockUnlessTaken(data_dir, options.now_ms)
    found = lock === null ? 'running' : 'stopped'
    if (lock === null) url = await embeddedUrl(data_dir)
    else {
      opened.defer(() => lock.release())
      const embedded = await startEmbedded({ data_dir, log: options.log })
      opened.defer(() => embedded.stop())
      url = embedded.url
    }
  }
  const client = await connectAlone(url)
  opened.defer(() => disconnect(client))
  const closing = opened.move()
  return { client, found, close: () => closing.disposeAsync() }
}

/** Null: the platform runs. */
function lockUnlessTaken(data_dir: string, now_ms: number) {
  try {
    return lockFolder(data_dir, now_ms)
  } catch (error) {
    if (error instanceof StartError) return null
    throw error
  }
}

/** A client outside of any pool, in whose sessions a value has one text, whatever the server's settings are. */
export async function connectAlone(url: string): Promise<pg.Client> {
  const client = new PrimaryClient({
    ...readTarget(await findPrimaryUrl(url)),
    application_name: 'muster backup',
    keepAlive: true,
  })
  await client.connect()
  try {
    await client.query(`
      set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set client_encoding = 'UTF8';
      set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set timezone = 'UTC'; set extra_float_digits = 1;
      set bytea_output = 'hex'`)
  } catch (error) {
    await disconnect(client)
    throw error
  }
  return client
}

/** Also in the middle of a copy that failed, which would not let an orderly end through. */
export async function disconnect(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => void client.connection.stream.destroy(), END_MS_MAX)
  await client.end().finally(() => clearTimeout(cut))
}
