// The tables lobbies, players, captcha_clients, parties and draining_versions: what the journal says, for api, runner, edge and people to read. Written in batches
// about once a second, and at once when a lobby starts or stops, together with the seq that they reflect. A row is
// always an image of committed state, so writing it twice, or writing an older one that the guard lets through, changes
// nothing.
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import { inTransaction } from '../../database/transaction.ts'
import { type Images, type ProjectedRows, projectQuery } from './rows.ts'

const PROJECT_EVERY_MS = 1_000

/** Rows of one statement: more would hold up whoever waits for this process meanwhile. */
const STATEMENT_ROWS_MAX = 1_000
/** Shards that are written at the same time: tables that are slow must not take every connection from the journal. */
const WRITES_MAX = 4

export type Projection = {
  /** Notes what a commit changed. `is_urgent`: a lobby started or stopped, the runner waits for it. */
  note: (shard: number, seq: number, images: Images, is_urgent: boolean) => void
  /** Drops what is noted for a shard: it has been read anew from the journal. */
  reset: (shard: number) => void
  /** Writes everything that is noted. */
  flush: () => Promise<void>
  /** For how long the oldest of what is noted has waited. */
  lagMs: () => number
  close: () => Promise<void>
}

/** `since`: of performance.now(). */
type Dirty = { seq: number; images: Images; is_urgent: boolean; since: number }

export function createProjection(pool: Pool, log: Logger): Projection {
  const dirty = new Map<number, Dirty>()
  const writing = new Map<number, Promise<void>>()
  const under_way = new Set<Dirty>()
  const queue: (() => void)[] = []
  let writes = 0
  const timer = setInterval(() => void flush(), PROJECT_EVERY_MS)

  function note(shard: number, seq: number, images: Images, is_urgent: boolean): void {
    const noted = dirty.get(shard)
    if (noted === undefined) {
      dirty.set(shard, { seq, images, is_urgent, since: performance.now() })
    } else {
      noted.seq = seq
      noted.is_urgent ||= is_urgent
      for (const [id, row] of images.lobbies) noted.images.lobbies.set(id, row)
      for (const [id, row] of images.players) noted.images.players.set(id, row)
      for (const [id, row] of images.captcha_clients) noted.images.captcha_clients.set(id, row)
      for (const [id, row] of images.draining_versions) noted.images.draining_versions.set(id, row)
      for (const [id, row] of images.parties) noted.images.parties.set(id, row)
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
    under_way.add(batch)
    const done = inTurn(() => writeBatch(shard, batch)).finally(() => {
      under_way.delete(batch)
      writing.delete(shard)
    })
    writing.set(shard, done)
    return done
  }

  async function inTurn(work: () => Promise<void>): Promise<void> {
    if (writes < WRITES_MAX) writes++
    else await new Promise<void>((resolve) => queue.push(resolve))
    try {
      await work()
    } finally {
      // The place is handed on, or free.
      const next = queue.shift()
      if (next !== undefined) next()
      else writes--
    }
  }

  async function writeBatch(shard: number, batch: Dirty): Promise<void> {
    try {
      await writePieces(shard, batch, piecesOf(batch.images, STATEMENT_ROWS_MAX))
    } catch (error) {
      if (isRefusal(error)) return await writeOneByOne(shard, batch)
      log.warn({ err: error, shard }, 'lobbies and players could not be projected; trying again')
      keep(shard, batch)
    }
  }

  /** Several statements become true at once: the seq that the rows reflect is one. */
  async function writePieces(shard: number, batch: Dirty, pieces: readonly Piece[]): Promise<void> {
    const queries = pieces.map((piece) => () => projectQuery(shard, batch.seq, piece, batch.is_urgent))
    if (queries.length === 1) {
      await pool.query(queries[0]!())
      return
    }
    await inTransaction(pool, async (client) => {
      for (const query of queries) await client.query(query())
    })
  }

  /** A row that the database refuses must not hold back the others; all that it takes still become true at once. */
  async function writeOneByOne(shard: number, batch: Dirty): Promise<void> {
    try {
      await inTransaction(pool, async (client) => {
        for (const piece of piecesOf(batch.images, 1)) await writeAlone(client, shard, batch, piece)
      })
    } catch (error) {
      log.warn({ err: error, shard }, 'lobbies and players could not be projected; trying again')
      keep(shard, batch)
    }
  }

  async function writeAlone(client: PoolClient, shard: number, batch: Dirty, piece: Piece): Promise<void> {
    await client.query('savepoint alone')
    try {
      await client.query(projectQuery(shard, batch.seq, piece, batch.is_urgent))
    } catch (error) {
      if (!isRefusal(error)) throw error
      log.error({ err: error, shard, ...piece }, 'a row cannot be projected')
      await client.query('rollback to savepoint alone')
    }
  }

  /** What could not be written stays noted; what was noted since then is newer and wins. */
  function keep(shard: number, batch: Dirty): void {
    const newer = dirty.get(shard)
    if (newer === undefined) {
      dirty.set(shard, batch)
      return
    }
    newer.since = batch.since
    newer.is_urgent ||= batch.is_urgent
    for (const [id, row] of batch.images.lobbies) if (!newer.images.lobbies.has(id)) newer.images.lobbies.set(id, row)
    for (const [id, row] of batch.images.players) if (!newer.images.players.has(id)) newer.images.players.set(id, row)
    for (const [id, row] of batch.images.captcha_clients) {
      if (!newer.images.captcha_clients.has(id)) newer.images.captcha_clients.set(id, row)
    }
    for (const [id, row] of batch.images.draining_versions) {
      if (!newer.images.draining_versions.has(id)) newer.images.draining_versions.set(id, row)
    }
    for (const [id, row] of batch.images.parties) if (!newer.images.parties.has(id)) newer.images.parties.set(id, row)
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
    lagMs() {
      const since = [...dirty.values(), ...under_way].map((batch) => batch.since)
      return since.length === 0 ? 0 : performance.now() - Math.min(...since)
    },
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}

type Piece = ProjectedRows

const newPiece = (): Piece => ({ lobbies: [], players: [], captcha_clients: [], draining_versions: [], parties: [] })

/** At least one, also when there is no row: the seq is to be written. */
function piecesOf(
  { lobbies, players, captcha_clients, draining_versions, parties }: Images,
  rows_max: number,
): Piece[] {
  const pieces: Piece[] = [newPiece()]
  let rows = 0
  const room = (): Piece => {
    if (rows++ > 0 && (rows - 1) % rows_max === 0) pieces.push(newPiece())
    return pieces.at(-1)!
  }
  for (const row of lobbies.values()) room().lobbies.push(row)
  for (const row of players.values()) room().players.push(row)
  for (const row of captcha_clients.values()) room().captcha_clients.push(row)
  for (const row of draining_versions.values()) room().draining_versions.push(row)
  for (const row of parties.values()) room().parties.push(row)
  return pieces
}

/** The database lives and refuses the rows: data of theirs is at fault, not the connection. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(21|22|23)...$/.test(code)
}
