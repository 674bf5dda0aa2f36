// Players with connections to lobbies whose seats the edge checks. A player's first connection waits until the book has
// admitted the player; no byte is forwarded before. Further connections of the same player pass at once. When the last one
// ends, the player is reported as gone, and the matchmaker holds the seat for a while (matchmaker/watch/edge-players.ts).
//
// Both directions are tables. The edge writes edge_players: one row for each player, with a number that grows with each
// statement. The matchmaker writes edge_admissions. Nothing here outlives the edge: when it is killed, its connections end,
// and the next edge of the node removes its rows. A row that a crash of the database lost is written again with the next
// registration (report-connections.ts).
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type ErrorCode } from '@musterhost/contract'
import { type Admitted, addressIn, type PlayerId, type SeatHolders } from '@musterhost/contract/edge'
import type { PoolClient } from 'pg'
import type { SharedShare } from '../../addresses/client-share.ts'
import type { Context } from '../../context.ts'
import { type Watch, watchChannel } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import {
  ADMISSIONS_EVERY_MS,
  ADMIT_MS_MAX,
  CLOSED_PLAYER_KEPT_MS,
  PLAYER_CONNECTIONS_MAX,
  PLAYERS_MAX,
  PLAYERS_RETRY_MS,
  PLAYERS_WRITE_PAUSE_MS,
  WRITTEN_MS_MAX,
} from '../limits.ts'
import type { MachineEdges, PlayerAddresses } from './machine-edges.ts'

type Presence = PlayerId & {
  address: string | null
  /** While other edge processes are asked for the address. */
  addressing: Promise<void> | null
  /** What ends each connection. */
  connections: Set<() => void>
  is_admitted: boolean
  /** The number of its row; null: it is not written yet. */
  change_seq: number | null
  answer: PromiseWithResolvers<void>
}

export class Players implements SeatHolders {
  readonly #ctx: Pick<Context, 'pool' | 'log' | 'elapsed' | 'keys' | 'now' | 'metrics'>
  readonly #answers: Watch
  /** By player id. */
  readonly #presences = new Map<string, Presence>()
  /** Players whose row is to be written. */
  #changed = new Map<string, PlayerId>()
  /** By lobby id: the addresses of its players. */
  readonly #addresses = new Map<string, Set<string>>()
  #edge_id: string | null = null
  #seq = 0
  /** Numbers before which closed rows are removed, and from when. */
  #forget = { seq: 0, next_seq: 0, since_ms: 0 }
  #writing: Promise<void> = Promise.resolve()
  #is_write_due = false
  #is_closed = false
  readonly #shared: SharedShare | null
  /** The other edge processes of the machine; null: there is none. */
  machine_edges: Pick<MachineEdges, 'addressesOf'> | null = null

