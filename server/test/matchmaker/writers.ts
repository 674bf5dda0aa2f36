// Writers for a test: in this process, or each in its own process; and reads of their journal from outside.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { type Logger, pino } from 'pino'
import { connect } from '../../src/database/connect.ts'
import { newId } from '../../src/ids.ts'
import type { Change } from '../../src/journal/changes.ts'
import { decodePage, shardOf } from '../../src/journal/pages.ts'
import { ALL_REPORTED_MS, NO_IDLE_RULES } from '../../src/matchmaker/book/idle.ts'
import type { Lobby, Player } from '../../src/matchmaker/book/lobby.ts'
import { Projection } from '../../src/matchmaker/projection/projection.ts'
import { Books } from '../../src/matchmaker/shards/books.ts'
import { readStat } from '../../src/node/procfs.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { until } from '../support/until.ts'
import { holdAllShards } from './all-shards.ts'
import type { Call, Command, Look, Told } from './writer-program.ts'

/** The database as the test itself sees it. */
export async function openDatabase(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end())
  return client
}

export type LocalWriter = {
  books: Books
  projection: Projection
  pool: pg.Pool
  isDeposed: () => boolean
  close: () => Promise<void>
}

/**
 * A writer in this process. Its clocks stand still, so that a slow machine lets nobody wait too long. `now` is another wall
 * clock, by which time passes too unless `elapsed` says otherwise.
 */
export async function openLocalWriter(
  t: TestContext,
  url: string,
  options: { now?: () => number; elapsed?: () => number; log?: Logger } = {},
): Promise<LocalWriter> {
  const log = options.log ?? pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' }, pino.destination(2))
  const connection = connect({ url, application_name: 'local writer', log })
  const projection = new Projection(connection.pool, log)
  let is_deposed = false
  const opened_ms = Date.now()
  const now = options.now ?? (() => opened_ms)
  const books = new Books({
    pool: connection.pool,
    projection,
    regions: [],
    node_capacity: { cpu_cores: null, memory_mb: null },
    now,
    elapsed: options.elapsed ?? now,
    idle_rules: NO_IDLE_RULES,
    reported_ms: ALL_REPORTED_MS,
    log,
    metrics: createMetrics({ roles: [] }),
    onDeposed() {
      is_deposed = true
    },
  })
  let endBeat = async (): Promise<void> => {}
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= endBeat()
      .then(() => books.close())
      .then(() => projection.close())
      .then(() => connection.close())
    return closed
  }
  t.after(close)
  endBeat = await holdAllShards(connection.pool, books)
  return { books, projection, pool: connection.pool, isDeposed: () => is_deposed, close }
}

/** What a call came to: a result, the code of a refusal, or a fault. */
export type Outcome = { result?: unknown; refused?: string; failed?: string }
export type Seen = { lobbies: (Omit<Lobby, 'players'> & { players: string[] })[]; players: Player[] }

export type Writer = {
  process_id: number
  call: (namespace_id: string, command: Command, wish: unknown) => Promise<Outcome>
  look: (namespace_id: string) => Promise<Seen>
  /** Whether it has said so. */
  isOpen: () => boolean
  isDeposed: () => boolean
  /** SIGSTOP; it has stopped when this answers. */
  pause: () => Promise<void>
  resume: () => void
  kill: () => Promise<void>
}

