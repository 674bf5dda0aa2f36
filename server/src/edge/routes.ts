// Where lobbies listen. A route is what the runner wrote into lobby_runs. It is cached until the run ends (announced on the
// channel `lobby_runs`), and for ROUTE_AGE_MS_MAX at most. Concurrent requests for an unknown lobby share one look-up. A
// missing run is never cached, because it may start at any moment and its address may already have been returned. An ended
// run is cached, because it stays ended.
import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import { ROUTE_AGE_MS_MAX, ROUTE_ENDED_MS, ROUTES_MAX } from './limits.ts'
import type { Lookups } from './lookups.ts'

export type Address = { hostname: string; port: number }
export type StreamAddress = RunPort

/** `region`: null where any region matches, because the path route names none. */
export type LobbyPort = { lobby_id: string; port_name: string; region: string | null }

export type Routes = {
  /** Returns the address of an HTTP port, at once when it is cached. Null: no such lobby, port or region, or it has ended. */
  find: (wanted: LobbyPort, client_key: string) => Address | null | Promise<Address | null>
  /** The same for a port that is not HTTP. */
  stream: (wanted: LobbyPort, client_key: string) => StreamAddress | null | Promise<StreamAddress | null>
  /** Drops the cached route of a lobby whose address refuses connections. */
  forget: (lobby_id: string) => void
  close: () => void
}

type Run = { region: string; ports: ReadonlyMap<string, RunPort>; has_ended: boolean; has_started: boolean }
type CachedRun = Run & { until_ms: number }

export function createRoutes(ctx: Context, lookups: Lookups): Routes {
  const cache = new Map<string, CachedRun>()
  const under_way = new Map<string, Promise<Run | null>>()

  const close = ctx.listener.on('lobby_runs', (lobby_id) => {
    // A look-up under way may have read the state before the change: its result is used, but not cached.
    if (lobby_id === '') {
      for (const run of cache.values()) run.until_ms = 0
      under_way.clear()
    } else {
      const run = cache.get(lobby_id)
      if (run !== undefined) run.until_ms = 0
      under_way.delete(lobby_id)
    }
  })

  function cacheRun(lobby_id: string, run: Run): void {
    // Ports may still be written until the process has started.
    if (!run.has_ended && !run.has_started) return
    cache.delete(lobby_id)
    if (cache.size >= ROUTES_MAX) cache.delete(cache.keys().next().value!)
    cache.set(lobby_id, { ...run, until_ms: ctx.elapsed() + (run.has_ended ? ROUTE_ENDED_MS : ROUTE_AGE_MS_MAX) })
  }

  function lookUp(lobby_id: string, client_key: string | null): Promise<Run | null> {
    const running = under_way.get(lobby_id)
    if (running !== undefined) return running
    const lookup: Promise<Run | null> = lookups
      .run(client_key, () => readRun(ctx, lobby_id))
      .then((run) => {
        if (under_way.get(lobby_id) !== lookup) return run
        if (run === null) cache.delete(lobby_id)
        else cacheRun(lobby_id, run)
        return run
      })
      .finally(() => {
        if (under_way.get(lobby_id) === lookup) under_way.delete(lobby_id)
      })
    under_way.set(lobby_id, lookup)
    return lookup
  }

  async function lookUpOrKeep(lobby_id: string, client_key: string, old: Run | undefined): Promise<Run | null> {
    try {
      return await lookUp(lobby_id, old === undefined ? client_key : null)
    } catch (error) {
      // While the database is down, the last known route is used.
      if (old === undefined) throw error
      return old
    }
  }

  function find(wanted: LobbyPort, client_key: string, is_http: boolean): RunPort | null | Promise<RunPort | null> {
    const run = cache.get(wanted.lobby_id)
    if (run !== undefined && ctx.elapsed() < run.until_ms) return portOf(run, wanted, is_http)
    return lookUpOrKeep(wanted.lobby_id, client_key, run).then((found) => portOf(found, wanted, is_http))
  }

  return {
    find: (wanted, client_key) => find(wanted, client_key, true),
    stream: (wanted, client_key) => find(wanted, client_key, false),
    forget: (lobby_id) => void cache.delete(lobby_id),
    close,
  }
}

const HTTP: ReadonlySet<RunPort['protocol']> = new Set(['http', 'https'])

function portOf(run: Run | null, wanted: LobbyPort, is_http: boolean): RunPort | null {
  if (run === null || run.has_ended) return null
  if (wanted.region !== null && wanted.region !== run.region) return null
  const port = run.ports.get(wanted.port_name)
  return port !== undefined && HTTP.has(port.protocol) === is_http ? port : null
}

async function readRun(ctx: Context, lobby_id: string): Promise<Run | null> {
  const row = await ctx.db
    .selectFrom('lobby_runs')
    .innerJoin('lobbies', 'lobbies.lobby_id', 'lobby_runs.lobby_id')
    .select(['lobby_runs.ports', 'lobby_runs.start_ts', 'lobby_runs.exit_ts', 'lobbies.region'])
    .where('lobby_runs.lobby_id', '=', lobby_id)
    .executeTakeFirst()
  if (row === undefined) return null
  return {
    region: row.region,
    ports: new Map(Object.entries(row.ports)),
    has_ended: row.exit_ts !== null,
    has_started: row.start_ts !== null,
  }
}
