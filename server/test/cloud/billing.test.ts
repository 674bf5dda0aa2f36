import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { deleteGame, deleteGameNamespace, getUsage, type ResponseOf } from '@musterhost/contract'
import fc from 'fast-check'
import { idOfName } from '../../src/ids.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { detailsOf, newGame, refused } from './steps.ts'

type Run = {
  group_id: string
  game_id: string
  region: string
  cores: readonly [numerator: number, denominator: number]
  start_ms: number | null
  /** Null: it has not ended. */
  end_ms: number | null
}
type Usage = ResponseOf<typeof getUsage>

const DAY_MS = 86_400_000
const TIERS = [
  [2, 1],
  [1, 1],
  [1, 3],
  [5, 7],
  [1, 16],
  [1023, 1024],
] as const

/** The rows that a runner would have written, instead of those that are there. */
async function setRuns({ ctx }: Platform, runs: readonly Run[]): Promise<void> {
  await ctx.pool.query('delete from lobby_runs')
  for (const { group_id, game_id, region, cores, start_ms, end_ms } of runs) {
    const { rowCount } = await ctx.pool.query(
      `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, group_id, game_id, region, cpu_cores, start_ts, exit_ts)
        values ($1, 'here', 'process', '{}', '{}', $2, $3, $4, $5, $6, $7)`,
      [
        randomUUID(),
        group_id,
        game_id,
        region,
        cores[0] / cores[1],
        start_ms && new Date(start_ms),
        end_ms && new Date(end_ms),
      ],
    )
    assert.equal(rowCount, 1)
  }
}

async function usage(platform: Platform, group_id: string, start?: number, end?: number): Promise<Usage> {
  const query = {
    ...(start === undefined ? {} : { query_start_ts: new Date(start).toISOString() }),
    ...(end === undefined ? {} : { query_end_ts: String(end) }),
  }
  return platform.client.call(getUsage, { params: { group_id }, query })
}

/** By hand: a number of 1/(2^10 * 3 * 7) core milliseconds for each game and region, exact. */
const UNIT = 1024n * 3n * 7n
function plainUsage(runs: readonly Run[], group_id: string, start: number, end: number): Map<string, bigint> {
  const units = new Map<string, bigint>()
  for (const run of runs) {
    if (run.group_id !== group_id || run.start_ms === null) continue
    const ms = Math.min(run.end_ms ?? end, end) - Math.max(run.start_ms, start)
    const key = `${run.game_id} ${idOfName(run.region)}`
    if (ms <= 0) continue
    const used = (BigInt(ms) * BigInt(run.cores[0]) * UNIT) / BigInt(run.cores[1])
    units.set(key, (units.get(key) ?? 0n) + used)
  }
  return units
}

function uptimes({ games }: Usage): Map<string, number> {
  return new Map(
    games.flatMap(({ game_id, regions }) =>
      regions.map(({ region_id, uptime }): [string, number] => [`${game_id} ${region_id}`, uptime]),
    ),
  )
}

