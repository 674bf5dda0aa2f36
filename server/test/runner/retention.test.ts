// What a runner removes, and when: rows of runs, logs, unpacked builds.
import assert from 'node:assert'
import { existsSync, readdirSync } from 'node:fs'
import { cp, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '../../src/ids.ts'
import { folderOfLobby } from '../../src/lobby-logs/local.ts'
import { unfinishedFolder } from '../../src/runner/folders/names.ts'
import { removeOldRuns } from '../../src/runner/rows.ts'
import { until } from '../support/until.ts'
import { openRunner, type RunnerFixture } from './runner-fixture.ts'

const DAY_MS = 24 * 3_600_000
const MODE = { args: ['sh', 'run'] }
const KEEPER = { run: 'exec sleep 600' }

/** Adds a run that ended `days` ago, or still runs (null). Without `lobby_id` its lobby does not exist. */
async function insertRun({ ctx }: RunnerFixture, days: number | null, lobby_id = newId(ctx.now())): Promise<string> {
  await ctx.pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, create_ts, exit_ts)
      values ($1, 'another', 'process', '{}', '{}', $2, $3)`,
    [lobby_id, new Date(ctx.now() - 900 * DAY_MS), days === null ? null : new Date(ctx.now() - days * DAY_MS)],
  )
  return lobby_id
}

async function age(path: string, days: number): Promise<void> {
  const then = new Date(Date.now() - days * DAY_MS)
  await utimes(path, then, then)
}

test('rows of runs are removed after the configured time, and never while they run or their lobby is wanted', async (t) => {
  const fixture = await openRunner(t, 'off', { MUSTER_RETENTION_RUNS_DAYS: '10' })
  const version_id = await fixture.version(KEEPER, MODE)
  const old = await insertRun(fixture, 11)
  const young = await insertRun(fixture, 9)
  const open = await insertRun(fixture, null)
  const wanted = await insertRun(fixture, 11, await fixture.lobby(version_id, { is_awake: false }))
  const runs = async () => {
    const { rows } = await fixture.ctx.pool.query<{ lobby_id: string }>('select lobby_id from lobby_runs')
    return rows.map(({ lobby_id }) => lobby_id).sort()
  }
  assert.ok((await runs()).includes(old))
  assert.strictEqual(await removeOldRuns(fixture.ctx), 1)
  assert.deepStrictEqual(await runs(), [young, open, wanted].sort())

  await fixture.unwant(wanted)
  assert.strictEqual(await removeOldRuns(fixture.ctx), 1)
  assert.deepStrictEqual(await runs(), [young, open].sort())
  const { ctx } = fixture
  const retention = { ...ctx.config.retention, runs_ms: null }
  const for_ever = { ...ctx, config: { ...ctx.config, retention }, now: () => ctx.now() + 5_000 * DAY_MS }
  assert.strictEqual(await removeOldRuns(for_ever), 0)
  assert.deepStrictEqual(await runs(), [young, open].sort())
})

test('logs are removed after the configured time, and the build of a lobby that was taken over stays', async (t) => {
  const fixture = await openRunner(t, 'off', {
    MUSTER_RETENTION_LOGS_DAYS: '3',
    MUSTER_RETENTION_BUILDS_DAYS: '5',
  })
  const first = await fixture.start()
  const ending = await fixture.version({ run: 'echo over' }, MODE)
  const [forgotten, remembered] = [await fixture.lobby(ending), await fixture.lobby(ending)]
  const living = await fixture.lobby(await fixture.version(KEEPER, MODE))
  for (const id of [forgotten, remembered]) {
    const { exit_code, exit_reason } = await fixture.run(id, 'it ends', (row) => row.exit_ts !== null)
    const stderr = await fixture.log(id, 'stderr')
    assert.deepStrictEqual([exit_code, exit_reason], [0, 'exit'], stderr.join(''))
  }
  const { handle } = await fixture.run(living, 'it starts', (row) => row.start_ts !== null)
  // The end of a run is recorded before the logger, which may still be starting, has read the last output.
  await until('the log is written', async () => (await fixture.log(remembered, 'stdout')).length > 0)
  await first.stop({ end_lobbies: false })

  const { data_dir } = fixture.ctx.config
  const { rows } = await fixture.ctx.pool.query('select build_id from lobby_runs where lobby_id = $1', [living])
  const used: string = rows[0].build_id
  const builds = join(data_dir, 'builds')
  const unused = newId(Date.now())
  await cp(join(builds, used), join(builds, unused), { recursive: true })
  // A sweep that removed both builds would remove the used one first, because the unused one is older.
  await age(join(builds, used), 6)
  await age(join(builds, unused), 7)
  const folderOf = (lobby_id: string): string => folderOfLobby(join(data_dir, 'lobbies'), lobby_id)
  await age(join(folderOf(forgotten), 'ended.json'), 4)
  await age(join(folderOf(remembered), 'ended.json'), 2)
  await age(folderOf(living), 4)

  await fixture.start()
  await until('a sweep has removed the unused build', () => !existsSync(join(builds, unused)))
  assert.deepStrictEqual(readdirSync(join(builds, used)), ['run'])
  assert.ok(
    Date.now() - (await stat(join(builds, used))).mtimeMs < DAY_MS,
    'its time of use is renewed while it is used',
  )
  assert.ok(existsSync(`/proc/${handle.pid}/exe`))
  await until('the old log is removed', () => !existsSync(folderOf(forgotten)))
  assert.deepStrictEqual(await fixture.log(remembered, 'stdout'), ['over'])
  assert.ok(existsSync(folderOf(living)))
})

test('logs of ended lobbies stay within the configured space: the oldest are removed first, running lobbies keep theirs', async (t) => {
  const fixture = await openRunner(t, 'off', { MUSTER_LOGS_MB_MAX: '1' })
  await fixture.start()
  const talker = { run: 'head -c 300000 /dev/zero | tr "\\0" x | fold -w 99; echo; echo over; exec sleep "$1"' }
  const lobbies_folder = join(fixture.ctx.config.data_dir, 'lobbies')
  const isTrimmed = (lobby_id: string) =>
    existsSync(join(lobbies_folder, lobby_id)) && !existsSync(join(unfinishedFolder(lobbies_folder), lobby_id))
  const living = await fixture.lobby(await fixture.version(talker, { args: ['sh', 'run', '600'] }))
  const ending = await fixture.version(talker, { args: ['sh', 'run', '0'] })
  const ended: string[] = []
  for (let count = 0; count < 4; count++) {
    const lobby_id = await fixture.lobby(ending)
    await until('its folder is trimmed', () => isTrimmed(lobby_id))
    ended.push(lobby_id)
  }
  await until('the oldest logs are removed', () => !isTrimmed(ended[0]!) && !isTrimmed(ended[1]!))
  assert.deepStrictEqual(await fixture.log(ended[0]!, 'stdout'), [])
  for (const lobby_id of [ended[2]!, ended[3]!, living]) {
    assert.strictEqual((await fixture.log(lobby_id, 'stdout')).at(-1), 'over')
  }
})
