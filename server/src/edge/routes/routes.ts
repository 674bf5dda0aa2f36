// Where lobbies listen. A route is what the runner wrote into lobby_runs. It is cached until the run ends (announced on the
// channel `lobby_runs`), and for ROUTE_AGE_MS_MAX at most. Concurrent requests for an unknown lobby share one look-up. A
// missing run is never cached, because it may start at any moment and its address may already have been returned. An ended
// run is cached, because it stays ended.
import type { Admission } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { Cached } from '../../database/cached.ts'
import type { RunPort } from '../../database/schema.ts'
import type { LobbyPaths, NodePort } from '../../links/platform/lobby-paths.ts'
import type { ProcessTls } from '../../process-tls/process-tls.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { ROUTE_AGE_MS_MAX, ROUTE_ENDED_MS, ROUTES_MAX } from '../limits.ts'
import type { Lookups } from './lookups.ts'

/**
 * `local_address`: where the edge's connection comes from. `path`: of the unix socket that leads there in place of `hostname`
 * and `port`. `tls`: for a process of the platform that is reached over TLS only.
 */
export type Address = {
  hostname: string
  port: number
  path?: string
  local_address?: string
  tls?: ProcessTls | undefined
  admission?: Admission
  player_network?: string
}
/** `elsewhere`: the port on another node; absent: it is on this machine. */
export type StreamAddress = RunPort & { path?: string; elsewhere?: NodePort }

/** `region`: null where any region matches, because the path route names none. */
export type RoutedPort = { lobby_id: string; port_name: string; region: string | null }

export type Routes = {
  /** Returns the address of an HTTP port, at once when it is cached. Null: no such lobby, port or region, or it has ended. */
  find: (wanted: RoutedPort, client_key: string) => Address | null | Promise<Address | null>
  /** The same for a port that is not HTTP. */
  stream: (wanted: RoutedPort, client_key: string) => StreamAddress | null | Promise<StreamAddress | null>
  /** Drops the cached route of a lobby whose address refuses connections. */
  forget: (lobby_id: string) => void
  close: () => void
}

/** `node_id`: of another node, where empty is the platform's own machine; null: this machine. */
type Run = {
  region: string
  ports: ReadonlyMap<string, RunPort>
  node_id: string | null
  has_ended: boolean
  has_started: boolean
}

/** `paths`: leads to lobbies on other nodes. */
export function createRoutes(ctx: Context, lookups: Lookups, paths: Pick<LobbyPaths, 'pathOf'>): Routes {
  const runs = new Cached<Run | null>({ entries_max: ROUTES_MAX, elapsed: ctx.elapsed, ageOf })
  const close = ctx.listener.on(CHANNELS.lobby_runs, (lobby_id) => {
    if (lobby_id === '') runs.expireAll()
    else runs.expire(lobby_id)
  })

  function find(
    wanted: RoutedPort,
    client_key: string,
    is_http: boolean,
  ): StreamAddress | null | Promise<StreamAddress | null> {
    const { lobby_id } = wanted
    const run = runs.get(lobby_id, () => {
      const is_known = runs.peek(lobby_id) !== undefined
      return lookups.run(is_known ? null : client_key, () => readRun(ctx, lobby_id))
    })
    if (run instanceof Promise) return run.then((found) => addressOf(found, wanted, is_http))
    return addressOf(run, wanted, is_http)
  }

  function addressOf(run: Run | null, wanted: RoutedPort, is_http: boolean): StreamAddress | null {
    const port = portOf(run, wanted, is_http)
    const node_id = run?.node_id ?? null
    if (port === null || node_id === null) return port
    const { hostname, port: number } = port
    const { lobby_id, port_name } = wanted
    const elsewhere = { node_id, hostname, port: number, lobby_id, port_name }
    return { ...port, elsewhere, ...(port.protocol !== 'udp' && { path: paths.pathOf(elsewhere) }) }
  }

  return {
    find: (wanted, client_key) => find(wanted, client_key, true),
    stream: (wanted, client_key) => find(wanted, client_key, false),
    forget: (lobby_id) => runs.forget(lobby_id),
    close,
  }
}

function ageOf(run: Run | null): number | null {
  if (run === null) return null
  if (run.has_ended) return ROUTE_ENDED_MS
  // Ports may still be written until the process has started.
  return run.has_started ? ROUTE_AGE_MS_MAX : null
}

const HTTP: ReadonlySet<RunPort['protocol']> = new Set(['http', 'https'])

function portOf(run: Run | null, wanted: RoutedPort, is_http: boolean): RunPort | null {
  if (run === null || run.has_ended) return null
  if (wanted.region !== null && wanted.region !== run.region) return null
  const port = run.ports.get(wanted.port_name)
  return port !== undefined && HTTP.has(port.protocol) === is_http ? port : null
}

async function readRun(ctx: Context, lobby_id: string): Promise<Run | null> {
  const row = await ctx.db
    .selectFrom('lobby_runs')
    .innerJoin('lobbies', 'lobbies.lobby_id', 'lobby_runs.lobby_id')
    .leftJoin('node_links', 'node_links.node_id', 'lobby_runs.runner_id')
    .select(['lobby_runs.ports', 'lobby_runs.start_ts', 'lobby_runs.exit_ts', 'lobbies.region', 'node_links.node_id'])
    .where('lobby_runs.lobby_id', '=', lobby_id)
    .executeTakeFirst()
  if (row === undefined) return null
  return {
    region: row.region,
    ports: new Map(Object.entries(row.ports)),
    node_id: elsewhere(ctx.config, row.node_id),
    has_ended: row.exit_ts !== null,
    has_started: row.start_ts !== null,
  }
}

/** `joined`: the joined node where the lobby runs; null: the platform's own machine. */
function elsewhere({ link, node_id }: Context['config'], joined: string | null): string | null {
  if (link === null) return joined
  return joined === node_id ? null : (joined ?? '')
}
