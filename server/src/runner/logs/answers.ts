// Serves questions of an api on another machine about the logs of lobbies that ran here (lobby-logs/remote.ts), from this
// machine's disk, and writes what they send to a lobby's standard input. A question is: asked (a row and a notification) -> pending, while it waits for more output -> answered (a
// row and a notification). A question about a lobby that never ran here is ignored.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import type { InputResult, LobbyLogs, LogPart } from '../../lobby-logs/lobby-logs.ts'
import { createFolderLogs, folderOfLobby } from '../../lobby-logs/local.ts'
import { type LogAnswer, type LogQuestion, writePart } from '../../lobby-logs/remote.ts'
import { CHANNELS } from '../../wire/channels.ts'

/** Questions served at once. A further one is answered as busy, and the api repeats it. */
const PENDING_MAX = 1_000
/** How often a log is read while a question waits for more. */
const POLL_MS = 200
/** How often unanswered questions are read without a notification: the delay when one is lost. */
const ASKED_EVERY_MS = 10_000
/** Lines of one answer, whatever the question asks for. Bounds its memory. */
const LINES_MAX = 1_000
/** How long a question may wait for more output, whatever it asks for. */
const WAIT_MS_MAX = 10_000
const FOREIGN_KEY_VIOLATION = '23503'

type AskedQuestion = { question_id: string; lobby_id: string; runner_id: string; question: LogQuestion }

/** Writes a line to a lobby's standard input, and `note` into its log. A driver is one. */
type InputWriter = { write: (lobby_id: string, line: string, note: string) => Promise<InputResult> }

export class LogAnswers {
  readonly #ctx: Context
  readonly #driver: InputWriter
  readonly #lobbies_folder: string
  readonly #logs: LobbyLogs
  readonly #pending = new Map<string, Promise<void>>()
  readonly #closing = new AbortController()
  readonly #unsubscribe: () => void
  readonly #timer: NodeJS.Timeout
  /** Set when a notification may be lost: then all unanswered questions are read. */
  #is_all_due = true
  #due = new Set<string>()
  #reading: Promise<void> | null = null

  constructor(ctx: Context, driver: InputWriter) {
    this.#ctx = ctx
    this.#driver = driver
    this.#lobbies_folder = join(ctx.config.data_dir, 'lobbies')
    this.#logs = createFolderLogs(this.#lobbies_folder)
    this.#unsubscribe = ctx.listener.on(CHANNELS.log_questions, (question_id) => {
      if (question_id === '' || this.#due.size >= PENDING_MAX) this.#is_all_due = true
      else this.#due.add(question_id)
      this.#wake()
    })
    this.#timer = setInterval(() => {
      this.#is_all_due = true
      this.#wake()
    }, ASKED_EVERY_MS)
  }

  async close(): Promise<void> {
    this.#unsubscribe()
    clearInterval(this.#timer)
    this.#closing.abort()
    await this.#reading
    await Promise.all(this.#pending.values())
  }

  #wake(): void {
    this.#reading ??= this.#readDue()
      .catch((error: unknown) => {
        this.#is_all_due = true
        this.#ctx.log.warn({ err: error }, 'questions about logs could not be read; retrying')
      })
      .finally(() => {
        this.#reading = null
      })
  }

  async #readDue(): Promise<void> {
    while ((this.#is_all_due || this.#due.size > 0) && !this.#closing.signal.aborted) {
      const ids = this.#is_all_due ? null : [...this.#due]
      this.#is_all_due = false
      this.#due = new Set()
      const { rows } = await this.#ctx.pool.query<AskedQuestion>({
        name: 'log-questions',
        text: `select question_id, lobby_id, runner_id, question from log_questions q
          where ($1::uuid[] is null or question_id = any($1))
            and not exists (select from log_answers a where a.question_id = q.question_id) limit $2`,
        values: [ids, 2 * PENDING_MAX],
      })
      for (const asked of rows) if (!this.#pending.has(asked.question_id) && this.#isOurs(asked)) this.#begin(asked)
    }
  }

  /** A runner may have been renamed since the lobby ended; the lobby's folder has not. */
  #isOurs({ lobby_id, runner_id }: AskedQuestion): boolean {
    return runner_id === this.#ctx.config.node_id || existsSync(folderOfLobby(this.#lobbies_folder, lobby_id))
  }

  #begin(asked: AskedQuestion): void {
    const { question_id, lobby_id } = asked
    const answering =
      this.#pending.size >= PENDING_MAX ? this.#write(question_id, { is_busy: true }) : this.#answer(asked)
    const done = answering
      .catch((error: unknown) =>
        this.#ctx.log.warn({ err: error, lobby_id }, 'a log could not be read for another machine'),
      )
      .finally(() => this.#pending.delete(question_id))
    this.#pending.set(question_id, done)
  }

  async #answer({ question_id, lobby_id, question }: AskedQuestion): Promise<void> {
    if (question.kind === 'metrics') {
      return this.#write(question_id, { metrics: await this.#logs.metrics(lobby_id) })
    }
    if (question.kind === 'input') {
      // A runner that ended after the write has left no answer: the next one must not write the line again.
      if (!(await this.#take(question_id))) return
      const { line, note } = question
      return this.#write(question_id, { input: await this.#driver.write(lobby_id, line, note) })
    }
    const lines_max = Math.min(question.lines_max, LINES_MAX)
    const part =
      question.kind === 'last'
        ? await this.#logs.last(lobby_id, question.stream, lines_max)
        : await this.#waitForMore(lobby_id, question, lines_max)
    await this.#write(question_id, { part: writePart(part) })
  }

  /** False: the question has been taken before, or its client is gone. */
  async #take(question_id: string): Promise<boolean> {
    const { rowCount } = await this.#ctx.pool.query({
      name: 'log-take',
      text: `update log_questions set question = question || '{"is_taken": true}'
        where question_id = $1 and not question ? 'is_taken'`,
      values: [question_id],
    })
    return rowCount === 1
  }

  async #waitForMore(
    lobby_id: string,
    { stream, place, wait_ms }: Extract<LogQuestion, { kind: 'after' }>,
    lines_max: number,
  ): Promise<LogPart> {
    const { signal } = this.#closing
    const end_ms = performance.now() + Math.min(wait_ms, WAIT_MS_MAX)
    for (;;) {
      const part = await this.#logs.after(lobby_id, stream, place, lines_max)
      const has_news = part.lines.length > 0 || !part.is_open
      if (has_news || performance.now() >= end_ms || signal.aborted) return part
      // `close` aborts the pause.
      await delay(POLL_MS, undefined, { signal }).catch(() => {})
    }
  }

  async #write(question_id: string, answer: LogAnswer): Promise<void> {
    try {
      await this.#ctx.pool.query({
        name: 'log-tell',
        text: 'insert into log_answers (question_id, answer) values ($1, $2) on conflict do nothing',
        values: [question_id, JSON.stringify(answer)],
      })
      await this.#ctx.listener.notify(CHANNELS.log_answers, question_id)
    } catch (error) {
      // The question was removed because its client has gone.
      const is_gone = error instanceof Error && 'code' in error && error.code === FOREIGN_KEY_VIOLATION
      if (!is_gone) throw error
    }
  }
}
