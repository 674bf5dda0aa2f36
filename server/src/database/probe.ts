// One question to one server of DATABASE_URL: does it accept writes, and of which history is it?
import pg from 'pg'
import type { ServerUrl } from '../text/database-url.ts'
import { explainTls, readTarget } from './tls.ts'

/** To connect to a server, and for its response. */
const PROBE_MS_MAX = 3_000

const PROBE_SQL = `
  select current_setting('transaction_read_only')::boolean as is_read_only,
    (select system_identifier::text from pg_control_system()) as system_id,
    case when pg_is_in_recovery() then 0
      else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline,
    pg_postmaster_start_time()::text as start_ts,
    current_setting('synchronous_standby_names') <> ''
      and current_setting('synchronous_commit') in ('on', 'remote_write', 'remote_apply') as is_synchronous`

export type Probed = {
  server: ServerUrl
  is_read_only: boolean
  /** The same for a primary and its standbys. */
  system_id: string
  /** Grows by one whenever a standby becomes the primary. 0 of a standby. */
  timeline: number
  /** When this server was started. */
  start_ts: string
  /** Whether a commit waits until a standby has it. */
  is_synchronous: boolean
}

export type OpenProbe = Probed & {
  client: pg.Client
  /** Asks again. Throws when the server does not respond in time. */
  again: () => Promise<Probed>
  close: () => void
}

/** The connection stays open until `close`. Throws when the server cannot be asked. */
export async function openProbe(server: ServerUrl): Promise<OpenProbe> {
  const client = new pg.Client({
    ...readTarget(server.url),
    application_name: 'muster primary',
    connectionTimeoutMillis: PROBE_MS_MAX,
    keepAlive: true,
  })
  // An error between two queries is reported by the next query.
  client.on('error', () => undefined)
  const close = (): void => void client.connection.stream.destroy()
  const again = async (): Promise<Probed> => {
    const query = Object.assign({ text: PROBE_SQL }, { query_timeout: PROBE_MS_MAX })
    const { rows } = await client.query<Omit<Probed, 'server'>>(query)
    return { server, ...rows[0]! }
  }
  try {
    await client.connect()
    return { ...(await again()), client, again, close }
  } catch (error) {
    close()
    throw explainTls(error, server, 'DATABASE_URL')
  }
}
