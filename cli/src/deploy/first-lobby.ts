// Waits for the first lobby of a deploy that was not checked before the switch (check.ts). Where the version keeps idle
// lobbies, the platform starts one ahead. Elsewhere this asks for a seat as a game's backend does, and gives the seat back:
// the lobby ends when it stays empty. So a deploy that succeeds has shown that its server starts.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  deleteMatchmakerLobbyPlayer,
  explainRay,
  findLobby,
  getAnalyticsMatchmakerLive,
  getLobbyLogs,
  type LogsLobbySummary,
  listMatchmakerLobbyPlayers,
  listNamespaceLobbies,
  type VersionConfig,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import { visibleText } from '@musterhost/contract/visible-text'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { withBackend } from '../temporary-token.ts'
import type { Terminal } from '../terminal.ts'

/** The wait for a lobby that the platform starts ahead. */
const WAIT_MS_MAX = 300_000
const POLL_MS = 250
/** Lobbies that ended without being ready, after which the wait is over. */
const FAILED_STARTS_MAX = 3
/** Polls between two checks of lobbies that ended. */
const ENDED_EVERY_POLLS = 4
/** Requests for a seat while the platform says that the server still starts. Each waits up to 50 s. */
const FINDS_MAX = 6
/** Lines of the server's log in a failure. */
const LOG_LINES_MAX = 10
/** Exit code that the platform reports for a lobby that never had a process, or whose exit code is unknown. */
const UNKNOWN_EXIT_CODE = -1
const GO_BACK = 'The version is deployed. Correct the server and deploy again, or go back: muster rollback'
/** Address reserved for documentation (RFC 5737). No player has it, so the request counts for no player's limits. */
const PROBE_ADDRESS = '192.0.2.1'

export type Deployed = { game_id: string; namespace_id: string; version_id: string; config: VersionConfig }
/** `lobby_id` null: no lobby can be requested, `reason` says why. */
export type FirstLobby = { lobby_id: string; duration_ms: number } | { lobby_id: null; reason: string }

/** Throws a Failure when the server fails (exit code 1), or is not ready in time (exit code 4). */
export async function waitForFirstLobby(terminal: Terminal, session: Session, deployed: Deployed): Promise<FirstLobby> {
  const begin_ms = performance.now()
  if (keepsIdleLobbies(deployed.config)) {
    const lobby_id = await waitForIdleLobby(terminal, session, deployed)
    return { lobby_id, duration_ms: performance.now() - begin_ms }
  }
  const game_mode = findableGameMode(deployed.config)
  if (game_mode === null) return { lobby_id: null, reason: 'no game mode lets a backend request a seat' }
  const lobby_id = await withBackend(terminal, session, deployed.game_id, ({ client: backend }) =>
    requestLobby(terminal, { session, backend, deployed, game_mode }),
  )
  return { lobby_id, duration_ms: performance.now() - begin_ms }
}

function keepsIdleLobbies({ matchmaker }: VersionConfig): boolean {
  if (matchmaker === undefined) return false
  const { game_modes, idle_lobbies } = matchmaker
  return Object.values(game_modes).some((mode) => (mode.idle_lobbies ?? idle_lobbies)?.min)
}

/** A game mode whose find needs no player: enabled, without identities and without the game's own verification. */
function findableGameMode({ matchmaker }: VersionConfig): string | null {
  for (const [name, { actions }] of Object.entries(matchmaker?.game_modes ?? {})) {
    const { enabled = true, identity_requirement = 'none', verification_config } = actions?.find ?? {}
    if (enabled && identity_requirement === 'none' && verification_config === undefined) return name
  }
  return null
}

async function waitForIdleLobby(terminal: Terminal, session: Session, deployed: Deployed): Promise<string> {
  const params = { game_id: deployed.game_id, namespace_id: deployed.namespace_id }
  const end_ms = performance.now() + WAIT_MS_MAX
  const before = new Set((await lobbiesOf(session, params)).map(({ lobby_id }) => lobby_id))
  for (let polls = 0; performance.now() < end_ms; polls++) {
    if (polls % ENDED_EVERY_POLLS === 0) await requireStarts(session, params, before)
    const { lobbies } = await session.client.call(getAnalyticsMatchmakerLive, { params })
    const ready = lobbies.find(({ is_outdated, is_ready }) => is_ready && !is_outdated)
    if (ready !== undefined) return ready.lobby_id
    await sleep(POLL_MS, undefined, { signal: terminal.signal })
  }
  throw new Failure(`No lobby of the new version was ready within ${WAIT_MS_MAX / 1000} s.`, {
    exit_code: EXIT.timed_out,
    remedy: 'See what its server writes: muster logs. Go back: muster rollback',
  })
}

