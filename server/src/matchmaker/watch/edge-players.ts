// Players of lobbies whose seats the edges check (edge/presence/players.ts): which players have connections, as every edge reports it,
// for the books. The book connects a player with the first connection, and the edge forwards no byte before it has. The
// player leaves when no edge has had a connection for the lobby's `seat_hold_ms`.
//
// An edge that was killed keeps its players until the next edge of its node registers, or until it counts as gone
// (edge-reports.ts). While the report of a registered edge is missing, nobody leaves. A hold counts only the time in which
// players can connect: not the time without the database or without a report, and after the end of an edge all holds start
// again, for RESTARTED_MS_MAX at most. A new matchmaker reads all rows, decides
// again, which changes nothing that was decided before, and starts every hold again. So does the next holder of a shard. Each
// process decides about the players of its shards.
import { ApiError } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { type Poller, watchChannel } from '../../database/poller.ts'
import { createTimerWhileNeeded, type TimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import type { Change } from '../../journal/changes.ts'
import { CHANNELS } from '../../wire/channels.ts'
import * as decide from '../book/decide.ts'
import { seatsIn } from '../book/lobby.ts'
import type { Books } from '../shards/books.ts'

/** In case a notification was lost. */
const READ_EVERY_MS = 5_000
/** While players are without a connection or were removed, and after a read that failed. */
const READ_SOON_MS = 1_000
/** Rows of one read. The next read follows at once. */
const ROWS_MAX = 5_000
/** Closed players stay in the table for longer (edge/presence/players.ts). After a longer pause everything is read again. */
const PAUSE_MS_MAX = 30_000
/** Beyond the first hold. An edge that is restarted again and again keeps no seat for ever. */
const RESTARTED_MS_MAX = 5 * 60_000

type Player = { player_id: string; lobby_id: string; namespace_id: string }
type Row = Player & { is_open: boolean; change_seq: number }
/** An edge as of the last read. `players`: those with a connection, with the number of their row. */
type Edge = { seq: number; read_ms: number; players: Map<string, Player & { change_seq: number }> }
/** A player without a connection, by `#counted_ms`. `first_ms`: the first value of `since_ms`. */
type Absent = Player & { since_ms: number; first_ms: number }
type Answer = { edge_id: string; player_id: string; change_seq: number; code: string | null }

/** Resolves when the players have been read once, or could not be. */
export async function watchEdgePlayers(
  ctx: Pick<Context, 'pool' | 'log' | 'listener' | 'elapsed'>,
  books: Books,
): Promise<Pick<Poller, 'wake' | 'close'>> {
  const timer = createTimerWhileNeeded(READ_SOON_MS, () => {
    watch.wake()
    return players.mustReadSoon()
  })
  const players = new EdgePlayers(ctx, books, timer)
  const endCommits = books.onCommits({
    onCommit: (_namespace_id, changes) => players.onCommit(changes),
    onReload() {
      players.onReload()
      watch.wake()
    },
  })
  const watch = watchChannel(ctx, {
    channel: CHANNELS.edge_players,
    every_ms: READ_EVERY_MS,
    retry_ms: READ_SOON_MS,
    run: () => players.read(),
    failure: 'the players of the edges could not be read; trying again',
  })
  await watch.running()
  return {
    wake: watch.wake,
    close() {
      endCommits()
      timer.close()
      return watch.close()
    },
  }
}

class EdgePlayers {
  readonly #ctx: Pick<Context, 'pool' | 'listener' | 'elapsed'>
  readonly #books: Books
  readonly #timer: TimerWhileNeeded
  readonly #edges = new Map<string, Edge>()
  /** By player id. */
  readonly #absent = new Map<string, Absent>()
  /** Players that were removed while they had a connection, by id, with the reason for their edge. */
  #removed = new Map<string, string>()
  /** The last pass has found players without a connection. */
  #found_absent = false
  /** The books have connected players that no edge has reported since they were read. */
  #must_scan = true
  /** A shard has come to this process. */
  #must_read_all = false
  /** The sum of the times between two passes that both found the report of every edge. */
  #counted_ms = 0
  /** When the last such pass read; null: a pass since has failed, or missed a report. */
  #pass_ms: number | null = null

  constructor(ctx: Pick<Context, 'pool' | 'listener' | 'elapsed'>, books: Books, timer: TimerWhileNeeded) {
    this.#ctx = ctx
    this.#books = books
    this.#timer = timer
  }

  onCommit(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind !== 'player_removed' || !this.#isOpen(change.player_id)) continue
      this.#removed.set(change.player_id, 'MATCHMAKER_PLAYER_REMOVED')
      this.#timer.need()
    }
  }

  /** The rows of the shard's players were skipped as long as it was elsewhere. */
  onReload(): void {
    this.#must_scan = true
    this.#must_read_all = true
  }

  /** A player whose absence the first pass has found may have a connection to an edge that registered meanwhile. */
  async read(): Promise<void> {
    const reads_all = this.#must_read_all
    this.#must_read_all = false
    try {
      await this.#read(reads_all)
      if (this.#found_absent) await this.#read(false)
    } catch (error) {
      this.#pass_ms = null
      this.#must_read_all ||= reads_all
      throw error
    }
  }

  async #read(reads_all: boolean): Promise<void> {
    const before = new Set(this.#absent.keys())
    this.#found_absent = false
    const { rows } = await this.#ctx.pool.query<{ edge_id: string; is_reported: boolean }>(EDGES_QUERY)
    this.#countTime(rows.every(({ is_reported }) => is_reported))
    const known = new Set(rows.map(({ edge_id }) => edge_id))
    for (const [edge_id, edge] of this.#edges) {
      if (known.has(edge_id)) continue
      this.#edges.delete(edge_id)
      this.#restartHolds()
      for (const player of edge.players.values()) this.#onClosed(player)
    }
    for (const { edge_id, is_reported } of rows) if (is_reported) await this.#readEdge(edge_id, reads_all)
    await this.#answerRemoved()
    if (!rows.every(({ is_reported }) => is_reported)) return
    if (this.#must_scan) this.#scan()
    this.#found_absent = [...this.#absent.keys()].some((player_id) => !before.has(player_id))
    await this.#endHolds(before)
  }

  async #readEdge(edge_id: string, reads_all: boolean): Promise<void> {
    const now_ms = this.#ctx.elapsed()
    let edge = this.#edges.get(edge_id)
    if (edge === undefined || reads_all || now_ms - edge.read_ms > PAUSE_MS_MAX) {
      const before = edge?.players ?? new Map<string, Player>()
      edge = { seq: 0, read_ms: now_ms, players: new Map() }
      this.#edges.set(edge_id, edge)
      for (const player of before.values()) this.#onClosed(player)
    }
    for (let count = ROWS_MAX; count >= ROWS_MAX; ) {
      const { rows } = await this.#ctx.pool.query<Row>({ ...ROWS_QUERY, values: [edge_id, edge.seq] })
      count = rows.length
      await this.#apply(
        edge_id,
        edge,
        rows.filter(({ namespace_id }) => this.#books.has(namespace_id)),
      )
      edge.seq = rows.at(-1)?.change_seq ?? edge.seq
    }
    edge.read_ms = now_ms
  }

  async #apply(edge_id: string, edge: Edge, rows: readonly Row[]): Promise<void> {
    if (rows.length === 0) return
    const closed = rows.filter(({ is_open }) => !is_open)
    for (const { is_open: _, ...player } of rows.filter(({ is_open }) => is_open)) {
      edge.players.set(player.player_id, player)
      this.#absent.delete(player.player_id)
    }
    for (const player of closed) if (edge.players.delete(player.player_id)) this.#onClosed(player)
    const answers = await Promise.all(rows.filter(({ is_open }) => is_open).map((row) => this.#admit(edge_id, row)))
    await this.#write(answers)
    if (closed.length > 0) {
      await this.#ctx.pool.query('delete from edge_admissions where edge_id = $1 and player_id = any($2)', [
        edge_id,
        closed.map(({ player_id }) => player_id),
      ])
    }
  }

  /** Throws while the book cannot decide: then the row is read again. */
  async #admit(edge_id: string, { namespace_id, player_id, lobby_id, change_seq }: Row): Promise<Answer> {
    const answer = { edge_id, player_id, change_seq }
    try {
      await this.#books.commit(namespace_id, (book, { now_ms }) =>
        decide.admitted(book, { player_id, lobby_id }, now_ms),
      )
      return { ...answer, code: null }
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'API_NOT_AVAILABLE') throw error
      return { ...answer, code: error.code }
    }
  }

  /** Notifies the edges of players that were removed by others, so that their connections end. */
  async #answerRemoved(): Promise<void> {
    const removed = this.#removed
    this.#removed = new Map()
    const answers = [...this.#edges].flatMap(([edge_id, { players }]) =>
      [...removed].flatMap(([player_id, code]): Answer[] => {
        const player = players.get(player_id)
        return player === undefined ? [] : [{ edge_id, player_id, change_seq: player.change_seq, code }]
      }),
    )
    try {
      await this.#write(answers)
    } catch (error) {
      this.#removed = new Map([...removed, ...this.#removed])
      throw error
    }
  }

  async #write(answers: readonly Answer[]): Promise<void> {
    if (answers.length === 0) return
    const column = <K extends keyof Answer>(name: K) => answers.map((answer) => answer[name])
    await this.#ctx.pool.query({
      ...WRITE_QUERY,
      values: [column('edge_id'), column('player_id'), column('change_seq'), column('code')],
    })
    for (const edge_id of new Set(column('edge_id'))) void this.#ctx.listener.notify(CHANNELS.edge_admissions, edge_id)
  }

  /** A hold may be over, or an edge must be notified. */
  mustReadSoon(): boolean {
    return this.#absent.size > 0 || this.#removed.size > 0
  }

  #isOpen(player_id: string): boolean {
    return this.#edges.values().some(({ players }) => players.has(player_id))
  }

  #onClosed({ player_id, lobby_id, namespace_id }: Player): void {
    if (this.#isOpen(player_id)) return
    const since_ms = this.#counted_ms
    this.#absent.set(player_id, { player_id, lobby_id, namespace_id, since_ms, first_ms: since_ms })
    this.#timer.need()
  }

  #countTime(are_all_reported: boolean): void {
    const now_ms = this.#ctx.elapsed()
    if (are_all_reported && this.#pass_ms !== null) this.#counted_ms += now_ms - this.#pass_ms
    this.#pass_ms = are_all_reported ? now_ms : null
  }

  /** An edge has ended. For how long players could not connect before is not known. */
  #restartHolds(): void {
    for (const absent of this.#absent.values()) {
      absent.since_ms = Math.min(this.#counted_ms, absent.first_ms + RESTARTED_MS_MAX)
    }
  }

  /** Finds players that were connected before and whose edge ended while no matchmaker read. */
  #scan(): void {
    for (const namespace_id of this.#books.namespaceIds()) {
      for (const lobby of this.#books.book(namespace_id)?.lobbies.values() ?? []) {
        if (lobby.seat_hold_ms == null || lobby.stop_ms !== null) continue
        for (const { player_id, connect_ms } of seatsIn(lobby)) {
          if (connect_ms === null || this.#absent.has(player_id)) continue
          this.#onClosed({ player_id, lobby_id: lobby.lobby_id, namespace_id })
        }
      }
    }
    this.#must_scan = false
  }

  /** `known`: players that were absent before the edges were listed. */
  async #endHolds(known: ReadonlySet<string>): Promise<void> {
    for (const [player_id, { namespace_id }] of this.#absent) {
      if (!this.#books.has(namespace_id)) this.#absent.delete(player_id)
    }
    const due = [...this.#absent.values()].filter(({ player_id, namespace_id, lobby_id, since_ms }) => {
      const hold_ms = this.#books.lobby(namespace_id, lobby_id)?.seat_hold_ms ?? 0
      return known.has(player_id) && this.#counted_ms - since_ms >= hold_ms
    })
    await Promise.all(
      due.map(async ({ namespace_id, player_id, lobby_id }) => {
        await this.#books.commit(namespace_id, (book, env) => decide.gone(book, { player_id, lobby_id }, env.now_ms))
        this.#absent.delete(player_id)
      }),
    )
  }
}

const EDGES_QUERY = {
  name: 'edges-with-players',
  text: `
    select edges.edge_id, edge_reports.edge_id is not null as is_reported
    from edges left join edge_reports on edge_reports.edge_id = edges.edge_id`,
}

/** All rows of one statement of the edge have the same number: a read must not end between them. */
const ROWS_QUERY = {
  name: 'edge-players',
  text: `
    select player_id, lobby_id, namespace_id, is_open, change_seq::double precision from edge_players
    where edge_id = $1 and change_seq > $2 order by edge_players.change_seq fetch first ${ROWS_MAX} rows with ties`,
}

/** An edge that is gone gets no answer. */
const WRITE_QUERY = {
  name: 'edge-admissions',
  text: `
    insert into edge_admissions (edge_id, player_id, change_seq, code)
    select answer.edge_id, answer.player_id, answer.change_seq, answer.code
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) as answer (edge_id, player_id, change_seq, code)
    join edge_reports on edge_reports.edge_id = answer.edge_id
    on conflict (edge_id, player_id) do update set change_seq = excluded.change_seq, code = excluded.code
    where edge_admissions.change_seq <= excluded.change_seq`,
}
