// The tables lobbies and players: what the journal says, for api, runner, edge and people to read. Written in batches
// about once a second, and at once when a lobby starts or stops, together with the seq that they reflect. A row is
// always an image of committed state, so writing it twice, or writing an older one that the guard lets through, changes
// nothing.
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import type { Lobby, Player } from './changes.ts'

export const PROJECT_EVERY_MS = 1_000

/** Rows of the two tables, by id. */
export type Images = { lobbies: Map<string, LobbyRow>; players: Map<string, PlayerRow> }

type LobbyRow = ReturnType<typeof lobbyRow>
type PlayerRow = ReturnType<typeof playerRow>

export type Projection = {
  /** Notes what a commit changed. `is_urgent`: a lobby started or stopped, the runner waits for it. */
  note: (shard: number, seq: number, images: Images, is_urgent: boolean) => void
  /** Drops what is noted for a shard: it has been read anew from the journal. */
  reset: (shard: number) => void
  /** Writes everything that is noted. */
  flush: () => Promise<void>
  close: () => Promise<void>
}

type Dirty = { seq: number; images: Images; is_urgent: boolean }

export function emptyImages(): Images {
  return { lobbies: new Map(), players: new Map() }
}

export function lobbyRow(namespace_id: string, shard: number, lobby: Lobby) {
  return {
    lobby_id: lobby.lobby_id,
    namespace_id,
    shard,
    version_id: lobby.version_id,
    game_mode: lobby.game_mode,
    region: lobby.region,
    publicity: lobby.publicity,
    is_custom: lobby.is_custom,
    is_closed: lobby.is_closed,
    max_players_normal: lobby.max_players_normal,
    max_players_direct: lobby.max_players_direct,
    max_players_party: lobby.max_players_party,
    tags: lobby.tags,
    lobby_config: lobby.lobby_config,
    state: lobby.state,
    player_count: lobby.players.size,
    player_deadline_ms: lobby.player_deadline_ms,
    idle_grace_ms: lobby.idle_grace_ms,
    create_ts: time(lobby.create_ms),
    ready_deadline_ts: time(lobby.ready_deadline_ms),
    ready_ts: time(lobby.ready_ms),
    idle_ts: time(lobby.idle_ms),
    stop_ts: time(lobby.stop_ms),
    stop_reason: lobby.stop_reason,
  }
}

