// The laws of lobbies, seats and ports, checked for every row of the journal by plain counting, without the matchmaker's
// book. The counts continue from check to check, so each row is read once. Then the tables are compared with them.
import type { ClientBase } from 'pg'
import type { Change, LobbyRecord } from '../../../src/journal/changes.ts'
import { decodePage } from '../../../src/journal/pages.ts'
import type { Findings } from './findings.ts'

const PAGE_ROWS_MAX = 1_000
/** Time in which a port of the edge is not given to another lobby. */
const QUARANTINE_MS = 60_000

const NO_ROOM: Room = { cpu_micro: 0, memory_kb: 0, lobby_count: 0 }

export type Limits = { lobby_count_max: number; max_players_per_client: number }
type Lobby = Pick<LobbyRecord, 'lobby_id' | 'edge_ports' | 'region' | 'node_id' | 'cpu_cores' | 'memory_mb'> & {
  namespace_id: string
  players_max: number
  players: Set<string>
}
/** As in place_room. */
type Room = { cpu_micro: number; memory_kb: number; lobby_count: number }
type Player = { lobby_id: string; client: string; is_connected: boolean }

export class JournalLaws {
  /** Limits of the namespaces whose limits never change. */
  readonly #limits: ReadonlyMap<string, Limits>
  readonly #read_seq = new Map<number, number>()
  readonly #lobbies = new Map<string, Lobby>()
  readonly #players = new Map<string, Player>()
  readonly #ended_players = new Set<string>()
  /** By transport and port: the lobby that has it, or when a lobby last had it. */
  readonly #ports = new Map<string, { lobby_id: string } | { free_ms: number }>()
  #row_count = 0

  constructor(limits: ReadonlyMap<string, Limits>) {
    this.#limits = limits
  }

  get row_count(): number {
    return this.#row_count
  }

  /** Runs within the caller's snapshot. */
  async check(db: ClientBase, findings: Findings): Promise<void> {
    let after = { shard: -1, seq: '0' }
    for (;;) {
      const { rows } = await db.query<{ shard: number; seq: string; payload: Buffer }>(
        `select j.shard, j.seq, j.payload from journal j
          left join unnest($1::int[], $2::bigint[]) as known (shard, seq) on known.shard = j.shard
          where j.seq > coalesce(known.seq, 0) and (j.shard, j.seq) > ($3, $4::bigint)
          order by j.shard, j.seq limit $5`,
        [[...this.#read_seq.keys()], [...this.#read_seq.values()], after.shard, after.seq, PAGE_ROWS_MAX],
      )
      for (const row of rows) this.#readRow(row.shard, Number(row.seq), row.payload, findings)
      if (rows.length < PAGE_ROWS_MAX) break
      after = rows.at(-1)!
    }
    await this.#compareTables(db, findings)
  }

  #readRow(shard: number, seq: number, payload: Buffer, findings: Findings): void {
    const before = this.#read_seq.get(shard)
    const is_next = before === undefined || seq === before + 1
    findings.require(is_next, `the journal of shard ${shard} goes on with row ${seq} after row ${before}`)
    this.#read_seq.set(shard, seq)
    this.#row_count++
    const page = decodePage(payload)
    for (const { namespace_id, changes } of page.entries) {
      for (const change of changes) {
        const broken = this.#make(namespace_id, change, page.ms)
        if (broken !== null) findings.add(`row ${seq} of shard ${shard}: ${broken}`)
      }
    }
  }

  /** Returns what is illegal about the change, or null. */
  #make(namespace_id: string, change: Change, ms: number): string | null {
    switch (change.kind) {
      case 'lobby_created':
        return this.#createLobby(namespace_id, change.lobby, ms)
      case 'lobby_stopped':
        return this.#stopLobby(change.lobby_id, ms)
      case 'lobby_placed': {
        const lobby = this.#lobbies.get(change.lobby_id)
        if (lobby === undefined) return `lobby ${change.lobby_id} gets a node, and does not live`
        lobby.node_id = change.node_id
        return null
      }
      case 'player_reserved':
        return this.#reserve(change.player)
      case 'player_connected': {
        const player = this.#players.get(change.player_id)
        if (player === undefined) return `L2: player ${change.player_id} connects without a seat`
        if (player.is_connected) return `L2: player ${change.player_id} connects twice`
        player.is_connected = true
        return null
      }
      case 'player_dropped': {
        const player = this.#players.get(change.player_id)
        if (player === undefined) return `L2: player ${change.player_id} drops out without a seat`
        player.is_connected = false
        return null
      }
      case 'player_removed': {
        const player = this.#players.get(change.player_id)
        if (player === undefined) return `L2: player ${change.player_id} leaves without a seat`
        this.#removePlayer(change.player_id, player)
        return null
      }
      default:
        return null
    }
  }

