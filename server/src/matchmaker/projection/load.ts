// A shard read into memory: the tables as they reflect the journal at projected_seq, and the journal after it. To be
// called by the shard's writer only, after its takeover, so that nothing is in flight behind its back.
import type { Selectable } from 'kysely'
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import type { Schema } from '../../database/schema.ts'
import { inSnapshot } from '../../database/transaction.ts'
import type { Change, LobbyRecord, PartyRecord, PlayerRecord, RemoveReason, StopReason } from '../../journal/changes.ts'
import { readPages } from '../../journal/read.ts'
import type { VerifiedClient } from '../book/captcha-memory.ts'
import { apply, load, postpone } from '../book/evolve.ts'
import type { Player, StoredLobby } from '../book/lobby.ts'
import { Book, MEMORY_MS } from '../book/state.ts'
import type { Takeover } from '../shards/fence.ts'
import { imagesOf, touchedBy } from './affected-rows.ts'
import { emptyImages, type Images } from './rows.ts'

export type LoadedShard = {
  books: Map<string, Book>
  /** Rows that the journal knows newer than the tables. */
  images: Images
}

/** `takeover` is the writer's own row: its time is the latest that the journal speaks of. */
export async function loadShard(
  pool: Pool,
  shard: number,
  takeover: Takeover,
  log: Logger,
  newBook: NewBook = () => new Book(),
): Promise<LoadedShard> {
  const books = new Map<string, Book>()
  const { projected_seq, lobbies, players, verified, draining, parties } = await readTables(pool, shard, takeover.ms)
  for (const namespace_id of new Set(
    [lobbies, players, verified, draining, parties].flatMap((rows) => [...rows.keys()]),
  )) {
    const rowsOf = <T>(rows: Map<string, T[]>): T[] => rows.get(namespace_id) ?? []
    const book = bookOf(books, namespace_id, newBook)
    load(book, {
      lobbies: rowsOf(lobbies),
      players: rowsOf(players),
      verified: rowsOf(verified),
      draining: rowsOf(draining),
      parties: rowsOf(parties),
    })
  }

  const touched = new Map<string, Set<string>>()
  let is_moved = false
  for await (const page of readPages(pool, { shard, after: projected_seq, last: takeover.seq })) {
    const { moved_ms = 0 } = page
    if (moved_ms > 0) {
      is_moved = true
      for (const book of books.values()) postpone(book, moved_ms)
    }
    for (const { namespace_id, changes } of page.entries) {
      const book = bookOf(books, namespace_id, newBook)
      const ids = touched.get(namespace_id) ?? new Set()
      touched.set(namespace_id, ids)
      for (const told of changes) {
        const change = completed(told)
        if (!canApply(book, change)) {
          log.error({ namespace_id, change }, 'the journal speaks of a lobby or player that the tables have lost')
          continue
        }
        for (const id of touchedBy(book, change)) ids.add(id)
        apply(book, change)
      }
    }
  }
  const images = emptyImages()
  for (const [namespace_id, book] of books) {
    imagesOf(book, namespace_id, shard, touched.get(namespace_id) ?? [], images)
    // The tables must know of the moved deadlines before they are ahead of the row that moved them.
    if (is_moved) imagesOf(book, namespace_id, shard, withDeadlines(book), images)
  }
  return { books, images }
}

/** Ids of the lobbies, players and parties that have not ended. */
function* withDeadlines(book: Book): Generator<string> {
  for (const { lobby_id, stop_ms } of book.lobbies.values()) if (stop_ms === null) yield lobby_id
  for (const { player_id, remove_ms } of book.players.values()) if (remove_ms === null) yield player_id
  for (const { party_id, end_ms } of book.parties.all()) if (end_ms === null) yield party_id
}

const UNSAID_OF_PLAYER = { identity_id: null, leader_player_id: null }
/** What lobbies of an older journal do not say of themselves: they get what their rows got. */
const UNSAID = {
  tier: 'basic-1d1',
  cpu_cores: 1,
  memory_mb: 1024,
  edge_ports: [],
  creator_identity_id: null,
  ray_id: null,
}

function completed(change: Change): Change {
  if (change.kind === 'player_reserved') {
    const said: Partial<PlayerRecord> = change.player
    return { ...change, player: { ...UNSAID_OF_PLAYER, ...said } as PlayerRecord }
  }
  if (change.kind !== 'lobby_created') return change
  const said: Partial<LobbyRecord> = change.lobby
  return { ...change, lobby: { ...UNSAID, ...said } as LobbyRecord }
}

/**
 * Only a row that the database refused (projection.ts) is missing here. It is lost, and must not keep all the others of its
 * shard from being read.
 */
function canApply(book: Book, change: Change): boolean {
  switch (change.kind) {
    case 'lobby_created':
    case 'client_verified':
    case 'client_counted':
    case 'version_draining':
    case 'party_put':
      return true
    case 'party_ended':
      return book.parties.get(change.party_id) !== undefined
    case 'player_reserved':
      return book.lobbies.has(change.player.lobby_id)
    case 'player_connected':
    case 'player_dropped':
    case 'player_removed':
      return book.players.has(change.player_id)
    default:
      return book.lobbies.has(change.lobby_id)
  }
}

export type NewBook = () => Book

export function bookOf(books: Map<string, Book>, namespace_id: string, newBook: NewBook): Book {
  let book = books.get(namespace_id)
  if (book === undefined) {
    book = newBook()
    books.set(namespace_id, book)
  }
  return book
}