export function playerRow(namespace_id: string, shard: number, player: Player) {
  return {
    player_id: player.player_id,
    lobby_id: player.lobby_id,
    namespace_id,
    shard,
    client: player.client,
    create_ts: time(player.create_ms),
    deadline_ts: time(player.deadline_ms),
    connect_ts: time(player.connect_ms),
    remove_ts: time(player.remove_ms),
    remove_reason: player.remove_reason,
    seat_key: player.seat_key,
    connect_key: player.connect_key,
    disconnect_key: player.disconnect_key,
  }
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** One statement: the guard, the rows that depend on it, and the wake-up of the runner. */
const PROJECT_SQL = `
  with guard as (
    update shards set projected_seq = $2 where shard = $1 and projected_seq <= $2 returning shard
  ), written_lobbies as (
    insert into lobbies select image.* from guard, json_populate_recordset(null::lobbies, $3) as image
    on conflict (lobby_id) do update set
      is_closed = excluded.is_closed, state = excluded.state, player_count = excluded.player_count,
      ready_deadline_ts = excluded.ready_deadline_ts, ready_ts = excluded.ready_ts, idle_ts = excluded.idle_ts,
      stop_ts = excluded.stop_ts, stop_reason = excluded.stop_reason
  ), written_players as (
    insert into players select image.* from guard, json_populate_recordset(null::players, $4) as image
    on conflict (player_id) do update set
      deadline_ts = excluded.deadline_ts, connect_ts = excluded.connect_ts, remove_ts = excluded.remove_ts,
      remove_reason = excluded.remove_reason, connect_key = excluded.connect_key,
      disconnect_key = excluded.disconnect_key
  )
  select case when $5 then pg_notify('lobbies', '') end from guard`

export function createProjection(pool: Pool, log: Logger): Projection {
  const dirty = new Map<number, Dirty>()
  const writing = new Map<number, Promise<void>>()
  const timer = setInterval(() => void flush(), PROJECT_EVERY_MS)

  function note(shard: number, seq: number, images: Images, is_urgent: boolean): void {
    const noted = dirty.get(shard)
    if (noted === undefined) {
      dirty.set(shard, { seq, images, is_urgent })
    } else {
      noted.seq = seq
      noted.is_urgent ||= is_urgent
      for (const [id, row] of images.lobbies) noted.images.lobbies.set(id, row)
      for (const [id, row] of images.players) noted.images.players.set(id, row)
    }
    if (is_urgent) void write(shard)
  }

  /** One write of a shard at a time; what is noted meanwhile is written after it. */
  function write(shard: number): Promise<void> {
    const before = writing.get(shard)
    if (before !== undefined) return before.then(() => (dirty.get(shard)?.is_urgent ? write(shard) : undefined))
    const batch = dirty.get(shard)
    if (batch === undefined) return Promise.resolve()
    dirty.delete(shard)
    const done = writeBatch(shard, batch).finally(() => writing.delete(shard))
    writing.set(shard, done)
    return done
  }

  async function writeBatch(shard: number, batch: Dirty): Promise<void> {
    try {
      const { lobbies, players } = batch.images
      await pool.query(projectQuery(shard, batch.seq, [...lobbies.values()], [...players.values()], batch.is_urgent))
    } catch (error) {
      if (isRefusal(error)) return await writeOneByOne(shard, batch)
      log.warn({ err: error, shard }, 'lobbies and players could not be projected; trying again')
      keep(shard, batch)
    }
  }

  /** A row that the database refuses must not hold back the others; all that it takes still become true at once. */
  async function writeOneByOne(shard: number, batch: Dirty): Promise<void> {
    let client: PoolClient | undefined
    let broken: Error | undefined
    try {
      client = await pool.connect()
      await writeAll(client, shard, batch)
    } catch (error) {
      broken = error as Error
      log.warn({ err: error, shard }, 'lobbies and players could not be projected; trying again')
      keep(shard, batch)
    } finally {
      client?.release(broken)
    }
  }

  async function writeAll(client: PoolClient, shard: number, batch: Dirty): Promise<void> {
    await client.query('begin')
    const writeAlone = async (lobbies: LobbyRow[], players: PlayerRow[]): Promise<void> => {
      await client.query('savepoint alone')
      try {
        await client.query(projectQuery(shard, batch.seq, lobbies, players, batch.is_urgent))
      } catch (error) {
        if (!isRefusal(error)) throw error
        log.error({ err: error, shard, lobbies, players }, 'a row cannot be projected')
        await client.query('rollback to savepoint alone')
      }
    }
    for (const row of batch.images.lobbies.values()) await writeAlone([row], [])
    for (const row of batch.images.players.values()) await writeAlone([], [row])
    await client.query('commit')
  }

  /** What could not be written stays noted; what was noted since then is newer and wins. */
  function keep(shard: number, batch: Dirty): void {
    const newer = dirty.get(shard)
    if (newer === undefined) {
      dirty.set(shard, batch)
      return
    }
    newer.is_urgent ||= batch.is_urgent
    for (const [id, row] of batch.images.lobbies) if (!newer.images.lobbies.has(id)) newer.images.lobbies.set(id, row)
    for (const [id, row] of batch.images.players) if (!newer.images.players.has(id)) newer.images.players.set(id, row)
  }

  async function flush(): Promise<void> {
    await Promise.all([...new Set([...writing.keys(), ...dirty.keys()])].map(flushShard))
  }

  /** An urgent write may follow at once on the one that is waited for: only behind it is everything written. */
  async function flushShard(shard: number): Promise<void> {
    while (writing.has(shard)) await writing.get(shard)
    await write(shard)
  }

  return {
    note,
    reset: (shard) => void dirty.delete(shard),
    flush,
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}

function projectQuery(shard: number, seq: number, lobbies: LobbyRow[], players: PlayerRow[], wake: boolean) {
  const values = [shard, seq, JSON.stringify(lobbies), JSON.stringify(players), wake]
  return { name: 'project', text: PROJECT_SQL, values }
}

/** The database lives and refuses the rows: data of theirs is at fault, not the connection. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(21|22|23)...$/.test(code)
}
