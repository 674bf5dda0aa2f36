// Config -> Context. The only file that chooses technologies. It is closed in the reverse order of its opening.
import type { Kysely } from 'kysely'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Listener } from './database/listen.ts'
import type { Schema } from './database/schema.ts'
import type { Objects } from './objects/objects.ts'
import type { Keys } from './tokens/keys.ts'

export type Database = Kysely<Schema>

export type Context = {
  config: Config
  db: Database
  /** The pool under `db`, for prepared statements on the hot path. */
  pool: Pool
  /** Wake-ups by NOTIFY: never the only way to learn of a change. */
  listener: Listener
  keys: Keys
  objects: Objects
  /** Milliseconds since the epoch. Tests move it. */
  now: () => number
  log: Logger
  close: () => Promise<void>
}