  #createLobby(namespace_id: string, lobby: LobbyRecord, ms: number): string | null {
    const { lobby_id, edge_ports } = lobby
    if (this.#lobbies.has(lobby_id)) return `lobby ${lobby_id} is created twice`
    const players_max = Math.max(lobby.max_players_normal, lobby.max_players_direct, lobby.max_players_party)
    const { region, node_id, cpu_cores, memory_mb } = lobby
    const use = { region, node_id, cpu_cores, memory_mb }
    this.#lobbies.set(lobby_id, { lobby_id, edge_ports, ...use, namespace_id, players_max, players: new Set() })
    for (const { transport, port } of edge_ports) {
      const number = `${transport} ${port}`
      const state = this.#ports.get(number)
      this.#ports.set(number, { lobby_id })
      if (state === undefined) continue
      if ('lobby_id' in state) return `L5: lobby ${lobby_id} gets ${number}, which lobby ${state.lobby_id} has`
      if (ms - state.free_ms < QUARANTINE_MS) {
        return `L5: lobby ${lobby_id} gets ${number}, which is free since ${ms - state.free_ms} ms`
      }
    }
    const lobby_count_max = this.#limits.get(namespace_id)?.lobby_count_max ?? Number.POSITIVE_INFINITY
    const count = [...this.#lobbies.values()].filter((other) => other.namespace_id === namespace_id).length
    return count <= lobby_count_max ? null : `L3: namespace ${namespace_id} has lobby ${count} of ${lobby_count_max}`
  }

  #stopLobby(lobby_id: string, ms: number): string | null {
    const lobby = this.#lobbies.get(lobby_id)
    if (lobby === undefined) return `lobby ${lobby_id} stops, and does not live`
    for (const player_id of [...lobby.players]) this.#removePlayer(player_id, this.#players.get(player_id)!)
    for (const { transport, port } of lobby.edge_ports) this.#ports.set(`${transport} ${port}`, { free_ms: ms })
    this.#lobbies.delete(lobby_id)
    return null
  }

