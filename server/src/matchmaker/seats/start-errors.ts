// The error of a request for which no lobby became ready: how the server of the last one ended, and where the explanation
// is. The last lines of its log are only for the game's backend: a player's client must not see them.
import { ApiError, type ErrorMetadata, type ReadyCheck, uncalledRemedy, variableOfPort } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { exitCodeOf } from '../../database/exit-code.ts'
import type { Listening, RunEnd } from '../../database/schema.ts'
import { logTail } from '../../lobby-logs/tail.ts'
import type { FailedBefore } from '../book/commands.ts'
import type { Books } from '../shards/books.ts'
import type { Requester } from './requester.ts'

/** `ray_id` null: the request has no explanation. */
type Asking = Pick<Requester, 'namespace_id' | 'is_backend'> & { ray_id: string | null }
type StartContext = Pick<Context, 'db' | 'lobby_logs' | 'log'> & { books: Pick<Books, 'lobby' | 'capacity'> }

/** The columns of a run that an error is made of. */
type Run = RunEnd & { log_tail: readonly string[] | null; listening: Listening | null; ready_check: ReadyCheck }

/** Exit codes above it stand for signals. */
const SIGNAL_CODE = 128

/** Adds to an error that names a lobby how the lobby failed to start. All other errors are returned unchanged. */
export async function startError(
  ctx: StartContext,
  asking: Asking & Pick<Requester, 'isGone'>,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ApiError) || asking.isGone()) return error
  try {
    return await explained(ctx, asking, error)
  } catch (cause) {
    ctx.log.warn({ err: cause }, 'the run of a lobby that did not start could not be read')
    return error
  }
}

async function explained(ctx: StartContext, asking: Asking, error: ApiError): Promise<ApiError> {
  const { code, metadata, retry_after_s } = error
  const { lobby_id } = metadata
  if (typeof lobby_id !== 'string') return error
  if (code === 'MATCHMAKER_LOBBY_NOT_STARTED') return notStarted(ctx, asking, lobby_id, retry_after_s)
  if (code !== 'MATCHMAKER_LOBBY_STOPPED') return error
  return isPaused(metadata) ? paused(ctx, asking, metadata) : stopped(ctx, asking, lobby_id)
}

const isPaused = (metadata: ErrorMetadata): metadata is FailedBefore => 'pause_ms' in metadata

/** What the platform sees of a lobby whose server is not ready, for the game's developers. */
export type StartProgress = {
  is_started: boolean
  /** Whether its server listens at any port. */
  is_listening: boolean
  message: string
  log_lines: readonly string[]
}

export async function startProgress(ctx: StartContext, namespace_id: string, lobby_id: string): Promise<StartProgress> {
  const run = await readRun(ctx, lobby_id)
  const asking = developerOf(namespace_id)
  const { log_lines = [] } = run === null ? {} : await logLines(ctx, asking, lobby_id, run)
  const { open = [], others = null } = run?.listening ?? {}
  const is_listening = open.length + (others?.length ?? 0) > 0
  const message = run !== null && run.listening === null ? 'Its server runs.' : whereListening(run).trim()
  return { is_started: run !== null, is_listening, message, log_lines }
}

/** How a lobby ended whose server was not ready, for the game's developers. */
export function failedStart(ctx: StartContext, namespace_id: string, lobby_id: string): Promise<ApiError> {
  return stopped(ctx, developerOf(namespace_id), lobby_id)
}

const developerOf = (namespace_id: string): Asking => ({ namespace_id, is_backend: true, ray_id: null })

async function stopped(ctx: StartContext, asking: Asking, lobby_id: string): Promise<ApiError> {
  const run = await readRun(ctx, lobby_id)
  const end = endOf(ctx, asking, lobby_id, run)
  const where = end.exit_reason === 'never_ready' ? whereListening(run) : ''
  const message = `The lobby ended before it was ready: ${sentenceOf(end)}${where}${whereExplained(asking)}`
  const log_lines = await logLines(ctx, asking, lobby_id, run)
  return new ApiError('MATCHMAKER_LOBBY_STOPPED', { lobby_id, ...end, ...log_lines }, { message })
}

/** No query for a player: while a version is paused, every request of its players comes here. */
async function paused(ctx: StartContext, asking: Asking, failed: FailedBefore): Promise<ApiError> {
  const { lobby_id, failure_count, pause_ms } = failed
  const retry_after_s = Math.ceil(pause_ms / 1_000)
  const end = { exit_reason: failed.exit_reason, exit_code: exitCodeOf(failed) }
  const message = `The last ${failure_count} starts of this version failed, so no lobby is started for ${retry_after_s} s. Of the last one ${sentenceOf(end)}${whereExplained(asking)}`
  const log_lines = asking.is_backend ? await logLines(ctx, asking, lobby_id, await readRun(ctx, lobby_id)) : {}
  return new ApiError(
    'MATCHMAKER_LOBBY_STOPPED',
    { lobby_id, ...end, failed_starts: failure_count, ...log_lines },
    { message, retry_after_s },
  )
}

