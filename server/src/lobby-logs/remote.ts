// The logs of lobbies that run, or ran, on another machine. They stay on the disk of the runner that started them. The api
// requests what a caller wants to read, and the runner responds (runner/logs/answers.ts). Both are rows that live for
// seconds, with NOTIFY as the wake-up: a log that is not read causes no writes.
import { randomUUID } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Listener } from '../database/listen.ts'
import { createLongPoll } from '../database/long-poll.ts'
import { CHANNELS } from '../wire/channels.ts'
import type { LogLine, LogStream } from './files.ts'
import { INPUT_WAIT_MS_MAX, type InputResult, type LobbyInput, type LobbyLogs, type LogPart } from './lobby-logs.ts'
import type { RecordedMetrics } from './lobby-metrics.ts'
import type { LogPosition } from './read.ts'

export type LogQuestion =
  | { kind: 'last'; stream: LogStream; lines_max: number }
  | { kind: 'after'; stream: LogStream; place: LogPosition; lines_max: number; wait_ms: number }
  | { kind: 'metrics' }
  /** Served at most once. `is_taken`: a runner has begun to serve it. */
  | ({ kind: 'input'; is_taken?: true } & LobbyInput)

/** `lines`: when, in milliseconds, and the bytes in base64. */
export type LogAnswer = { part?: WrittenPart; metrics?: RecordedMetrics | null; input?: InputResult; is_busy?: true }
type WrittenPart = Omit<LogPart, 'lines'> & { lines: [number, string][] }

/** Asked at once by this process. */
const QUESTIONS_MAX = 1_000
/** A living runner responds within this time, added to the time that it was asked to wait. */
const ANSWER_MS_MAX = 3_000
/** What a lost word costs. */
const POLL_MS = 500
/** Questions of a process that is gone. */
const FORGOTTEN_AFTER = '2 minutes'

/** Which runner has them, and where it is. */
export type FarRun = { runner_id: string; region: string }

export type FarLogs = {
  /** Its answers throw LOBBY_LOGS_NOT_REACHABLE when the runner does not answer. */
  of: (run: FarRun) => LobbyLogs
  /** Throws LOBBY_RUNNER_NOT_REACHABLE when the runner does not answer: then the line may have been written, or not. */
  write: (run: FarRun, lobby_id: string, input: LobbyInput) => Promise<InputResult>
  /** Ends all waiting requests, and admits no more. */
  close: () => void
}

export function createFarLogs({ pool, listener, log }: { pool: Pool; listener: Listener; log: Logger }): FarLogs {
  const waiting = createLongPoll(
    { listener },
    { channel: CHANNELS.log_answers, poll_ms: POLL_MS, waiting_max: QUESTIONS_MAX },
  )

  async function read(question_id: string): Promise<LogAnswer | null> {
    const { rows } = await pool.query<{ answer: string }>({
      name: 'log-answer',
      text: 'select answer from log_answers where question_id = $1',
      values: [question_id],
    })
    return rows[0] === undefined ? null : (JSON.parse(rows[0].answer) as LogAnswer)
  }

  /** Null: the caller is gone. */
  async function ask(
    { runner_id, region }: FarRun,
    lobby_id: string,
    question: LogQuestion,
    isOver: () => boolean = () => false,
  ): Promise<LogAnswer | null> {
    const question_id = randomUUID()
    const end_ms = performance.now() + ANSWER_MS_MAX + waitOf(question)
    const isGone = (): boolean => isOver() || performance.now() >= end_ms
    await pool.query({
      name: 'log-question',
      text: `with gone as (delete from log_questions where ask_ts < now() - interval '${FORGOTTEN_AFTER}')
        insert into log_questions (question_id, lobby_id, runner_id, question) values ($1, $2, $3, $4)`,
      values: [question_id, lobby_id, runner_id, JSON.stringify(question)],
    })
    try {
      void listener.notify(CHANNELS.log_questions, question_id)
      const answer = await waiting.until([question_id], () => read(question_id), isGone)
      if (answer === 'busy' || answer?.is_busy) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      if (answer !== null || isOver()) return answer
    } finally {
      await pool.query('delete from log_questions where question_id = $1', [question_id])
    }
    log.warn({ lobby_id, runner_id, kind: question.kind }, 'a runner does not answer a question about a lobby')
    const code = question.kind === 'input' ? 'LOBBY_RUNNER_NOT_REACHABLE' : 'LOBBY_LOGS_NOT_REACHABLE'
    throw new ApiError(code, { region }, { retry_after_s: 5 })
  }

  const of = (run: FarRun): LobbyLogs => ({
    async last(lobby_id, stream, lines_max) {
      const answer = await ask(run, lobby_id, { kind: 'last', stream, lines_max })
      return readPart(answer?.part)
    },
    async after(lobby_id, stream, place, lines_max, patience) {
      const wait_ms = patience?.wait_ms ?? 0
      const answer = await ask(run, lobby_id, { kind: 'after', stream, place, lines_max, wait_ms }, patience?.isOver)
      return answer === null ? { lines: [], end: place, is_gap: false, is_open: true } : readPart(answer.part)
    },
    async metrics(lobby_id) {
      return (await ask(run, lobby_id, { kind: 'metrics' }))?.metrics ?? null
    },
  })
  async function write(run: FarRun, lobby_id: string, input: LobbyInput): Promise<InputResult> {
    const answer = await ask(run, lobby_id, { kind: 'input', ...input })
    if (answer?.input === undefined) throw new Error('A runner has answered something else than it was asked.')
    return answer.input
  }
  return { of, write, close: waiting.close }
}

/** How long the runner itself may wait, in milliseconds. */
function waitOf(question: LogQuestion): number {
  if (question.kind === 'after') return question.wait_ms
  return question.kind === 'input' ? INPUT_WAIT_MS_MAX : 0
}

export function writePart({ lines, ...rest }: LogPart): WrittenPart {
  return { ...rest, lines: lines.map(({ ts, bytes }) => [ts.getTime(), bytes.toString('base64')]) }
}

function readPart(part: WrittenPart | undefined): LogPart {
  if (part === undefined) throw new Error('A runner has answered something else than it was asked.')
  const lines = part.lines.map(([ts, bytes]): LogLine => ({ ts: new Date(ts), bytes: Buffer.from(bytes, 'base64') }))
  return { ...part, lines }
}