type NamespaceParams = { game_id: string; namespace_id: string }

async function lobbiesOf(session: Session, params: NamespaceParams): Promise<LogsLobbySummary[]> {
  return (await session.client.call(listNamespaceLobbies, { params, query: {} })).lobbies
}

/**
 * Throws a Failure after several lobbies ended without being ready. Lobbies that are not in `before` began after the switch,
 * so they are of the new version.
 */
async function requireStarts(session: Session, params: NamespaceParams, before: ReadonlySet<string>): Promise<void> {
  const ended = (await lobbiesOf(session, params)).filter(
    ({ lobby_id, ready_ts, status }) => !before.has(lobby_id) && ready_ts === undefined && status.stopped !== undefined,
  )
  const [newest] = ended
  if (newest === undefined || ended.length < FAILED_STARTS_MAX) return
  const { exit_code, exit_reason: reason = 'exit' } = newest.status.stopped!
  const why = reason === 'exit' ? '' : ` (${reason})`
  const how = exit_code === UNKNOWN_EXIT_CODE ? '' : ` The last one had exit code ${exit_code}${why}.`
  const log_params = { game_id: params.game_id, lobby_id: newest.lobby_id }
  const logs = await Promise.all(
    (['std_out', 'std_err'] as const).map((stream) =>
      session.client.call(getLobbyLogs, { params: log_params, query: { stream, format: 'text' } }),
    ),
  )
  const lines = logs.flatMap((log) => log.lines.map((text, index) => ({ text, ts: log.timestamps[index] ?? '' })))
  const last = lines.toSorted((one, other) => one.ts.localeCompare(other.ts)).slice(-LOG_LINES_MAX)
  throw new Failure(`${ended.length} lobbies of the new version ended before they were ready.${how}`, {
    exit_code: EXIT.failed,
    details: last.map(({ text }) => ({ path: 'log', message: visibleText(text) })),
    remedy: GO_BACK,
  })
}

/** What is cleaned up is cleaned up after Ctrl-C too. */
const ALWAYS = new AbortController().signal

type LobbyRequest = { session: Session; backend: Client; deployed: Deployed; game_mode: string }

async function requestLobby(terminal: Terminal, request: LobbyRequest): Promise<string> {
  const { session, backend, deployed, game_mode } = request
  const { game_id, namespace_id } = deployed
  const body = { game_modes: [game_mode], namespace_id, clients: [{ address: PROBE_ADDRESS }] }
  for (let attempt = 1; ; attempt++) {
    try {
      const { lobby } = await backend.call(findLobby, { body })
      await giveSeatBack(session, game_id, lobby.lobby_id)
      return lobby.lobby_id
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      // It still starts: an image is large, or the machine is busy.
      const is_starting = error.code === 'MATCHMAKER_LOBBY_NOT_STARTED'
      if (is_starting && attempt < FINDS_MAX && !terminal.signal.aborted) continue
      throw await failedStart(session, error)
    }
  }
}

/** The seat of this command is the only one, or it expires: a player's seat is never taken. */
export async function giveSeatBack(session: Session, game_id: string, lobby_id: string): Promise<void> {
  const params = { game_id, lobby_id }
  const { players } = await session.client.call(listMatchmakerLobbyPlayers, { params })
  const [only, ...others] = players
  if (only === undefined || others.length > 0 || only.connect_ts !== undefined) return
  const { player_id } = only
  await session.client.call(deleteMatchmakerLobbyPlayer, { params: { ...params, player_id }, signal: ALWAYS })
}

/** The explanation of the request has the exit code and the last lines of the server. */
async function failedStart(session: Session, error: ApiError): Promise<Failure> {
  const lines = error.ray_id === undefined ? [] : await logLinesOf(session, error.ray_id)
  const is_late = error.code === 'MATCHMAKER_LOBBY_NOT_STARTED'
  return new Failure(`The first lobby of the new version did not start: ${error.message}`, {
    exit_code: is_late ? EXIT.timed_out : EXIT.failed,
    details: lines.map((message) => ({ path: 'log', message })),
    remedy: GO_BACK,
    ...(error.ray_id === undefined ? {} : { ray_id: error.ray_id }),
    cause: error,
  })
}

async function logLinesOf(session: Session, ray_id: string): Promise<string[]> {
  try {
    const { explanation } = await session.client.call(explainRay, { params: { ray_id }, signal: ALWAYS })
    return (explanation.lobbies ?? []).flatMap(({ log_lines }) => log_lines).slice(-LOG_LINES_MAX)
  } catch (error) {
    // Without an explanation the refusal itself is shown.
    if (error instanceof ApiError) return []
    throw error
  }
}
