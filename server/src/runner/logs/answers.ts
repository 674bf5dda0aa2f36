// What an api on another machine asks about the logs of lobbies that ran here (lobby-logs/remote.ts): read from this machine's disk
// and answered. A question is: asked (a row, and a word) -> held, where it waits for what comes next -> answered (a row,
// and a word), or left alone, when the lobby never ran here.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import type { LogPart } from '../../lobby-logs/lobby-logs.ts'
import { createFolderLogs, folderOfLobby } from '../../lobby-logs/local.ts'
import {
  ANSWERS_CHANNEL,
  type LogAnswer,
  type LogQuestion,
  QUESTIONS_CHANNEL,
  writePart,
} from '../../lobby-logs/remote.ts'

/** Beyond it whoever asks is told to come again. */
const HELD_MAX = 1_000
const LOOK_MS = 200
/** What a lost word costs. */
const ASKED_EVERY_MS = 2_000
/** Lines of an answer, and how long a question may wait, whatever was asked for. */
const LINES_MAX = 1_000
const WAIT_MS_MAX = 10_000
const FOREIGN_KEY_VIOLATION = '23503'

type Asked = { question_id: string; lobby_id: string; runner_id: string; question: LogQuestion }

export type LogAnswers = { close: () => Promise<void> }

export function answerLogQuestions({ config, pool, listener, log }: Context): LogAnswers {
  const lobbies_folder = join(config.data_dir, 'lobbies')
  const logs = createFolderLogs(lobbies_folder)
  const held = new Map<string, Promise<void>>()
  const closing = new AbortController()
  let is_all_due = true
  let due = new Set<string>()
  let reading: Promise<void> | null = null

  /** Asked by words of which one of many may have been lost: then all that are not answered are looked at. */
  async function readDue(): Promise<void> {
    while ((is_all_due || due.size > 0) && !closing.signal.aborted) {
      const ids = is_all_due ? null : [...due]
      is_all_due = false
      due = new Set()
      const { rows } = await pool.query<Asked>({
        name: 'log-questions',
        text: `select question_id, lobby_id, runner_id, question from log_questions q
          where ($1::uuid[] is null or question_id = any($1))
            and not exists (select from log_answers a where a.question_id = q.question_id) limit $2`,
        values: [ids, 2 * HELD_MAX],
      })
      for (const asked of rows) if (!held.has(asked.question_id) && isOurs(asked)) hold(asked)
    }
  }

  /** A runner may have been renamed since the lobby ended; its folder has not. */
  function isOurs({ lobby_id, runner_id }: Asked): boolean {
    return runner_id === config.node_id || existsSync(folderOfLobby(lobbies_folder, lobby_id))
  }

  function hold(asked: Asked): void {
    const { question_id } = asked
    const answering = held.size >= HELD_MAX ? tell(question_id, { is_busy: true }) : answer(asked)
    const done = answering
      .catch((error: unknown) => log.warn({ err: error, lobby_id: asked.lobby_id }, 'a log could not be told'))
      .finally(() => held.delete(question_id))
    held.set(question_id, done)
  }

  async function answer({ question_id, lobby_id, question }: Asked): Promise<void> {
    if (question.kind === 'metrics') return tell(question_id, { metrics: await logs.metrics(lobby_id) })
    const lines_max = Math.min(question.lines_max, LINES_MAX)
    const { kind, stream } = question
    const part =
      kind === 'last' ? await logs.last(lobby_id, stream, lines_max) : await waitForMore(lobby_id, question, lines_max)
    await tell(question_id, { part: writePart(part) })
  }

  async function waitForMore(
    lobby_id: string,
    { stream, place, wait_ms }: Extract<LogQuestion, { kind: 'after' }>,
    lines_max: number,
  ): Promise<LogPart> {
    const end_ms = performance.now() + Math.min(wait_ms, WAIT_MS_MAX)
    for (;;) {
      const part = await logs.after(lobby_id, stream, place, lines_max)
      const is_news = part.lines.length > 0 || !part.is_open
      if (is_news || performance.now() >= end_ms || closing.signal.aborted) return part
      // Cut short by the end.
      await delay(LOOK_MS, undefined, { signal: closing.signal }).catch(() => {})
    }
  }

  async function tell(question_id: string, told: LogAnswer): Promise<void> {
    try {
      await pool.query({
        name: 'log-tell',
        text: 'insert into log_answers (question_id, answer) values ($1, $2) on conflict do nothing',
        values: [question_id, JSON.stringify(told)],
      })
      await listener.notify(ANSWERS_CHANNEL, question_id)
    } catch (error) {
      // Whoever asked has gone.
      const is_gone = error instanceof Error && 'code' in error && error.code === FOREIGN_KEY_VIOLATION
      if (!is_gone) throw error
    }
  }

  function read(): void {
    reading ??= readDue()
      .catch((error: unknown) => {
        is_all_due = true
        log.warn({ err: error }, 'what is asked about logs could not be read; trying again')
      })
      .finally(() => {
        reading = null
      })
  }

  const unsubscribe = listener.on(QUESTIONS_CHANNEL, (question_id) => {
    if (question_id === '' || due.size >= HELD_MAX) is_all_due = true
    else due.add(question_id)
    read()
  })
  const asking = setInterval(() => {
    is_all_due = true
    read()
  }, ASKED_EVERY_MS)

  return {
    async close() {
      unsubscribe()
      clearInterval(asking)
      closing.abort()
      await reading
      await Promise.all(held.values())
    },
  }
}
