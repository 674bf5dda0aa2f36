// A writer of all shards in a process of its own, so that it can be stopped and killed: the real books on the database
// of argv[2]. It carries out what its parent asks over the IPC channel, and ends when that closes. Its clocks stand still,
// so that a process that was stopped for long has made nobody wait too long; with `running` as argv[3] they run.
import { ApiError } from '@musterhost/contract'
import { pino } from 'pino'
import { connect } from '../../src/database/connect.ts'
import { newId } from '../../src/ids.ts'
import type {
  CreateRequest,
  Decision,
  Env,
  FindRequest,
  FreshIds,
  JoinRequest,
} from '../../src/matchmaker/book/commands.ts'
import * as decide from '../../src/matchmaker/book/decide.ts'
import { ALL_REPORTED_MS, NO_IDLE_RULES } from '../../src/matchmaker/book/idle.ts'
import type { Book } from '../../src/matchmaker/book/state.ts'
import { Projection } from '../../src/matchmaker/projection/projection.ts'
import { Books } from '../../src/matchmaker/shards/books.ts'
import { ShardMoved } from '../../src/matchmaker/shards/shard-moved.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { holdAllShards } from './all-shards.ts'

export type Command = 'find' | 'join' | 'create' | 'ready' | 'connected' | 'disconnected' | 'release' | 'stop'
/** `wish` is what the command takes after the book. */
export type Call = { id: number; namespace_id: string; command: Command; wish: unknown }
export type Look = { id: number; namespace_id: string; look: true }
export type Told =
  | { event: 'open' | 'deposed' }
  | { id: number; result: unknown }
  | { id: number; refused: string }
  | { id: number; failed: string }

const url = process.argv[2]!
const opened_ms = Date.now()
const is_running = process.argv[3] === 'running'
const log = pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' }, pino.destination(2))
const connection = connect({ url, application_name: `writer ${process.pid}`, log })
const projection = new Projection(connection.pool, log)
const tell = (told: Told): void => void process.send!(told)
const books = new Books({
  pool: connection.pool,
  projection,
  regions: [],
  node_capacity: { cpu_cores: null, memory_mb: null },
  now: () => (is_running ? Date.now() : opened_ms),
  elapsed: () => (is_running ? performance.now() : opened_ms),
  idle_rules: NO_IDLE_RULES,
  reported_ms: ALL_REPORTED_MS,
  log,
  metrics: createMetrics({ roles: [] }),
  onDeposed: () => tell({ event: 'deposed' }),
})

process.on('message', (message: Call | Look) => {
  answer(message).then(
    (result) => tell({ id: message.id, result }),
    (error: Error) => {
      const refused = error instanceof ApiError ? error.code : error instanceof ShardMoved ? 'SHARD_MOVED' : null
      tell(refused === null ? { id: message.id, failed: String(error) } : { id: message.id, refused })
    },
  )
})
process.on('disconnect', () => process.exit())

async function answer(message: Call | Look): Promise<unknown> {
  if ('look' in message) {
    const book = books.book(message.namespace_id)
    return {
      lobbies: [...(book?.lobbies.values() ?? [])].map((lobby) => ({ ...lobby, players: [...lobby.players.keys()] })),
      players: [...(book?.players.values() ?? [])],
    }
  }
  return await books.commit(message.namespace_id, (book, env) => carryOut(book, message, env))
}

function carryOut(book: Book, { command, wish }: Call, env: Env): Decision<unknown> {
  const { now_ms } = env
  const ids: FreshIds = { lobby_id: newId(now_ms), player_id: newId(now_ms) }
  switch (command) {
    case 'find':
      return decide.find(book, wish as FindRequest, ids, env)
    case 'join':
      return decide.join(book, wish as JoinRequest, ids, now_ms)
    case 'create':
      return decide.create(book, wish as CreateRequest, ids, env)
    case 'connected':
      return decide.connected(book, wish as Parameters<typeof decide.connected>[1], now_ms)
    case 'disconnected':
      return decide.disconnected(book, wish as Parameters<typeof decide.disconnected>[1], now_ms)
    case 'ready':
      return decide.ready(book, wish as string, now_ms)
    case 'release':
      return decide.release(book, wish as string, now_ms)
    case 'stop':
      return decide.stop(book, wish as string, 'requested', now_ms)
  }
}

await holdAllShards(connection.pool, books)
tell({ event: 'open' })