/** A writer in a process of its own. It may not be open yet. */
export function startWriter(t: TestContext, url: string, clocks: 'held' | 'running' = 'held'): Writer {
  const child = fork(new URL('writer-program.ts', import.meta.url), [url, clocks], { execArgv: [] })
  t.after(() => end(child))
  const waiting = new Map<number, (outcome: Outcome) => void>()
  let [last_id, is_open, is_deposed] = [0, false, false]
  child.on('message', (told: Told) => {
    if ('event' in told) {
      if (told.event === 'open') is_open = true
      else is_deposed = true
      return
    }
    const { id, ...outcome } = told
    waiting.get(id)?.(outcome)
    waiting.delete(id)
  })
  const send = (message: Omit<Call, 'id'> | Omit<Look, 'id'>): Promise<Outcome> =>
    new Promise((resolve) => {
      const id = ++last_id
      waiting.set(id, resolve)
      child.send({ ...message, id }, (error) => {
        if (error) resolve({ failed: error.message })
      })
    })
  const process_id = child.pid!
  return {
    process_id,
    call: (namespace_id, command, wish) => send({ namespace_id, command, wish }),
    look: async (namespace_id) => (await send({ namespace_id, look: true })).result as Seen,
    isOpen: () => is_open,
    isDeposed: () => is_deposed,
    async pause() {
      process.kill(process_id, 'SIGSTOP')
      await until('the process has stopped', () => readStat(process_id)?.state === 'T')
    },
    resume: () => void process.kill(process_id, 'SIGCONT'),
    kill: () => end(child),
  }
}

export async function startOpenWriter(t: TestContext, url: string, clocks?: 'held' | 'running'): Promise<Writer> {
  const writer = startWriter(t, url, clocks)
  await until('the writer has taken over', writer.isOpen)
  return writer
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

export type JournalRow = { seq: number; writer: string; ms: number; changes: readonly Change[] }

/** The rows of the shard of a namespace, and of them what concerns it. */
export async function readJournal(db: pg.Client, namespace_id: string): Promise<JournalRow[]> {
  const { rows } = await db.query<{ seq: string; writer: string; payload: Buffer }>(
    'select seq, writer, payload from journal where shard = $1 order by seq',
    [shardOf(namespace_id)],
  )
  return rows.map(({ seq, writer, payload }) => {
    const page = decodePage(payload)
    const changes = page.entries
      .filter((entry) => entry.namespace_id === namespace_id)
      .flatMap((entry) => entry.changes)
    return { seq: Number(seq), writer, ms: page.ms, changes }
  })
}

/** Players in the order in which the journal seats them; one that is seated twice stands twice. */
export function seatedIn(journal: readonly JournalRow[]): { player_id: string; client: string }[] {
  return journal
    .flatMap((row) => row.changes)
    .flatMap((change) => (change.kind === 'player_reserved' ? [change.player] : []))
}

export function newNamespace(): string {
  return newId(Date.now())
}

const GATE = 4711

/** A gate inside the database, at which the appends of one writer wait. */
export type Gate = {
  /** Waits until an append stands before it; answers the process id of its backend. */
  reached: () => Promise<number>
  open: () => Promise<void>
}

/**
 * Closes a gate for the appends of this writer (its name in the journal): before the row is there, or after, when it
 * holds its key and is not committed.
 */
export async function closeGate(t: TestContext, url: string, writer: string, when: 'before' | 'after'): Promise<Gate> {
  const db = await openDatabase(t, url)
  await db.query(`select pg_advisory_lock(${GATE})`)
  await db.query(`
    create or replace function wait_at_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$;
    create or replace trigger gate ${when} insert on journal for each row
      when (new.writer = '${writer}') execute function wait_at_gate()`)
  return {
    async reached() {
      const look = `select pid from pg_locks where locktype = 'advisory' and objid = ${GATE} and not granted
        and database = (select oid from pg_database where datname = current_database())`
      const row = await until('an append stands at the gate', async () => (await db.query(look)).rows[0])
      return row.pid
    },
    async open() {
      await db.query(`select pg_advisory_unlock(${GATE})`)
    },
  }
}

/** The name under which the shard of a namespace is written now. */
export async function lastWriter(db: pg.Client, namespace_id: string): Promise<string> {
  const text = 'select writer from journal where shard = $1 order by seq desc limit 1'
  const { rows } = await db.query<{ writer: string }>(text, [shardOf(namespace_id)])
  return rows[0]!.writer
}
