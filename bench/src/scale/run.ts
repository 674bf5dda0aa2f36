// Measures what docs/design/scale.md multiplies: finds per second of one matchmaker, and what a find and a whole seat write to
// PostgreSQL's write-ahead log, by the number of finds that wait at once. One append holds all that wait, so more finds at once
// write less each. The log includes the projection and the analytics, which follow within seconds.
import { setTimeout as delay } from 'node:timers/promises'
import { playerConnected, playerDisconnected } from '@musterhost/contract'
import type { Role } from '@musterhost/server/config/roles'
import { type BenchGame, lobbyClient } from '../find/games.ts'
import { findTarget, gameWithLobbies, requireSeats, type Seat } from '../find/rounds.ts'
import { median, runRound } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'

const LOBBIES = 200
const FINDS = 2_400
const ROUNDS = 3
const CONNECTIONS = [1, 8, 64, 256] as const
/** One find at a time takes long. */
const FINDS_ALONE = 600
const CALLS_AT_ONCE = 64
const COMMITS = 500
const SETTLE_MS = 6_000
const REST_MS = 20_000

type Cost = { bytes: number; commits: number }

export async function run(): Promise<void> {
  await measure(['api', 'matchmaker', 'edge'], async (platform) => {
    const game = await gameWithLobbies(platform, LOBBIES)
    await measureCommits(platform)
    let seat_count = 0
    const { bytes } = await costOf(platform, async () => {
      for (const connections of CONNECTIONS) seat_count += await measureFinds(platform, game, connections)
      await delay(REST_MS)
    })
    console.log(
      `\n  all ${seat_count} seats, with checkpoints and vacuum: ${Math.round(bytes / seat_count)} bytes each`,
    )
  })
  await measure(['api', 'matchmaker', 'runner', 'edge'])
}

/** `work` runs first. Then the roles are at rest. */
async function measure(roles: readonly Role[], work?: (platform: BenchPlatform) => Promise<void>): Promise<void> {
  const platform = await startPlatform(roles)
  try {
    await work?.(platform)
    await measureConnections(platform)
    const { bytes, commits } = await costOf(platform, () => delay(REST_MS))
    const seconds = (REST_MS + SETTLE_MS) / 1_000
    console.log(`  at rest: ${Math.round(bytes / seconds)} bytes/s, ${(commits / seconds).toFixed(1)} commits/s`)
  } finally {
    await platform.stop()
  }
}

/** The ceiling of everything that waits for its commit: one empty transaction after another. */
async function measureCommits({ database }: BenchPlatform): Promise<void> {
  const client = await database.pool.connect()
  try {
    const begin_ms = performance.now()
    for (let count = 0; count < COMMITS; count++) {
      await client.query("select pg_logical_emit_message(true, 'bench', '')")
    }
    console.log(`\n  one connection: ${Math.round((COMMITS * 1_000) / (performance.now() - begin_ms))} commits/s`)
  } finally {
    client.release()
  }
}

/**
 * Finds, and then the rest of the life of their seats. The first round, which writes whole pages, does not count. Returns the
 * number of all seats.
 */
async function measureFinds(platform: BenchPlatform, game: BenchGame, connections: number): Promise<number> {
  const count = connections === 1 ? FINDS_ALONE : FINDS
  const finds: Cost[] = []
  const lives: Cost[] = []
  const rates: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    let seats: Seat[] = []
    let rate = 0
    const find = await costOf(platform, async () => {
      const { answers, per_second } = await runRound(findTarget(platform, game), { count, connections })
      seats = requireSeats(answers)
      rate = per_second
    })
    const rest = await costOf(platform, () => playSeats(platform, game, seats))
    if (round === 0) continue
    rates.push(rate)
    finds.push(find)
    lives.push({ bytes: find.bytes + rest.bytes, commits: find.commits + rest.commits })
  }
  const each = (costs: readonly Cost[], member: keyof Cost): number => median(costs.map((cost) => cost[member] / count))
  console.log(`\n  ${connections} at once, ${count} finds, ${ROUNDS} rounds: ${Math.round(median(rates))} finds/s`)
  console.log(`  a find: ${Math.round(each(finds, 'bytes'))} bytes, ${each(finds, 'commits').toFixed(3)} commits`)
  console.log(
    `  find, connected, disconnected: ${Math.round(each(lives, 'bytes'))} bytes, ${each(lives, 'commits').toFixed(3)} commits`,
  )
  return (ROUNDS + 1) * count
}

async function playSeats(platform: BenchPlatform, { namespace_id }: BenchGame, seats: readonly Seat[]): Promise<void> {
  const clients = new Map<string, ReturnType<typeof lobbyClient>>()
  for (const operation of [playerConnected, playerDisconnected]) {
    const left = seats.values()
    const callSome = async (): Promise<void> => {
      for (const { lobby, player } of left) {
        const client = clients.get(lobby.lobby_id) ?? lobbyClient(platform, { ...lobby, namespace_id })
        clients.set(lobby.lobby_id, client)
        await client.call(operation, { body: { player_token: player.token } })
      }
    }
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, callSome))
  }
}

/** What the log and the commits grow by while `work` runs, and until the tables have followed. */
async function costOf({ database }: BenchPlatform, work: () => Promise<unknown>): Promise<Cost> {
  const read = async (): Promise<Cost> => {
    await database.pool.query('select pg_stat_force_next_flush()')
    const { rows } = await database.pool.query<{ bytes: string; commits: string }>(
      `select pg_current_wal_insert_lsn() - '0/0' as bytes, xact_commit as commits
        from pg_stat_database where datname = current_database()`,
    )
    return { bytes: Number(rows[0]!.bytes), commits: Number(rows[0]!.commits) }
  }
  const before = await read()
  await work()
  await delay(SETTLE_MS)
  const after = await read()
  return { bytes: after.bytes - before.bytes, commits: after.commits - before.commits }
}

async function measureConnections({ database }: BenchPlatform): Promise<void> {
  const { rows } = await database.pool.query<{ name: string; count: number }>(
    `select application_name as name, count(*)::integer as count from pg_stat_activity
      where datname = current_database() and application_name <> 'bench' group by 1 order by 1`,
  )
  const list = rows.map(({ name, count }) => `${name} ${count}`).join(', ')
  console.log(`\n  connections of PostgreSQL: ${list}`)
}