  /** `shared`: the connections at other edge processes. */
  constructor(ctx: Context, shared: SharedShare | null = null) {
    this.#ctx = ctx
    this.#shared = shared
    this.#answers = watchChannel(ctx, {
      channel: CHANNELS.edge_admissions,
      every_ms: ADMISSIONS_EVERY_MS,
      run: () => this.#readAnswers(),
      failure: 'answers about players could not be read; retrying',
    })
  }

  /** Returns whose token it is. Throws PLAYER_TOKEN_INVALID for a token that is missing, forged, expired or of another lobby. */
  playerOf(token: string | null, lobby_id: string): PlayerId {
    const claims = token === null ? null : this.#verified(token)
    if (claims?.kind !== 'player' || claims.lobby_id !== lobby_id) {
      const message =
        token === null ? 'The lobby admits only players, and the connection has no player token.' : undefined
      throw new ApiError('PLAYER_TOKEN_INVALID', {}, message === undefined ? {} : { message })
    }
    const { player_id, namespace_id, role } = claims
    return { player_id, lobby_id, namespace_id, is_spectator: role === 'spectator' }
  }

  /**
   * Waits for the book. `end` ends the connection when the player is removed. `network`: of which the player gets an address.
   * Throws the book's refusal.
   */
  async admit(player: PlayerId, end: () => void, network: string | null): Promise<Admitted> {
    const presence = this.#presences.get(player.player_id) ?? this.#begin(player)
    if (network !== null && presence.address === null) {
      if (this.machine_edges === null) presence.address = this.#takeAddress(player, network)
      else {
        presence.addressing ??= this.#findAddress(presence, network, this.machine_edges)
        await presence.addressing
      }
    }
    if (!this.#hasRoom(presence)) {
      throw new ApiError('API_NOT_AVAILABLE', {}, { message: 'The player has too many connections to the lobby.' })
    }
    const admitted = this.#join(presence, end)
    if (!presence.is_admitted) {
      try {
        await this.#answered(presence)
      } catch (error) {
        admitted.leave()
        throw error
      }
    }
    return admitted
  }

  #hasRoom({ player_id, connections }: Presence): boolean {
    const { size } = connections
    if (size >= PLAYER_CONNECTIONS_MAX) return false
    return this.#shared?.allows(player_id, size + 1, PLAYER_CONNECTIONS_MAX) !== false
  }

  /** For another edge process of the machine. */
  addressesOf({ player_id, lobby_id }: PlayerId): PlayerAddresses {
    const own = this.#presences.get(player_id)?.address ?? null
    return { own, used: [...(this.#addresses.get(lobby_id) ?? [])] }
  }

  /** Joins a connection whose player another edge has admitted. Throws API_NOT_AVAILABLE beyond PLAYERS_MAX. */
  adopt({ address, ...player }: PlayerId & { address: string | null }, end: () => void): Admitted {
    const known = this.#presences.get(player.player_id)
    const presence = known ?? this.#begin(player)
    if (known === undefined && address !== null) {
      presence.address = address
      this.#addresses.set(player.lobby_id, (this.#addresses.get(player.lobby_id) ?? new Set()).add(address))
    }
    presence.is_admitted = true
    presence.answer.resolve()
    return this.#join(presence, end)
  }

  /** Resolves when the table has every change so far. Rejects after WRITTEN_MS_MAX. */
  async written(): Promise<void> {
    for (let waited_ms = 0; this.#changed.size > 0; waited_ms += PLAYERS_RETRY_MS) {
      if (waited_ms >= WRITTEN_MS_MAX) throw new Error('Players could not be written.')
      await delay(PLAYERS_RETRY_MS)
    }
    await this.#writing
  }

  /** In the transaction that registers the edge: writes all players under its new id. */
  async register(client: PoolClient, edge_id: string): Promise<void> {
    await this.#writing
    this.#edge_id = edge_id
    this.#seq = 1
    this.#changed = new Map([...this.#changed].filter(([player_id]) => this.#presences.has(player_id)))
    const open = [...this.#presences.values()]
    await client.query(WRITE_QUERY.text, [edge_id, 1, ...columnsOf(open, this.#presences), 0])
    for (const presence of open) presence.change_seq = 1
    if (open.length > 0) await client.query(`select pg_notify('${CHANNELS.edge_players}', '')`)
  }

  async close(): Promise<void> {
    this.#is_closed = true
    await this.#answers.close()
    await this.#writing
  }

  #join(presence: Presence, end: () => void): Admitted {
    const connection = (): void => end()
    presence.connections.add(connection)
    const { player_id, lobby_id, namespace_id, is_spectator = false, address } = presence
    return { player_id, lobby_id, namespace_id, is_spectator, address, leave: () => this.#leave(presence, connection) }
  }

  #verified(token: string) {
    try {
      return this.#ctx.keys.verify(token, this.#ctx.now())
    } catch (error) {
      if (error instanceof ApiError) return null
      throw error
    }
  }

  #begin(player: PlayerId): Presence {
    if (this.#presences.size >= PLAYERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    const answer = Promise.withResolvers<void>()
    // Every connection that waits may be gone.
    answer.promise.catch(() => {})
    const presence = {
      ...player,
      address: null,
      addressing: null,
      connections: new Set<() => void>(),
      is_admitted: false,
      change_seq: null,
      answer,
    }
    this.#presences.set(player.player_id, presence)
    this.#change(player)
    return presence
  }

  /** The player may have an address at another process, which its server knows the player by. */
  async #findAddress(presence: Presence, network: string, edges: Pick<MachineEdges, 'addressesOf'>): Promise<void> {
    const { own, used } = await edges.addressesOf(presence)
    presence.address = this.#takeAddress(presence, network, { own, of_others: used })
  }

  #takeAddress(
    { player_id, lobby_id }: PlayerId,
    network: string,
    { own, of_others }: { own: string | null; of_others: readonly string[] } = { own: null, of_others: [] },
  ): string {
    const used = this.#addresses.get(lobby_id) ?? new Set()
    const taken = of_others.length === 0 ? used : new Set([...used, ...of_others])
    const address = own ?? addressIn(network, player_id, taken)
    this.#addresses.set(lobby_id, used.add(address))
    return address
  }

  #leave(presence: Presence, connection: () => void): void {
    const { player_id, lobby_id, address } = presence
    if (!presence.connections.delete(connection)) return
    this.#shared?.left(player_id, presence.connections.size, PLAYER_CONNECTIONS_MAX)
    if (presence.connections.size > 0) return
    if (this.#presences.get(player_id) === presence) this.#presences.delete(player_id)
    const used = this.#addresses.get(lobby_id)
    if (address !== null) used?.delete(address)
    if (used?.size === 0) this.#addresses.delete(lobby_id)
    this.#change(presence)
  }

  async #answered(presence: Presence): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const error = new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    const timer = setTimeout(() => reject(error), ADMIT_MS_MAX).unref()
    const begin_ms = this.#ctx.elapsed()
    const measured = (outcome: 'admitted' | 'refused' | 'late'): void =>
      this.#ctx.metrics.edge_admission_seconds.observe({ outcome }, (this.#ctx.elapsed() - begin_ms) / 1000)
    try {
      await Promise.race([presence.answer.promise, late])
      measured('admitted')
    } catch (failure) {
      measured(failure === error ? 'late' : 'refused')
      throw failure
    } finally {
      clearTimeout(timer)
    }
  }

  #change({ player_id, lobby_id, namespace_id }: PlayerId): void {
    this.#changed.set(player_id, { player_id, lobby_id, namespace_id })
    if (this.#is_write_due || this.#is_closed) return
    this.#is_write_due = true
    this.#writing = this.#writing.then(() => delay(PLAYERS_WRITE_PAUSE_MS)).then(() => this.#write())
  }

  /** Writes all changes of the moment in one statement. */
  async #write(): Promise<void> {
    this.#is_write_due = false
    const changed = this.#changed
    this.#changed = new Map()
    if (changed.size === 0) return
    const seq = this.#seq + 1
    try {
      if (this.#edge_id === null) throw new Error('The edge is not registered yet.')
      const columns = columnsOf([...changed.values()], this.#presences)
      const opened = [...changed.keys()].flatMap((player_id) => this.#presences.get(player_id) ?? [])
      const values = [this.#edge_id, seq, ...columns, this.#forgotten(seq)]
      const { rowCount } = await this.#ctx.pool.query({ ...WRITE_QUERY, values })
      if (rowCount === 0) throw new Error('The registration of the edge is gone.')
      this.#seq = seq
      for (const presence of opened) presence.change_seq = seq
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'players of the edge could not be written; retrying')
      for (const [player_id, player] of changed) if (!this.#changed.has(player_id)) this.#changed.set(player_id, player)
      setTimeout(() => {
        for (const player of this.#changed.values()) return this.#change(player)
      }, PLAYERS_RETRY_MS).unref()
    }
  }

  /** Rows of closed players with a number up to this are removed. */
  #forgotten(seq: number): number {
    const now_ms = this.#ctx.elapsed()
    if (now_ms - this.#forget.since_ms >= CLOSED_PLAYER_KEPT_MS) {
      this.#forget = { seq: Math.min(this.#forget.next_seq, seq), next_seq: this.#seq, since_ms: now_ms }
    }
    return this.#forget.seq
  }

  async #readAnswers(): Promise<void> {
    if (this.#edge_id === null || this.#presences.size === 0) return
    const waiting = [...this.#presences.values()].flatMap((one) => (one.is_admitted ? [] : one.player_id))
    const { rows } = await this.#ctx.pool.query<{ player_id: string; change_seq: number; code: ErrorCode | null }>({
      name: 'edge-admissions-of',
      text: `select player_id, change_seq::double precision, code from edge_admissions
        where edge_id = $1 and (player_id = any($2) or code is not null)`,
      values: [this.#edge_id, waiting],
    })
    for (const { player_id, change_seq, code } of rows) {
      const presence = this.#presences.get(player_id)
      if (presence?.change_seq == null || change_seq < presence.change_seq) continue
      if (code !== null) this.#refuse(presence, code)
      else if (!presence.is_admitted) {
        presence.is_admitted = true
        presence.answer.resolve()
      }
    }
  }

  /** The player has no seat, or has it no longer: all connections end. */
  #refuse(presence: Presence, code: ErrorCode): void {
    const was_admitted = presence.is_admitted
    presence.is_admitted = false
    this.#presences.delete(presence.player_id)
    presence.answer.reject(new ApiError(code))
    if (was_admitted) for (const end of [...presence.connections]) end()
  }
}

type Columns = [player_ids: string[], lobby_ids: string[], namespace_ids: string[], are_open: boolean[]]

function columnsOf(players: readonly PlayerId[], open: ReadonlyMap<string, unknown>): Columns {
  return [
    players.map(({ player_id }) => player_id),
    players.map(({ lobby_id }) => lobby_id),
    players.map(({ namespace_id }) => namespace_id),
    players.map(({ player_id }) => open.has(player_id)),
  ]
}

/** Without a registration it writes nothing, and returns no row. */
const WRITE_QUERY = {
  name: 'edge-players-write',
  text: `
    with edge as (
      select edge_id from edge_reports where edge_id = $1
    ), forgotten as (
      delete from edge_players where edge_id = $1 and not is_open and change_seq <= $7 and not player_id = any($3::uuid[])
    ), written as (
      insert into edge_players (edge_id, player_id, lobby_id, namespace_id, is_open, change_seq)
      select edge_id, player_id, lobby_id, namespace_id, is_open, $2
      from edge, unnest($3::uuid[], $4::uuid[], $5::uuid[], $6::boolean[])
        as player (player_id, lobby_id, namespace_id, is_open)
      on conflict (edge_id, player_id) do update set is_open = excluded.is_open, change_seq = excluded.change_seq
    )
    select pg_notify('${CHANNELS.edge_players}', '') from edge`,
}
