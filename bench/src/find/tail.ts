// Measures where the late finds of a steady load spend their time. The load generator, the matchmaker, its appends to the
// journal and the disk are watched together. Each moment of a late find counts for the first of them that was late then.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { quantile, runSteadily } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats } from './rounds.ts'
import { type Span, type Stall, watchStalls } from './stalls.ts'
import type { Watch, Watched } from './watched-matchmaker.ts'

const WATCHED_MATCHMAKER = fileURLToPath(new URL('./watched-matchmaker.ts', import.meta.url))
const DISK_PROBE = fileURLToPath(new URL('./disk-probe.ts', import.meta.url))
const LOBBIES = 1_000
const PER_SECOND = 500
const SECONDS = 30
const WARM_UP_SECONDS = 5
const CONNECTIONS = 64
/** A find, an append or a disk write that takes longer is late. */
const LATE_MS = 10
const LATE_SYNC_MS = 5
const STEP_MS = 0.5

export async function run(): Promise<void> {
  const platform = await startPlatform(['api', 'matchmaker', 'edge'], {}, { matchmaker: WATCHED_MATCHMAKER })
  try {
    const game = await gameWithLobbies(platform, LOBBIES)
    const target = findTarget(platform, game)
    const options = { per_second: PER_SECOND, connections: CONNECTIONS }
    const warm = await runSteadily(target, { ...options, seconds: WARM_UP_SECONDS })
    await freeSeats(platform, game, requireSeats(warm.answers))
    const matchmaker = platform.processes.matchmaker!
    const before = await checkpoints(platform)
    matchmaker.send({ kind: 'watch' } satisfies Watch)
    const endProbe = await startProbe(platform.config.data_dir)
    const endStalls = watchStalls()
    const { latencies_ms, ends_ms, answers } = await runSteadily(target, { ...options, seconds: SECONDS })
    const stalls = endStalls()
    const syncs = await endProbe()
    const watched = await endWatch(matchmaker)
    requireSeats(answers)
    const finds = ends_ms.map((end, index) => {
      const end_ms = performance.timeOrigin + end
      return { start_ms: end_ms - latencies_ms[index]!, end_ms }
    })
    report({ finds, stalls, watched, syncs, checkpoints: (await checkpoints(platform)) - before })
  } finally {
    await platform.stop()
  }
}

async function startProbe(folder: string): Promise<() => Promise<Span[]>> {
  const probe = fork(DISK_PROBE, [folder])
  await once(probe, 'message')
  return async () => {
    probe.send('end')
    const [syncs] = (await once(probe, 'message')) as [Span[]]
    return syncs
  }
}

async function endWatch(matchmaker: ChildProcess): Promise<Watched> {
  matchmaker.send({ kind: 'report' } satisfies Watch)
  const [watched] = (await once(matchmaker, 'message')) as [Watched]
  return watched
}

async function checkpoints({ database }: BenchPlatform): Promise<number> {
  const { rows } = await database.pool.query(
    'select (num_timed + num_requested)::integer as n from pg_stat_checkpointer',
  )
  return rows[0].n
}

type Seen = { finds: Span[]; stalls: Stall[]; watched: Watched; syncs: Span[]; checkpoints: number }

function report({ finds, stalls, watched, syncs, checkpoints }: Seen): void {
  console.log(
    `\n  ${PER_SECOND} finds per second for ${SECONDS} s, ${LOBBIES} open lobbies; ${checkpoints} checkpoints`,
  )
  console.log(`  ${''.padEnd(42)}   p50    p99  p99.9    max  (ms)`)
  line('a find, from when it was due', finds.map(length))
  line('an append to the journal', watched.appends.map(length))
  line('8 KiB written and synced, beside it', syncs.map(length))
  printStalls('stalls of the load generator', stalls)
  printStalls('stalls of the matchmaker', watched.stalls)

  const late = finds.filter((find) => length(find) >= LATE_MS)
  const late_syncs = syncs.filter((sync) => length(sync) >= LATE_SYNC_MS)
  const causes: [string, readonly Span[]][] = [
    ['the load generator stood still', stalls],
    ['the matchmaker had no processor', watched.stalls.filter(isStarved)],
    ['the matchmaker was at work on something else', watched.stalls.filter((stall) => !isStarved(stall))],
    ['the journal was appended to, while the disk was late', late_syncs],
    ['the journal was appended to', watched.appends],
  ]
  const counted = new Map<string, number>()
  let total = 0
  for (const find of late) {
    for (let at = find.start_ms; at < find.end_ms; at += STEP_MS) {
      const cause = causes.find(([, spans]) => isWithin(spans, at))?.[0] ?? 'none of these'
      counted.set(cause, (counted.get(cause) ?? 0) + STEP_MS)
      total += STEP_MS
    }
  }
  const share = ((late.length / finds.length) * 100).toFixed(2)
  console.log(`\n  ${late.length} finds (${share} %) took ${LATE_MS} ms or more. Of their time:`)
  for (const [cause] of [...causes, ['none of these'] as const]) {
    const percent = total === 0 ? 0 : ((counted.get(cause) ?? 0) / total) * 100
    console.log(`  ${percent.toFixed(1).padStart(6)} %  ${cause}`)
  }
}

const length = ({ start_ms, end_ms }: Span): number => end_ms - start_ms
const isStarved = (stall: Stall): boolean => stall.waited_ms > length(stall) / 2
const isWithin = (spans: readonly Span[], at: number): boolean =>
  spans.some(({ start_ms, end_ms }) => start_ms <= at && at < end_ms)

function line(what: string, values: readonly number[]): void {
  const text = [0.5, 0.99, 0.999, 1].map((q) => quantile(values, q).toFixed(1).padStart(6)).join(' ')
  console.log(`  ${what.padEnd(42)} ${text}`)
}

function printStalls(what: string, stalls: readonly Stall[]): void {
  const sum = (values: readonly number[]): string => values.reduce((a, b) => a + b, 0).toFixed(0)
  const waited = sum(stalls.map(({ waited_ms }) => waited_ms))
  const longest = Math.max(0, ...stalls.map(length)).toFixed(1)
  console.log(
    `  ${what}: ${stalls.length}, ${sum(stalls.map(length))} ms, ${waited} of them without a processor; longest ${longest}`,
  )
}