type Tables = {
  projected_seq: number
  lobbies: Map<string, StoredLobby[]>
  players: Map<string, Player[]>
  verified: Map<string, VerifiedClient[]>
  /** Ids of versions. */
  draining: Map<string, string[]>
  parties: Map<string, PartyRecord[]>
}

/** One snapshot, so that the rows and the seq that they reflect belong together. */
async function readTables(pool: Pool, shard: number, now_ms: number): Promise<Tables> {
  await pool.query('insert into shards (shard, projected_seq) values ($1, 0) on conflict do nothing', [shard])
  return inSnapshot(pool, (client) => readSnapshot(client, shard, now_ms))
}

async function readSnapshot(client: PoolClient, shard: number, now_ms: number): Promise<Tables> {
  const remembered = new Date(now_ms - MEMORY_MS)
  const state = await client.query<{ projected_seq: number }>('select projected_seq from shards where shard = $1', [
    shard,
  ])
  const lobbies = await client.query<Selectable<Schema['lobbies']>>(
    'select * from lobbies where shard = $1 and (stop_ts is null or stop_ts > $2) order by create_ts, lobby_id',
    [shard, remembered],
  )
  const players = await client.query<Selectable<Schema['players']>>(
    `select * from players where shard = $1 and (remove_ts is null or remove_ts > $2)
      order by create_ts, remove_ts nulls last`,
    [shard, remembered],
  )
  const verified = await client.query<Selectable<Schema['captcha_clients']>>(
    'select * from captcha_clients where shard = $1 and expire_ts > $2',
    [shard, new Date(now_ms)],
  )
  const draining = await client.query<Selectable<Schema['draining_versions']>>(
    'select * from draining_versions where shard = $1 and is_draining',
    [shard],
  )
  const parties = await client.query<Selectable<Schema['parties']>>(
    'select * from parties where shard = $1 and end_ts is null order by create_ts, party_id',
    [shard],
  )
  return {
    projected_seq: state.rows[0]!.projected_seq,
    lobbies: byNamespace(lobbies.rows, toLobby),
    players: byNamespace(players.rows, toPlayer),
    verified: byNamespace(verified.rows, toVerifiedClient),
    draining: byNamespace(draining.rows, (row) => row.version_id),
    parties: byNamespace(parties.rows, toParty),
  }
}

function byNamespace<R extends { namespace_id: string }, T>(rows: readonly R[], read: (row: R) => T): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const group = groups.get(row.namespace_id)
    if (group === undefined) groups.set(row.namespace_id, [read(row)])
    else group.push(read(row))
  }
  return groups
}

export function toLobby(row: Selectable<Schema['lobbies']>): StoredLobby {
  return {
    lobby_id: row.lobby_id,
    version_id: row.version_id,
    game_mode: row.game_mode,
    region: row.region,
    tier: row.tier,
    cpu_cores: row.cpu_cores,
    memory_mb: row.memory_mb,
    edge_ports: row.edge_ports,
    publicity: row.publicity,
    is_custom: row.is_custom,
    creator_identity_id: row.creator_identity_id,
    ray_id: row.ray_id,
    is_closed: row.is_closed,
    is_stalled: row.is_stalled,
    max_players_normal: row.max_players_normal,
    max_players_direct: row.max_players_direct,
    max_players_party: row.max_players_party,
    tags: row.tags,
    lobby_config: row.lobby_config,
    state: row.state,
    player_deadline_ms: row.player_deadline_ms,
    idle_grace_ms: row.idle_grace_ms,
    create_ms: row.create_ts.getTime(),
    ready_deadline_ms: row.ready_deadline_ts.getTime(),
    ready_ms: row.ready_ts?.getTime() ?? null,
    idle_ms: row.idle_ts?.getTime() ?? null,
    stop_ms: row.stop_ts?.getTime() ?? null,
    stop_reason: row.stop_reason as StopReason | null,
    has_reported_players: row.has_reported_players,
    seats_expired_while_connected: row.seats_expired_while_connected,
    connections_at_stop: row.connections_at_stop,
  }
}

export function toPlayer(row: Selectable<Schema['players']>): Player {
  return {
    player_id: row.player_id,
    lobby_id: row.lobby_id,
    client: row.client,
    create_ms: row.create_ts.getTime(),
    deadline_ms: row.deadline_ts.getTime(),
    connect_ms: row.connect_ts?.getTime() ?? null,
    remove_ms: row.remove_ts?.getTime() ?? null,
    remove_reason: row.remove_reason as RemoveReason | null,
    seat_key: row.seat_key,
    connect_key: row.connect_key,
    disconnect_key: row.disconnect_key,
    identity_id: row.identity_id,
    leader_player_id: row.leader_player_id,
  }
}

export function toVerifiedClient(row: Selectable<Schema['captcha_clients']>): VerifiedClient {
  return {
    client: row.client,
    verify_ms: row.verify_ts.getTime(),
    expire_ms: row.expire_ts.getTime(),
    request_count: row.request_count,
  }
}

export function toParty(row: Selectable<Schema['parties']>): PartyRecord {
  return {
    party_id: row.party_id,
    code: row.code,
    leader_identity_id: row.leader_identity_id,
    members: row.members,
    create_ms: row.create_ts.getTime(),
    expire_ms: row.expire_ts.getTime(),
    revision: row.revision,
  }
}
