// Servers that have written nothing. Most runtimes collect output in a buffer when it goes to a pipe and not to a terminal, so
// a developer sees an empty log of a server that writes a lot. A line of the platform in that log says so, once for a run.
import type { Context } from '../context.ts'
import { createPoller, type Poller } from '../database/poller.ts'
import { LOG_STREAMS } from '../lobby-logs/files.ts'
import type { Driver } from './drivers/driver.ts'
import type { Run } from './launch.ts'

/** After the start, or after the run was taken over. */
const SILENT_MS = 10_000
/** Runs checked at once; the others follow a second later. Bounds the time of one check. */
const RUNS_MAX = 8
const NOTE = `The server has written nothing in ${SILENT_MS / 1_000} s. Most runtimes hold output back that goes to no terminal: set \`terminal: true\` in the docker block of the version config, start Python with -u, or flush after each line.`

/** Woken every second. */
export function watchSilence(
  ctx: Context,
  driver: Pick<Driver, 'logs' | 'note'>,
  runs: () => readonly Pick<Run, 'handle'>[],
): Omit<Poller, 'running'> {
  /** By lobby id: the time of its check, by performance.now(); null once it was checked. */
  let checks = new Map<string, number | null>()

  async function checkAll(): Promise<void> {
    const now_ms = performance.now()
    const known = checks
    checks = new Map(
      runs().map(({ handle: { lobby_id } }) => {
        const due_ms = known.get(lobby_id)
        return [lobby_id, due_ms === undefined ? now_ms + SILENT_MS : due_ms]
      }),
    )
    const due = [...checks].flatMap(([lobby_id, due_ms]) => (due_ms !== null && due_ms <= now_ms ? [lobby_id] : []))
    for (const lobby_id of due.slice(0, RUNS_MAX)) {
      checks.set(lobby_id, null)
      if (await isSilent(lobby_id)) driver.note(lobby_id, NOTE)
    }
  }

  /** A line of the platform counts too: it says more than this one. */
  async function isSilent(lobby_id: string): Promise<boolean> {
    for (const stream of LOG_STREAMS) if ((await driver.logs(lobby_id, stream, 1)).length > 0) return false
    return true
  }

  return createPoller(ctx, { run: checkAll, failure: 'the logs of silent servers could not be read' })
}
