// A deploy that starts a lobby of the version before the namespace is switched to it, as `muster deploy` does. When its server
// does not become ready, the namespace keeps its version. A dialog that is closed meanwhile ends the lobby.
import type { BodyOf, checkMatchmakerVersion, updateGameNamespaceVersion } from '@musterhost/contract'
import { CheckWatch, GIVE_UP_MS, SLOW_SERVER_REMEDY, withoutReportLines } from '@musterhost/contract/check-watch'
import { useEffect, useRef, useState } from 'react'
import { call, type Input } from '../../api/call.ts'
import { CallError } from '../../api/call-error.ts'
import {
  checkMatchmakerVersion as check,
  deleteMatchmakerLobby,
  deleteMatchmakerLobbyPlayer,
  getGameVersionById,
  listMatchmakerLobbyPlayers,
} from '../../api/operations.gen.ts'

/** One call of the check. After the first one the dialog says what the platform sees. */
const WAIT_MS = 2_000
/** Calls of one check: more than an hour of them, and no server may take longer to become ready. */
const CALLS_MAX = 2_000

type Deploy = Input<typeof updateGameNamespaceVersion>
type CheckBody = BodyOf<typeof checkMatchmakerVersion>

export type CheckedDeploy = {
  /** What the check waits for. Null: none runs. */
  waiting: { message: string; log_lines: readonly string[] } | null
  error: CallError | null
  /** Calls `deploy` after a check that succeeded. */
  start: (input: Deploy) => void
}

/** `name`: of the version. `deploy` shows its own failure. */
export function useCheckedDeploy(name: string, deploy: (input: Deploy) => Promise<unknown>): CheckedDeploy {
  const [waiting, setWaiting] = useState<CheckedDeploy['waiting']>(null)
  const [error, setError] = useState<CallError | null>(null)
  const ending = useRef(new AbortController())
  useEffect(() => {
    ending.current = new AbortController()
    return () => ending.current.abort()
  }, [])

  async function run(input: Deploy, signal: AbortSignal): Promise<void> {
    setError(null)
    setWaiting({ message: '', log_lines: [] })
    try {
      const lobby_id = await waitForServer(input, name, signal, setWaiting)
      // The dialog closes after a deploy.
      await deploy(input).catch(() => undefined)
      if (lobby_id !== null) await giveSeatBack(input.params.game_id, lobby_id).catch(ignoreRefusal)
    } catch (failure) {
      if (signal.aborted) return
      if (!(failure instanceof CallError)) throw failure
      setError(failure)
    } finally {
      if (!signal.aborted) setWaiting(null)
    }
  }
  return { waiting, error, start: (input) => void run(input, ending.current.signal) }
}

/** The seat of the check expires otherwise, and keeps the lobby until then. */
async function giveSeatBack(game_id: string, lobby_id: string): Promise<void> {
  const params = { game_id, lobby_id }
  const { players } = await call(listMatchmakerLobbyPlayers, { params })
  const [only, ...others] = players
  if (only === undefined || others.length > 0 || only.connect_ts !== undefined) return
  await call(deleteMatchmakerLobbyPlayer, { params: { ...params, player_id: only.player_id } })
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof CallError)) throw error
}

/** Returns the lobby; null: the version has none. Throws a CallError when its server fails, or is not ready in time. */
async function waitForServer(
  { params: { game_id, namespace_id }, body: { version_id } }: Deploy,
  name: string,
  signal: AbortSignal,
  show: (waiting: NonNullable<CheckedDeploy['waiting']>) => void,
): Promise<string | null> {
  const { version } = await call(getGameVersionById, { params: { game_id, version_id } }, signal)
  const [mode] = Object.values(version.config.matchmaker?.game_modes ?? {})
  if (mode === undefined) return null
  const watch = new CheckWatch(mode.ready_deadline_ms !== undefined)
  let body: CheckBody = { wait_ms: WAIT_MS }
  for (let calls = 1; calls <= CALLS_MAX; calls++) {
    const report = await call(check, { params: { game_id, namespace_id, version_id }, body }, signal)
    const { lobby_id, message } = report
    if (report.is_ready) return lobby_id
    const log_lines = withoutReportLines(report.log_lines)
    show({ message, log_lines })
    body = { lobby_id, wait_ms: WAIT_MS }
    if (!watch.read(report, performance.now()).is_over) continue
    await call(deleteMatchmakerLobby, { params: { game_id, lobby_id } }).catch(ignoreRefusal)
    const reason = `${tooSlow(name)} ${message} ${SLOW_SERVER_REMEDY}`
    throw new CallError('MATCHMAKER_LOBBY_STOPPED', reason, { metadata: { log_lines } })
  }
  throw new Error(`a check of a version did not end within ${CALLS_MAX} calls`)
}

function tooSlow(name: string): string {
  return `The first lobby of ${name} was not ready within ${GIVE_UP_MS / 1000} s of its start.`
}