  #reserve(record: { player_id: string; lobby_id: string; client: string }): string | null {
    const { player_id, lobby_id, client } = record
    if (this.#players.has(player_id) || this.#ended_players.has(player_id)) {
      return `L2: player ${player_id} gets a second seat`
    }
    const lobby = this.#lobbies.get(lobby_id)
    if (lobby === undefined) return `player ${player_id} gets a seat in lobby ${lobby_id}, which does not live`
    this.#players.set(player_id, { lobby_id, client, is_connected: false })
    lobby.players.add(player_id)
    if (lobby.players.size > lobby.players_max) {
      return `L1: lobby ${lobby_id} gets player ${lobby.players.size} of ${lobby.players_max}`
    }
    const { namespace_id } = lobby
    const max = this.#limits.get(namespace_id)?.max_players_per_client ?? Number.POSITIVE_INFINITY
    const count = this.#playersOf(namespace_id, client)
    return count <= max ? null : `L4: client ${client} has player ${count} of ${max} in namespace ${namespace_id}`
  }

  #playersOf(namespace_id: string, client: string): number {
    const lobbies = [...this.#lobbies.values()].filter((lobby) => lobby.namespace_id === namespace_id)
    const ids = lobbies.flatMap(({ players }) => [...players])
    return ids.filter((player_id) => this.#players.get(player_id)!.client === client).length
  }

  #removePlayer(player_id: string, { lobby_id }: Player): void {
    this.#lobbies.get(lobby_id)?.players.delete(player_id)
    this.#players.delete(player_id)
    this.#ended_players.add(player_id)
  }

  /** The tables reflect the whole journal, so they say the same. */
  async #compareTables(db: ClientBase, findings: Findings): Promise<void> {
    const lobbies = await db.query<{ lobby_id: string; player_count: number }>(
      'select lobby_id, player_count from lobbies where stop_ts is null',
    )
    compareSets('lobby', new Set(lobbies.rows.map(({ lobby_id }) => lobby_id)), this.#lobbies, findings)
    for (const { lobby_id, player_count } of lobbies.rows) {
      const counted = this.#lobbies.get(lobby_id)?.players.size ?? 0
      findings.require(
        player_count === counted,
        `L1: the row of lobby ${lobby_id} counts ${player_count} of ${counted}`,
      )
    }
    const players = await db.query<{ player_id: string; is_connected: boolean }>(
      'select player_id, connect_ts is not null as is_connected from players where remove_ts is null',
    )
    await this.#compareRoom(db, findings)
    compareSets('player', new Set(players.rows.map(({ player_id }) => player_id)), this.#players, findings)
  }

  /** The room of a node or region: no limit is exceeded, and the sums that limits are compared with are those of the journal. */
  async #compareRoom(db: ClientBase, findings: Findings): Promise<void> {
    const sums = new Map<string, Room>()
    for (const { region, node_id, cpu_cores, memory_mb } of this.#lobbies.values()) {
      for (const place of [`region ${region}`, node_id === null ? `unplaced ${region}` : `node ${node_id}`]) {
        const { cpu_micro, memory_kb, lobby_count } = sums.get(place) ?? NO_ROOM
        sums.set(place, {
          cpu_micro: cpu_micro + Math.floor(cpu_cores * 1_000_000),
          memory_kb: memory_kb + Math.floor(memory_mb * 1_024),
          lobby_count: lobby_count + 1,
        })
      }
    }
    const { rows } = await db.query<Room & { place: string; cpu_micro_max: number; memory_kb_max: number }>(
      `select place, cpu_micro::float8, memory_kb::float8, lobby_count::float8,
        coalesce(cpu_micro_max, 'infinity'::float8) as cpu_micro_max, coalesce(memory_kb_max, 'infinity'::float8) as memory_kb_max
        from place_room`,
    )
    for (const { place, cpu_micro_max, memory_kb_max, ...room } of rows) {
      const counted = JSON.stringify(sums.get(place) ?? NO_ROOM)
      findings.require(
        JSON.stringify(room) === counted,
        `${place} has the sums ${JSON.stringify(room)}, not ${counted}`,
      )
      const fits = room.cpu_micro <= cpu_micro_max && room.memory_kb <= memory_kb_max
      findings.require(
        fits,
        `the lobbies of ${place} exceed its room: ${counted} of ${cpu_micro_max}, ${memory_kb_max}`,
      )
      sums.delete(place)
    }
    for (const place of sums.keys()) findings.add(`${place} has lobbies, and no sum`)
  }
}

function compareSets(
  what: string,
  table: ReadonlySet<string>,
  journal: ReadonlyMap<string, unknown>,
  findings: Findings,
): void {
  for (const id of table) findings.require(journal.has(id), `${what} ${id} lives by its table, and not by the journal`)
  for (const id of journal.keys())
    findings.require(table.has(id), `${what} ${id} lives by the journal, and not by its table`)
}
