// Where lobbies listen. A route is what the runner wrote into lobby_runs, remembered until the run ends (the runner says
// so on the channel lobby_runs) or for ROUTE_AGE_MS_MAX. A lobby that is not known is looked up, once for all who ask at
// the same time. That there is no such run is never remembered, for there may be one a moment later and its address may
// already have been answered; that a run has ended is, for it stays so.

import type { Context } from '../context.ts'
import type { RunPort } from '../database/schema.ts'
import { ROUTE_AGE_MS_MAX, ROUTE_ENDED_MS, ROUTES_MAX } from './limits.ts'
import type { Lookups } from './lookups.ts'

export type Address = { hostname: string; port: number }
export type StreamAddress = RunPort

/** `region` is null where any will do: the path route does not name one. */
export type LobbyPort = { lobby_id: string; port_name: string; region: string | null }

export type Routes = {
  /** At once when it is known. Null: no such lobby, port or region, or it has ended. `source` asks; see lookups.ts. */
  find: (wanted: LobbyPort, source: string) => Address | null | Promise<Address | null>
  /** The same for what is not HTTP. */
  stream: (wanted: LobbyPort, source: string) => StreamAddress | null | Promise<StreamAddress | null>
  /** Forgets the lobby, for the address that find gave does not answer. */
  forget: (lobby_id: string) => void
  close: () => void
}

type Run = { region: string; ports: ReadonlyMap<string, RunPort>; has_ended: boolean; has_started: boolean }
type Known = Run & { until_ms: number }

export function createRoutes(ctx: Context, lookups: Lookups): Routes {
  const known = new Map<string, Known>()
  const asked = new Map<string, Promise<Run | null>>()

  const close = ctx.listener.on('lobby_runs', (lobby_id) => {
    // An answer that is under way may be from before the change: it is given, but not remembered.
    if (lobby_id === '') {
      for (const run of known.values()) run.until_ms = 0
      asked.clear()
    } else {
      const run = known.get(lobby_id)
      if (run !== undefined) run.until_ms = 0
      asked.delete(lobby_id)
    }
  })

  function remember(lobby_id: string, run: Run): void {
    // Ports may still be written until the process has started.
    if (!run.has_ended && !run.has_started) return
    known.delete(lobby_id)
    if (known.size >= ROUTES_MAX) known.delete(known.keys().next().value!)
    known.set(lobby_id, { ...run, until_ms: ctx.elapsed() + (run.has_ended ? ROUTE_ENDED_MS : ROUTE_AGE_MS_MAX) })
  }

  function ask(lobby_id: string, source: string | null): Promise<Run | null> {
    const before = asked.get(lobby_id)
    if (before !== undefined) return before
    const asking: Promise<Run | null> = lookups
      .run(source, () => readRun(ctx, lobby_id))
      .then((run) => {
        if (asked.get(lobby_id) !== asking) return run
        if (run === null) known.delete(lobby_id)
        else remember(lobby_id, run)
        return run
      })
      .finally(() => {
        if (asked.get(lobby_id) === asking) asked.delete(lobby_id)
      })
    asked.set(lobby_id, asking)
    return asking
  }

  async function askAgain(lobby_id: string, source: string, old: Run | undefined): Promise<Run | null> {
    try {
      return await ask(lobby_id, old === undefined ? source : null)
    } catch (error) {
      // Without the database, games go on: what was true a moment ago is the best that is known.
      if (old === undefined) throw error
      return old
    }
  }

  function find(wanted: LobbyPort, source: string, is_http: boolean): RunPort | null | Promise<RunPort | null> {
    const run = known.get(wanted.lobby_id)
    if (run !== undefined && ctx.elapsed() < run.until_ms) return portOf(run, wanted, is_http)
    return askAgain(wanted.lobby_id, source, run).then((found) => portOf(found, wanted, is_http))
  }

  return {
    find: (wanted, source) => find(wanted, source, true),
    stream: (wanted, source) => find(wanted, source, false),
    forget: (lobby_id) => void known.delete(lobby_id),
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
