// The check of a version before the namespace is switched to it: one lobby of the version starts there, and no player finds it
// before the switch. A version whose server does not become ready is never put into use. The platform ends the lobby when
// this command ends, and keeps it for the first player when the version is put into use.
import {
  ApiError,
  checkMatchmakerVersion,
  deleteMatchmakerLobby,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { CheckWatch, GIVE_UP_MS, SLOW_SERVER_REMEDY } from '@musterhost/contract/check-watch'
import { visibleText } from '@musterhost/contract/visible-text'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** After this the command says what it sees. */
const FIRST_WAIT_MS = 2_000
/** One call of those that follow. */
const WAIT_MS = 5_000
/** Calls of one check: more than an hour of them, and no server may take longer to become ready. */
const CALLS_MAX = 1_000
/** Lines of the log in a failure, and in one report. */
const LOG_LINES_MAX = 10
/** What is cleaned up is cleaned up after Ctrl-C too. */
const ALWAYS = new AbortController().signal

/** Refusals that say nothing about the version. */
const NO_ROOM: ReadonlySet<string> = new Set([
  ...['MATCHMAKER_TOO_MANY_LOBBIES', 'MATCHMAKER_REGION_FULL', 'MATCHMAKER_NO_PORTS', 'QUOTA_REACHED'],
])

export type CheckedVersion = { game_id: string; namespace_id: string; version_id: string; config: VersionConfig }
type Words = { version: string; stays: string }
type Report = ResponseOf<typeof checkMatchmakerVersion>
/** `config` has a game mode. */
export type ReadyLobby = { lobby_id: string; duration_ms: number }

/** Throws a Failure when the server fails (exit code 1), or is not ready in time (exit code 4). */
export async function checkVersion(
  terminal: Terminal,
  session: Session,
  { config, ...params }: CheckedVersion,
  words: Words,
): Promise<ReadyLobby> {
  const begin_ms = performance.now()
  const [game_mode, mode] = Object.entries(config.matchmaker!.game_modes)[0]!
  const progress = new Progress(terminal, new CheckWatch(mode.ready_deadline_ms !== undefined))
  let body: { game_mode?: string; lobby_id?: string; wait_ms: number } = { game_mode, wait_ms: FIRST_WAIT_MS }
  for (let calls = 1; calls <= CALLS_MAX; calls++) {
    const report = await callCheck(session, params, body, words, progress)
    const { lobby_id } = report
    if (report.is_ready) return { lobby_id, duration_ms: performance.now() - begin_ms }
    body = { lobby_id, wait_ms: WAIT_MS }
    if (!progress.show(report)) continue
    await session.client.call(deleteMatchmakerLobby, { params: { game_id: params.game_id, lobby_id }, signal: ALWAYS })
    throw tooSlow(report, words, progress)
  }
  throw new Error(`a check of a version did not end within ${CALLS_MAX} calls`)
}

/** Prints what is new since the last report, so that each line of the log is there once. */
class Progress {
  readonly #terminal: Terminal
  readonly #watch: CheckWatch
  #message = ''

  constructor(terminal: Terminal, watch: CheckWatch) {
    this.#terminal = terminal
    this.#watch = watch
  }

  /** Returns whether to give up. */
  show(report: Report): boolean {
    const { message } = report
    if (message !== this.#message) this.#terminal.note(`waiting for the first lobby: ${message}`)
    this.#message = message
    const { new_lines, is_over } = this.#watch.read(report, performance.now())
    for (const line of new_lines.slice(-LOG_LINES_MAX)) this.#terminal.note(`  log: ${visibleText(line)}`)
    return is_over
  }

  /** The details of a failure. A program reads them from the failure alone, so there they are complete. */
  detailsOf(log_lines: readonly string[]): { path: string; message: string }[] {
    const lines = this.#terminal.is_json ? log_lines : this.#watch.newLinesOf(log_lines)
    return lines.slice(-LOG_LINES_MAX).map((line) => ({ path: 'log', message: visibleText(line) }))
  }
}

async function callCheck(
  session: Session,
  params: Omit<CheckedVersion, 'config'>,
  body: { lobby_id?: string; wait_ms: number },
  words: Words,
  progress: Progress,
): Promise<Report> {
  try {
    return await session.client.call(checkMatchmakerVersion, { params, body })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (NO_ROOM.has(error.code)) throw notChecked(error, words)
    throw error.code === 'MATCHMAKER_LOBBY_STOPPED' ? failedStart(error, words, progress) : error
  }
}

function notChecked(error: ApiError, { version, stays }: Words): Failure {
  return new Failure(`Version ${version} cannot be checked before the switch: ${error.message} ${stays}`, {
    remedy: 'Deploy without the check: muster deploy --no-check. Or deploy again when a lobby has ended.',
    ...rayOf(error),
    cause: error,
  })
}

function failedStart(error: ApiError, { version, stays }: Words, progress: Progress): Failure {
  const { log_lines = [] } = error.metadata as { log_lines?: readonly string[] }
  const is_late = error.metadata.exit_reason === 'never_ready'
  return new Failure(`The first lobby of version ${version} did not start: ${error.message} ${stays}`, {
    exit_code: is_late ? EXIT.timed_out : EXIT.failed,
    details: progress.detailsOf(log_lines),
    remedy: REMEDY,
    ...rayOf(error),
    cause: error,
  })
}

function tooSlow({ message, log_lines }: Report, { version, stays }: Words, progress: Progress): Failure {
  const within = `within ${GIVE_UP_MS / 1000} s of its start`
  return new Failure(`The first lobby of version ${version} was not ready ${within}. ${message} ${stays}`, {
    exit_code: EXIT.timed_out,
    details: progress.detailsOf(log_lines),
    remedy: `${REMEDY} ${SLOW_SERVER_REMEDY}`,
  })
}

const REMEDY = 'Correct the server and deploy again. Without this check: muster deploy --no-check.'

const rayOf = ({ ray_id }: ApiError): { ray_id?: string } => (ray_id === undefined ? {} : { ray_id })