test('what the lobbies of a group used', async (t) => {
  const platform = await startPlatform(t, { roles: 'api' })
  const { ctx, client } = platform
  const [ours, theirs] = [await newGame(platform), await newGame(platform)]
  const run = (members: Partial<Run>): Run => ({
    group_id: ours.group_id,
    game_id: ours.game_id,
    region: 'local',
    cores: [1, 1],
    start_ms: null,
    end_ms: null,
    ...members,
  })

  await t.test('every window says what its part of each run was; adjacent ones add up to the whole', async () => {
    const origin = Math.floor(ctx.now()) - 60 * DAY_MS
    const moment = fc.integer({ min: 0, max: 50 * DAY_MS }).map((ms) => origin + ms)
    const runs = fc.array(
      fc.record({
        game: fc.constantFrom(ours, theirs),
        game_id: fc.constantFrom(ours.game_id, theirs.game_id),
        region: fc.constantFrom('local', 'gone'),
        cores: fc.constantFrom(...TIERS),
        start_ms: fc.option(moment, { freq: 10 }),
        length_ms: fc.option(fc.oneof(fc.nat(5), fc.nat(30 * DAY_MS)), { freq: 5 }),
      }),
      { maxLength: 12 },
    )
    const cuts = fc.array(moment, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(runs, cuts, async (drawn, drawn_cuts) => {
        const rows = drawn.map(({ game, length_ms, ...rest }): Run => {
          const end_ms = rest.start_ms === null || length_ms === null ? null : rest.start_ms + length_ms
          return { group_id: game.group_id, ...rest, end_ms }
        })
        await setRuns(platform, rows)
        const [first, last] = [origin - DAY_MS, origin + 55 * DAY_MS]
        const edges = [first, ...drawn_cuts.sort((a, b) => a - b), last]
        const sums = new Map<string, number>()
        for (const [index, end] of edges.entries()) {
          const start = edges[index - 1]
          if (start === undefined) continue
          const said = uptimes(await usage(platform, ours.group_id, start, end))
          const exact = plainUsage(rows, ours.group_id, start, end)
          assert.deepEqual([...said.keys()].sort(), [...exact.keys()].sort())
          for (const [key, ms] of said) {
            assert.equal(BigInt(ms), (2n * exact.get(key)! + UNIT) / (2n * UNIT), key)
            sums.set(key, (sums.get(key) ?? 0) + ms)
          }
        }
        const whole = uptimes(await usage(platform, ours.group_id, first, last))
        assert.deepEqual([...sums.keys()].sort(), [...whole.keys()].sort())
        // Each window is rounded by half a millisecond at most.
        for (const [key, ms] of whole) assert.ok(Math.abs(ms - sums.get(key)!) <= edges.length / 2, key)
      }),
      { numRuns: 60 },
    )
  })

  await t.test('without a window it is the calendar month, and what runs counts until now', async () => {
    // The middle of a month, so that now is in the same one.
    const now = new Date(ctx.now())
    const middle = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 15, 12)
    platform.advance(middle - ctx.now())
    const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
    await setRuns(platform, [
      run({ start_ms: month - 5 * DAY_MS, end_ms: month + 1_000 }),
      run({ start_ms: middle - 10_000, cores: [1, 2] }),
    ])
    const before = ctx.now()
    const [said] = uptimes(await usage(platform, ours.group_id)).values()
    const after = ctx.now()
    const at = (ms: number): number => 1_000 + (10_000 + ms - middle) / 2
    assert.ok(said! >= Math.floor(at(before)) && said! <= Math.ceil(at(after)), `${said}`)
    const last_month = uptimes(await usage(platform, ours.group_id, undefined, month))
    assert.deepEqual([...last_month.values()], [5 * DAY_MS], 'the month that ends then')
    const future = await usage(platform, ours.group_id, middle + 20 * DAY_MS, middle + 30 * DAY_MS)
    assert.deepEqual(future, { games: [], is_cut: false }, 'future usage is not known')
    const none = await usage(platform, ours.group_id, middle - 1, middle - 1)
    assert.deepEqual(none, { games: [], is_cut: false })
  })

  await t.test('what is no window is refused, with what is wrong', async () => {
    const wrong: [Record<string, string>, string[], string][] = [
      [{ query_start_ts: 'yesterday' }, ['query', 'query_start_ts'], 'invalid'],
      [{ query_start_ts: '2026-02-30T00:00:00Z' }, ['query', 'query_start_ts'], 'invalid'],
      [{ query_end_ts: '1790000000' }, ['query', 'query_end_ts'], 'invalid'],
      [
        { query_start_ts: '2026-02-02T00:00:00Z', query_end_ts: '2026-02-01T00:00:00Z' },
        ['query', 'query_end_ts'],
        'too_low',
      ],
      [{ query_start_ts: '1926-02-02T00:00:00Z' }, ['query', 'query_start_ts'], 'too_low'],
      [{ query_start: '2026-02-02T00:00:00Z' }, ['query', 'query_start'], 'unknown'],
    ]
    for (const [query, path, reason] of wrong) {
      const call = client.call(getUsage, { params: { group_id: ours.group_id }, query })
      const error = await refused('VALIDATION_ERROR', call)
      assert.deepEqual(
        detailsOf(error).map((detail) => [detail.path, detail.reason]),
        [[path, reason]],
      )
    }
  })

  await t.test('a deleted namespace and a deleted game still count, for the group that had them', async () => {
    const start_ms = ctx.now() - 50_000
    await setRuns(platform, [run({ start_ms, end_ms: start_ms + 7_000 })])
    const { game_id } = ours
    const answer = [...uptimes(await usage(platform, ours.group_id, start_ms, ctx.now())).entries()]
    assert.deepEqual(answer, [[`${game_id} ${idOfName('local')}`, 7_000]])
    await client.call(deleteGameNamespace, { params: { game_id, namespace_id: ours.prod_id } })
    await client.call(deleteGame, { params: { game_id } })
    assert.deepEqual([...uptimes(await usage(platform, ours.group_id, start_ms, ctx.now())).entries()], answer)
  })
})

test('where regions have prices the usage says what it costs, to the millionth', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'muster-prices-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'muster.toml')
  const region = (name: string, price: string): string =>
    `[[regions]]\nname = "${name}"\ndisplay_name = "${name}"\nlatitude = 0\nlongitude = 0\n${price}\n`
  writeFileSync(file, `currency = "EUR"\n${region('fra', 'price_per_core_hour = 0.042')}${region('own', '')}`)
  const platform = await startPlatform(t, { roles: 'api', env: { MUSTER_CONFIG: file } })
  const { group_id, game_id } = await newGame(platform)
  const end_ms = platform.ctx.now() - 1_000
  const run = { group_id, game_id, cores: [1, 4], start_ms: end_ms - 10 * 3_600_000, end_ms } as const
  await setRuns(platform, [
    { ...run, region: 'fra' },
    { ...run, region: 'own' },
  ])
  const uptime = 2.5 * 3_600_000
  assert.deepEqual(await usage(platform, group_id, end_ms - DAY_MS, end_ms), {
    games: [
      {
        game_id,
        regions: [
          { region_id: idOfName('fra'), uptime, cost_micros: 105_000 },
          { region_id: idOfName('own'), uptime },
        ],
      },
    ],
    is_cut: false,
    currency: 'EUR',
  })
})
