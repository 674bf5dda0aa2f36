// Reports the number of open connections to each lobby to the matchmaker, every second, in the database. An edge is registered
// before it accepts a connection, and removes itself after the last one has closed. So while no edge is registered, no
// connection is open. A report holds the changes, under a number that grows by one. When the previous report is missing, or
// it is unknown whether it was written, the edge registers again with all open connections.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ownPublicEdge } from '../../config/lobby-addresses.ts'
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import { inTransaction } from '../../database/transaction.ts'
import { CONNECTIONS_REPORT_EVERY_MS, CONNECTIONS_REPORT_START_MS_MAX, REPORTED_ZERO_KEPT } from '../limits.ts'
import type { ConnectionChange, LobbyConnections } from './lobby-connections.ts'
import type { Players } from './players.ts'

/** Between the name of a node and what distinguishes its edges that have a successor. */
const RETIRED_MARK = '~'

const REMOVE_SQL = `
  delete from edges where (node_id = $1 or starts_with(node_id, $2))
    and (process = $3::smallint or ($3::smallint = 0 and process >= $4::smallint))`

/** Two statements: the policy of edge_reports for a joined node reads the row of the edge. */
const REGISTER_SQL = `
  insert into edges (edge_id, node_id, process, public_host, http_port, https_port, regions, ping_port)
  values ($1, $2, $3, $4, $5, $6, $7, $8)`
const FIRST_REPORT_SQL = 'insert into edge_reports (edge_id, report_seq, change_seq) values ($1, 1, 1)'

const INSERT_SQL = `
  insert into lobby_connections (edge_id, lobby_id, connection_count, change_seq)
  select $1::uuid, lobby_id, connection_count, 1 from unnest($2::uuid[], $3::integer[]) as open (lobby_id, connection_count)`

const REPORT_SQL = `
  with report as (
    update edge_reports set report_seq = $2, change_seq = case when cardinality($3::uuid[]) > 0 then $2 else change_seq end
    where edge_id = $1 and report_seq = $2 - 1 returning edge_id
  ), changed as (
    insert into lobby_connections (edge_id, lobby_id, connection_count, change_seq)
    select edge_id, lobby_id, connection_count, $2
    from report, unnest($3::uuid[], $4::integer[]) as open (lobby_id, connection_count)
    on conflict (edge_id, lobby_id) do update set
      connection_count = excluded.connection_count, change_seq = excluded.change_seq
  ), forgotten as (
    delete from lobby_connections
    where $5 and edge_id = $1 and connection_count = 0 and change_seq < $2 - ${REPORTED_ZERO_KEPT}
      and not lobby_id = any($3)
  )
  select from report`

/** Null: the next report registers the edge. `seq`: the number of its last report. */
type Registration = { edge_id: string; seq: number } | null

/** Resolves when the edge is registered, and after CONNECTIONS_REPORT_START_MS_MAX at the latest. */
export async function reportConnections(
  ctx: Context,
  connections: LobbyConnections,
  options: { players: Pick<Players, 'register'>; is_successor: boolean },
): Promise<ConnectionReports> {
  const reports = new ConnectionReports(ctx, connections, options)
  await Promise.race([reports.reporting(), delay(CONNECTIONS_REPORT_START_MS_MAX, undefined, { ref: false })])
  return reports
}

export class ConnectionReports {
  readonly #ctx: Context
  readonly #connections: LobbyConnections
  readonly #players: Pick<Players, 'register'>
  /** The edge before this one still has connections, and its own registration. */
  readonly #is_successor: boolean
  readonly #watch: Watch
  /** The node's, or after `retire` a name that the successor does not remove. */
  #node_id: string
  #registration: Registration = null

  constructor(
    ctx: Context,
    connections: LobbyConnections,
    { players, is_successor }: { players: Pick<Players, 'register'>; is_successor: boolean },
  ) {
    this.#ctx = ctx
    this.#connections = connections
    this.#players = players
    this.#is_successor = is_successor
    this.#node_id = ctx.config.node_id
    this.#watch = watchEvery(ctx, CONNECTIONS_REPORT_EVERY_MS, {
      run: () => (this.#registration === null ? this.#register() : this.#report(this.#registration)),
      failure: 'report of open connections failed; retrying',
    })
  }

  reporting(): Promise<void> | null {
    return this.#watch.running()
  }

  get is_registered(): boolean {
    return this.#registration !== null
  }

  /** The next edge of the node registers beside this one. Returns the name of this edge from here on. */
  async retire(): Promise<string> {
    return this.#rename(`${this.#ctx.config.node_id}${RETIRED_MARK}${randomUUID()}`)
  }

  /** The next edge has not taken over. */
  async stay(): Promise<void> {
    await this.#rename(this.#ctx.config.node_id).catch((error: unknown) => {
      this.#ctx.log.warn({ err: error }, 'the edge could not take its name back; its next registration does')
      this.#registration = null
    })
  }

  async close(): Promise<void> {
    await this.#watch.close()
    if (this.#registration === null) return
    try {
      await this.#ctx.pool.query('delete from edges where edge_id = $1', [this.#registration.edge_id])
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the edge could not remove its registration; the next edge of this node does')
    }
  }

  async #rename(node_id: string): Promise<string> {
    const { number } = this.#ctx.config.process
    const values = [this.#node_id, node_id, number]
    await this.#ctx.pool.query('update edges set node_id = $2 where node_id = $1 and process = $3', values)
    this.#node_id = node_id
    return node_id
  }

  /**
   * Also removes the edge of this node and number that was killed: its connections ended with it. The first edge removes those whose
   * number the node has no more.
   */
  async #register(): Promise<void> {
    const edge_id = randomUUID()
    const node_id = this.#node_id
    const { number, count } = this.#ctx.config.process
    const retired = this.#is_successor ? null : `${node_id}${RETIRED_MARK}`
    const open = columnsOf(this.#connections.takeAll())
    await inTransaction(this.#ctx.pool, async (client) => {
      const { config } = this.#ctx
      const place = [config.runner_regions, config.edge_ping_port]
      await client.query(REMOVE_SQL, [node_id, retired, number, count])
      await client.query(REGISTER_SQL, [edge_id, node_id, number, ...publicAddress(config), ...place])
      await client.query(FIRST_REPORT_SQL, [edge_id])
      await client.query(INSERT_SQL, [edge_id, ...open])
      await this.#players.register(client, edge_id)
    })
    this.#registration = { edge_id, seq: 1 }
  }

  async #report({ edge_id, seq }: NonNullable<Registration>): Promise<void> {
    const next = seq + 1
    this.#registration = null
    const changes = columnsOf(this.#connections.takeChanges())
    const forgets = next % REPORTED_ZERO_KEPT === 0
    const { rowCount } = await this.#ctx.pool.query({
      name: 'edge-report',
      text: REPORT_SQL,
      values: [edge_id, next, ...changes, forgets],
    })
    if (rowCount === 1) this.#registration = { edge_id, seq: next }
    else await this.#register()
  }
}

/** Host, HTTP port and HTTPS port at which players reach this edge; null where it has none. */
function publicAddress(config: Context['config']): [string | null, number | null, number | null] {
  const edge = ownPublicEdge(config)
  return edge === null ? [null, null, null] : [edge.public_host, edge.http_port, edge.https_port]
}

function columnsOf(changes: readonly ConnectionChange[]): [string[], number[]] {
  return [changes.map(({ lobby_id }) => lobby_id), changes.map(({ connection_count }) => connection_count)]
}