async function notStarted(
  ctx: StartContext,
  asking: Asking,
  lobby_id: string,
  retry_after_s: number | undefined,
): Promise<ApiError> {
  const run = await readRun(ctx, lobby_id)
  const where = `${silentNode(ctx, asking, lobby_id)}${whereListening(run)}`
  const message = `The lobby did not become ready in time.${where}${whereExplained(asking)}`
  const log_lines = await logLines(ctx, asking, lobby_id, run)
  const options = { message, ...(retry_after_s === undefined ? {} : { retry_after_s }) }
  return new ApiError('MATCHMAKER_LOBBY_NOT_STARTED', { lobby_id, ...log_lines }, options)
}

/** A node that is away starts nothing. Only the game's backend learns its name. Begins with a space, or is empty. */
function silentNode({ books }: StartContext, { namespace_id, is_backend }: Asking, lobby_id: string): string {
  const node_id = books.lobby(namespace_id, lobby_id)?.node_id ?? null
  if (node_id === null || !books.capacity.isAway(node_id)) return ''
  const node = is_backend ? `node ${node_id}` : 'node'
  return ` Its ${node} does not report, and no other node is open.${is_backend ? ' See: muster nodes.' : ''}`
}

async function readRun(ctx: StartContext, lobby_id: string): Promise<Run | null> {
  const run = await ctx.db
    .selectFrom('lobby_runs')
    .select(['exit_reason', 'exit_code', 'log_tail', 'listening', 'ready_check'])
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirst()
  return run ?? null
}

/** For a server that was not ready in time the reason is `never_ready`, however its process ended afterwards. */
function endOf({ books }: StartContext, { namespace_id }: Asking, lobby_id: string, run: Run | null): RunEnd {
  const stop_reason = books.lobby(namespace_id, lobby_id)?.stop_reason ?? null
  const by_platform = stop_reason === 'exited' ? null : stop_reason
  const exit_reason = by_platform ?? run?.exit_reason ?? stop_reason
  return { exit_reason, exit_code: exitCodeOf({ exit_reason, exit_code: run?.exit_code ?? null }) }
}

/** Begins in lower case, and ends with a full stop. */
function sentenceOf({ exit_reason, exit_code }: RunEnd): string {
  switch (exit_reason) {
    case 'exit':
      return `its server exited with code ${exit_code}.`
    case 'signal':
      return `signal ${Number(exit_code) - SIGNAL_CODE} ended its server.`
    case 'oom':
      return 'its server used more memory than its tier has.'
    case 'pids':
      return 'its server started more processes than a lobby may have.'
    case 'disk':
      return 'its server failed, and its disk was full.'
    case 'no_such_file':
      return 'the program that it starts is not there.'
    case 'not_executable':
      return 'the program that it starts cannot be executed on this machine.'
    case 'missing_library':
      return 'a library or an interpreter of its program is missing.'
    case 'build_damaged':
      return 'the stored build is damaged.'
    case 'no_build':
      return 'its build cannot be unpacked.'
    case 'no_network':
      return 'a port of its server has a fixed number, and lobbies of its machine have no network of their own.'
    case 'never_ready':
      return 'its server was not ready in time.'
    case null:
      return 'its seat was taken back.'
    default:
      return `the reason is ${exit_reason}.`
  }
}

/** Where a server that is not ready listens. Begins with a space, or is empty. */
function whereListening(run: Run | null): string {
  if (run === null) return ' Its server has not been started yet.'
  const line = lineMissing(run.ready_check)
  if (run.listening === null) return line
  const { open, shut, others, remedy } = run.listening
  const elsewhere =
    others === null ? '' : ` It listens on ${others.length === 0 ? 'no other port' : others.join(', ')}.`
  const advice = remedy === undefined ? '' : ` ${remedy}`
  if (shut.length === 0) {
    const uncalled = run.ready_check === null ? `, but did not call ready. ${uncalledRemedy(open.length > 0)}` : '.'
    return ` Its server listens on its ports (${namesOf(open)})${uncalled}${line}${elsewhere}`
  }
  const listed = open.length === 0 ? '' : `, only on ${namesOf(open)}`
  return ` Its server does not listen on ${namesOf(shut)}${listed}.${line}${elsewhere}${advice}`
}

/** Begins with a space, or is empty. */
function lineMissing(ready_check: ReadyCheck): string {
  if (ready_check === null || ready_check === 'listening') return ''
  return ` No line of its output matched ${JSON.stringify(ready_check.log)}.`
}

/** Ports by the environment variables that hold their numbers. */
function namesOf(ports: readonly string[]): string {
  return ports.length === 0 ? 'none' : ports.map((name) => `PORT_${variableOfPort(name)}`).join(', ')
}

/** Begins with a space, or is empty. */
const whereExplained = ({ ray_id }: Asking): string =>
  ray_id === null ? '' : ` For the game's developers, "muster explain ${ray_id}" has more.`

/** Nothing for players. The row of a lobby that has not ended has no lines: its log is read. */
async function logLines(
  ctx: StartContext,
  { is_backend }: Asking,
  lobby_id: string,
  run: Run | null,
): Promise<{ log_lines?: readonly string[] }> {
  if (!is_backend) return {}
  if (run?.log_tail) return { log_lines: run.log_tail }
  try {
    const read = async (...what: [stream: 'stdout' | 'stderr', lines_max: number]) =>
      (await ctx.lobby_logs.last(lobby_id, ...what)).lines
    return { log_lines: await logTail(read) }
  } catch (error) {
    ctx.log.warn({ err: error, lobby_id }, 'the log of a lobby that did not start could not be read')
    return { log_lines: [] }
  }
}
