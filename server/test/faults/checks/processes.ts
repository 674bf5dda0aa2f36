// Law L6: without load, every living lobby has one process and one open run, and there is no other process or open run. And
// no lobby that was ready ended because a part of the platform was killed.
import { readdirSync, readFileSync } from 'node:fs'
import type { ClientBase } from 'pg'
import { until } from '../../support/until.ts'
import type { FaultyPlatform } from '../platform.ts'
import type { Findings } from './findings.ts'

const PROC = '/proc'
/** The argv of a lobby's server, which differs from those of its monitors. */
const SERVER_COMMAND = 'node server.mjs'

export async function checkProcesses(platform: FaultyPlatform, findings: Findings): Promise<void> {
  let last = ''
  const agree = async (): Promise<boolean> => {
    const { lobbies, runs } = await platform.withDatabase(readLobbies)
    const processes = serversOf(platform)
    last = `lobbies ${[...lobbies].toSorted()}\nruns ${[...runs].toSorted()}\nprocesses ${processes.toSorted()}`
    const is_each_once = new Set(processes).size === processes.length && processes.length === lobbies.size
    return is_each_once && lobbies.symmetricDifference(runs).size === 0 && processes.every((id) => lobbies.has(id))
  }
  try {
    await until('lobbies, runs and processes to be the same', agree)
  } catch (error) {
    findings.add(`L6: ${(error as Error).message}\n${last}`)
  }
}

/** Runs end for reasons that the platform decided, or never became ready. */
export async function checkRunEnds(db: ClientBase, findings: Findings): Promise<void> {
  const { rows } = await db.query<{ lobby_id: string; stop_reason: string; exit_reason: string | null }>(
    `select l.lobby_id, l.stop_reason, r.exit_reason from lobbies l left join lobby_runs r on r.lobby_id = l.lobby_id
      where l.ready_ts is not null and l.stop_reason in ('exited', 'never_ready')`,
  )
  for (const { lobby_id, stop_reason, exit_reason } of rows) {
    findings.add(`lobby ${lobby_id} was ready and stopped as ${stop_reason} (its run: ${exit_reason})`)
  }
}

async function readLobbies(db: ClientBase): Promise<{ lobbies: Set<string>; runs: Set<string> }> {
  const lobbies = await db.query<{ lobby_id: string }>('select lobby_id from lobbies where stop_ts is null')
  const runs = await db.query<{ lobby_id: string }>('select lobby_id from lobby_runs where exit_ts is null')
  const idsOf = (rows: { lobby_id: string }[]): Set<string> => new Set(rows.map(({ lobby_id }) => lobby_id))
  return { lobbies: idsOf(lobbies.rows), runs: idsOf(runs.rows) }
}

/**
 * The lobby of each server process that this platform's runner started. A lobby with a network of its own reaches the
 * platform at another address than the others, at the same port.
 */
export function serversOf({ settings }: FaultyPlatform): string[] {
  const address = new RegExp(`^PLATFORM_API_URL=http://[^/]+:${settings.MUSTER_LOBBY_API_PORT}$`)
  return readdirSync(PROC).flatMap((name) => {
    if (!/^\d+$/.test(name) || readProc(name, 'cmdline').join(' ').trim() !== SERVER_COMMAND) return []
    const environment = readProc(name, 'environ')
    if (!environment.some((line) => address.test(line))) return []
    return environment.flatMap((line) => line.match(/^PLATFORM_LOBBY_ID=(.*)$/)?.[1] ?? [])
  })
}

/** Empty for a process that has ended. */
function readProc(pid: string, file: string): string[] {
  try {
    return readFileSync(`${PROC}/${pid}/${file}`, 'utf8').split('\0')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return []
    throw error
  }
}
