import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findLobby, getGames, getUsage } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { readStat } from '../../src/node/procfs.ts'
import { isThere, processesOf, roleOf } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { type Arena, startArena } from './arena.ts'

/** What a kill may cost or add. */
const KILL_MS_MAX = 1_000
/** The platform is away for longer than all kills together may cost. */
const AWAY_MS = 6_000
/** Of the tier that the arena asks for. */
const CORES = 1 / 2

/**
 * A lobby's program, as this machine knows it. `request_ms`: of the request that started the lobby. The bill begins between
 * it and the program, when the lobby's box starts.
 */
type Life = { pid: number; request_ms: number; start_ms: number; end_ms: number | null }

const secondsUp = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])

/** The youngest process that has the lobby's id in its environment: the others are what it is started by. */
async function lifeOf(lobby_id: string, request_ms: number): Promise<Life> {
  const pid = await until(`the program of ${lobby_id}`, () => {
    const programs = processesOf(lobby_id).filter(({ command }) => /^\S*node server\/main\.js/.test(command))
    return programs.map((program) => program.pid).sort((a, b) => b - a)[0]
  })
  const ticks = Number(readStat(pid)!.start_time)
  return { pid, request_ms, start_ms: Date.now() - secondsUp() * 1_000 + ticks * 10, end_ms: null }
}

async function endLife(life: Life): Promise<void> {
  process.kill(life.pid, 'SIGKILL')
  await until('the program to be gone', () => !isThere(life.pid))
  life.end_ms = Date.now()
}

async function kill(pids: readonly number[]): Promise<void> {
  for (const pid of pids) if (isThere(pid)) process.kill(pid, 'SIGKILL')
  await until('them to be gone', () => !pids.some(isThere))
}

async function openBill(arena: Arena): Promise<(start_ms: number, end_ms: number) => Promise<number>> {
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  const client = createClient({ url, token: readFileSync(join(arena.folder, 'admin-token'), 'utf8').trim() })
  const { games } = await client.call(getGames, {})
  const group_id = games[0]!.developer.group_id
  return (start_ms, end_ms) =>
    until('the bill', async () => {
      const query = { query_start_ts: String(start_ms), query_end_ts: String(end_ms) }
      const usage = await client.call(getUsage, { params: { group_id }, query }).catch(() => null)
      return usage && { ms: usage.games.flatMap(({ regions }) => regions).reduce((sum, { uptime }) => sum + uptime, 0) }
    }).then(({ ms }) => ms)
}

test('kill -9 of the runner and of the whole platform change no bill by more than a second each', async (t: TestContext) => {
  const capacity = { MUSTER_CAPACITY_CORES: '0', MUSTER_CAPACITY_MEMORY_MB: '0' }
  const arena = await startArena(t, { deploy: ['--max-players', '1'], env: capacity })
  const bill = await openBill(arena)
  const start_ms = Date.now() - 60_000
  const lives: Life[] = []
  for (let count = 0; count < 4; count++) {
    const request_ms = Date.now()
    const seat = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
    lives.push(await lifeOf(seat.lobby.lobby_id, request_ms))
  }
  const [meanwhile, away, at_work] = [lives[0]!, lives[1]!, lives[2]!]
  let kills = 0
  const compare = async (what: string): Promise<void> => {
    const now_ms = Date.now()
    const real_ms = lives.reduce((sum, life) => sum + CORES * ((life.end_ms ?? now_ms) - life.start_ms), 0)
    const said_ms = await bill(start_ms, now_ms)
    t.diagnostic(`${what}: real ${Math.round(real_ms)} ms, billed ${said_ms} ms`)
    const starting_ms = lives.reduce((sum, life) => sum + CORES * (life.start_ms - life.request_ms), 0)
    const kills_ms = KILL_MS_MAX * Math.max(kills, 1)
    const told = `${what}: ${said_ms} for ${real_ms} ms, and ${Math.round(starting_ms)} ms for the starts`
    assert.ok(said_ms >= real_ms - kills_ms && said_ms <= real_ms + starting_ms + kills_ms, told)
  }
  await compare('before')

  const runner = await until('a runner', () => roleOf(arena.folder, 'runner'))
  await kill([runner])
  kills++
  await endLife(meanwhile)
  await until('another runner', () => roleOf(arena.folder, 'runner'))
  await compare('after the runner')

  // The supervisor first, or it would start the roles again; not the lobbies, nor who reads their output.
  const database = Number(readFileSync(join(arena.folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  const roles = processesOf(arena.folder).filter(({ command }) => / \S*main\.ts \w+$/.test(command))
  await kill([arena.started().pid, ...roles.map(({ pid }) => pid), database])
  kills++
  await endLife(away)
  await until('the platform to have been away for a while', () => Date.now() > away.end_ms! + AWAY_MS)
  await arena.startAgain()
  await compare('after the platform')

  for (const life of lives) if (life.end_ms === null && life !== at_work) await endLife(life)
  await endLife(at_work)
  // A program is gone a moment before its end is seen and written.
  const end_ms = Date.now() + KILL_MS_MAX
  await until('nothing to run', async () => Date.now() > end_ms && (await bill(end_ms, Date.now())) === 0)
  await compare('at the end')

  const whole = await bill(start_ms, end_ms)
  arena.started().kill('SIGTERM')
  await arena.startAgain()
  assert.equal(await bill(start_ms, end_ms), whole, 'told again it is the same')
  const middle = Math.round((start_ms + end_ms) / 2)
  assert.equal((await bill(start_ms, middle)) + (await bill(middle, end_ms)), whole)
})
