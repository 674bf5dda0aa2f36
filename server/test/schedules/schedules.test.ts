// What schedules do at their times, on a platform with real lobbies: lines at the standard input, idle lobbies for a while,
// restarts that cut no player before the deadline, and drains. Only the wall clock is stepped to the times.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BodyOf,
  deleteMatchmakerLobby,
  deleteSchedule,
  listScheduleRuns,
  listSchedules,
  playerConnected,
  playerDisconnected,
  putSchedule,
  runSchedule,
  SCHEDULES_MAX,
  type Schedule,
  watchOwnLobby,
} from '@musterhost/contract'
import { takeSteps } from '../../src/matchmaker/schedules/runs.ts'
import { linesOf, logOf, talkingGame, talkingLobby } from '../cloud/lobbies/talking-server.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

type Settings = Omit<BodyOf<typeof putSchedule>, 'namespace_id'>
const NIGHTLY = { cron: '0 5 * * *', time_zone: 'Europe/Berlin' }
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

test('schedules', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const game = await talkingGame(platform, { standard_input: true })

  const put = async (settings: Settings): Promise<Schedule> => {
    const body = { namespace_id: game.namespace_id, ...settings }
    return (await platform.client.call(putSchedule, { params: { game_id: game.game_id }, body })).schedule
  }
  const paramsOf = ({ schedule_id }: Schedule) => ({ game_id: game.game_id, schedule_id })
  const remove = (schedule: Schedule) => platform.client.call(deleteSchedule, { params: paramsOf(schedule) })
  const runsOf = async (schedule: Schedule) =>
    (await platform.client.call(listScheduleRuns, { params: paramsOf(schedule) })).runs
  /** Waits until the newest run of the schedule has this outcome. */
  const runWith = (schedule: Schedule, outcome: string) =>
    until(`a run that is ${outcome}`, async () => {
      const [run] = await runsOf(schedule)
      return run?.outcome === outcome && run
    })
  const stepTo = (ts: string, by_ms = 0) => platform.stepWallClock(Date.parse(ts) + by_ms - platform.ctx.now())
  const live = () =>
    platform.ctx.db
      .selectFrom('lobbies')
      .selectAll()
      .where('namespace_id', '=', game.namespace_id)
      .where('stop_ts', 'is', null)
      .orderBy('create_ts')
      .execute()
  const ready = (count: number) =>
    until(`${count} ready lobbies`, async () => {
      const rows = await live()
      return rows.length === count && rows.every(({ ready_ts }) => ready_ts !== null) && rows
    })

  await t.test(
    'an announcement arrives at the standard input of a lobby at its time, once, and is missed when too late',
    async () => {
      const lobby_id = await talkingLobby(platform, game)
      const schedule = await put({ ...NIGHTLY, name: 'good-night', kind: 'announce', text: 'say good night' })
      assert.equal(schedule.next.length, 5)
      assert.deepEqual(await runsOf(schedule), [], 'nothing is due')
      stepTo(schedule.next[0]!)
      const run = await runWith(schedule, 'done')
      assert.deepEqual(
        [run.due_ts, run.lobby_count, run.failed_count, run.is_requested],
        [schedule.next[0], 1, 0, false],
      )
      const read = () => logOf(platform, game, lobby_id).then(linesOf)
      await until('the line is read', async () => (await read()).includes('read say good night'))
      const own = await platform.serverOf(game, lobby_id).call(watchOwnLobby, { query: {} })
      assert.equal(own.announcement?.text, 'say good night', 'a server without standard input reads it there')

      const row = await platform.ctx.db
        .selectFrom('schedules')
        .selectAll()
        .where('schedule_id', '=', schedule.schedule_id)
        .executeTakeFirstOrThrow()
      const at_ms = row.handled_ts.getTime() + 1
      const step = { at_ms, due_ms: at_ms, before_s: 0 }
      const taken = await Promise.all(
        [1, 2, 3].map(() => takeSteps(platform.ctx, row, at_ms, [{ step, begin: null, message: 'test' }])),
      )
      assert.equal(taken.filter((runs) => runs !== null).length, 1, 'of several processes one takes a step')

      stepTo(schedule.next[2]!, HOUR_MS)
      const missed = await until('both are recorded', async () => {
        const runs = (await runsOf(schedule)).filter(({ message }) => message?.startsWith('The platform'))
        return runs.length === 2 && runs
      })
      assert.deepEqual(
        missed.map(({ due_ts, outcome }) => [due_ts, outcome]),
        [2, 1].map((at) => [schedule.next[at], 'missed']),
      )
      assert.equal((await read()).length, 1, 'a late announcement is not made')
      await platform.client.call(runSchedule, { params: paramsOf(schedule) })
      await until('the line is read again', async () => (await read()).length === 2)
      assert.equal((await runWith(schedule, 'done')).is_requested, true)

      const interrupted = { run_id: schedule.schedule_id, schedule_id: schedule.schedule_id, due_ts: new Date() }
      await platform.ctx.db
        .insertInto('schedule_runs')
        .values({ ...interrupted, before_s: 0, is_requested: true, outcome: 'active' })
        .execute()
      await platform.ctx.listener.notify('schedules')
      const { last_run } = await until('the interrupted run has ended', async () => {
        const { schedules } = await platform.client.call(listSchedules, {
          params: { game_id: game.game_id },
          query: {},
        })
        return schedules[0]?.active_run === undefined && schedules[0]
      })
      assert.equal(last_run?.outcome, 'done', 'the last run is the one that was due last')
      assert.equal((await runsOf(schedule)).find(({ run_id }) => run_id === schedule.schedule_id)?.outcome, 'failed')
      await remove(schedule)
      await platform.client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id } })
    },
  )

  await t.test('a window raises idle lobbies and lets them go after it, and a pause ends it', async () => {
    await platform.deploy(game, { default: { idle_grace_ms: 1_000 } })
    const settings: Settings = { ...NIGHTLY, name: 'peak', kind: 'idle_lobbies', count: 2, duration_s: 3_600 }
    const schedule = await put(settings)
    stepTo(schedule.next[0]!, 30 * MINUTE_MS)
    assert.equal(
      (await runWith(schedule, 'active')).until_ts,
      new Date(Date.parse(schedule.next[0]!) + HOUR_MS).toISOString(),
    )
    await ready(2)
    stepTo(schedule.next[0]!, HOUR_MS)
    await runWith(schedule, 'done')
    platform.advance(2_000)
    await ready(0)

    await platform.client.call(runSchedule, { params: paramsOf(schedule) })
    await ready(2)
    await put({ ...settings, is_paused: true })
    await runWith(schedule, 'cancelled')
    platform.advance(2_000)
    await ready(0)
    await remove(schedule)
  })

  await t.test(
    'a restart announces itself, replaces empty lobbies, and cuts no player before its deadline',
    async () => {
      await platform.deploy(game, {
        default: { idle_grace_ms: 1_000, idle_lobbies: { min: 1, max: 1 }, max_players: 1 },
      })
      await ready(1)
      const seat = await game.find()
      const { lobby_id } = seat.lobby
      const server = platform.serverOf(game, lobby_id)
      await server.call(playerConnected, { body: { player_token: seat.player.token } })
      const old = (await ready(2)).find((one) => one.lobby_id !== lobby_id)!
      const schedule = await put({
        ...{ ...NIGHTLY, name: 'nightly', kind: 'restart', deadline_s: 600 },
        announce_before: [{ before_s: 900, text: 'restart in {minutes} minutes' }],
      })
      stepTo(schedule.next[0]!, -900_000)
      const announced = await runWith(schedule, 'done')
      assert.deepEqual([announced.before_s, announced.lobby_count], [900, 2])
      await until('the server has read it', async () =>
        linesOf(await logOf(platform, game, lobby_id)).includes('read restart in 15 minutes'),
      )
      assert.equal((await server.call(watchOwnLobby, { query: {} })).is_draining, false)

      stepTo(schedule.next[0]!)
      await runWith(schedule, 'active')
      const after = await until('the empty lobby is replaced', async () => {
        const rows = await live()
        return rows.every((one) => one.lobby_id !== old.lobby_id) && rows.length === 2 && rows
      })
      assert.equal(await platform.stopReasonOf(old.lobby_id), 'requested')
      const fresh = after.find((one) => one.lobby_id !== lobby_id)!
      const own = await server.call(watchOwnLobby, { query: {} })
      assert.deepEqual([own.is_closed, own.is_draining, own.seats.length], [true, true, 1], 'the player plays on')
      await ready(2)
      assert.equal((await game.find()).lobby.lobby_id, fresh.lobby_id, 'other players get a new lobby')
      const ended = await runWith(schedule, 'active')
      assert.equal(ended.lobby_count, 1)
      stepTo(schedule.next[0]!, 600_000)
      assert.equal(await platform.stopReasonOf(lobby_id), 'requested')
      assert.equal((await runWith(schedule, 'done')).lobby_count, 2)
      assert.ok(
        (await live()).some((one) => one.lobby_id === fresh.lobby_id),
        'a new lobby is not restarted',
      )
      await remove(schedule)
      await platform.deploy(game, { default: { idle_grace_ms: 1_000 } })
    },
  )

  await t.test('a drain refuses finds with the time of its end, and ends lobbies as their players leave', async () => {
    const seat = await game.find()
    const server = platform.serverOf(game, seat.lobby.lobby_id)
    await server.call(playerConnected, { body: { player_token: seat.player.token } })
    const schedule = await put({ ...NIGHTLY, name: 'maintenance', kind: 'drain', duration_s: 3_600 })
    await platform.client.call(runSchedule, { params: paramsOf(schedule) })
    const { until_ts } = await runWith(schedule, 'active')
    const refusal = await until('finds are refused', async () => {
      const failure = await failureOf(game.find()).catch(() => null)
      return failure?.code === 'MATCHMAKER_VERSION_DRAINING' && failure
    })
    assert.deepEqual(refusal.metadata, { until_ts })
    assert.ok(refusal.message.includes(until_ts!), refusal.message)
    assert.equal((await server.call(watchOwnLobby, { query: {} })).is_draining, true)
    assert.ok(
      (await live()).some(({ lobby_id }) => lobby_id === seat.lobby.lobby_id),
      'the player plays on',
    )
    await server.call(playerDisconnected, { body: { player_token: seat.player.token } })
    await platform.stopReasonOf(seat.lobby.lobby_id)
    stepTo(until_ts!)
    await runWith(schedule, 'done')
    await until('finds are granted again', async () => game.find().catch(() => false))
    await remove(schedule)
    await until('nothing is left of the rules', async () =>
      failureOf(game.find()).then(
        () => false,
        () => true,
      ),
    )
  })

  await t.test('a schedule that is wrong is refused with the fields that are, and changes nothing', async () => {
    const good: Settings = { ...NIGHTLY, name: 'wrong', kind: 'announce', text: 'hello' }
    const fieldsOf = async (settings: Settings) => {
      const failure = await failureOf(put(settings))
      assert.equal(failure.code, 'VALIDATION_ERROR')
      return (failure.metadata.errors as { path: string[] }[]).map(({ path }) => path.join('.'))
    }
    assert.deepEqual(await fieldsOf({ ...good, cron: '61 5 * * *', time_zone: 'Europe/Atlantis' }), [
      'cron',
      'time_zone',
    ])
    assert.deepEqual(await fieldsOf({ ...good, cron: '0 0 31 2 *' }), ['cron'])
    assert.deepEqual(await fieldsOf({ ...good, game_modes: ['defualt'], regions: ['mars'] }), [
      'game_modes.0',
      'regions.0',
    ])
    assert.deepEqual(await fieldsOf({ ...NIGHTLY, name: 'wrong', kind: 'announce' }), ['text'])
    assert.deepEqual(await fieldsOf({ ...good, kind: 'idle_lobbies' }), ['count', 'duration_s', 'text'])
    const drain: Settings = { ...NIGHTLY, name: 'wrong', kind: 'drain', duration_s: 60 }
    assert.deepEqual(await fieldsOf({ ...drain, deadline_s: 61 }), ['deadline_s'])
    assert.deepEqual(await fieldsOf({ ...drain, game_modes: ['default'] }), ['game_modes'])
    const twice = [60, 60].map((before_s) => ({ before_s, text: 'soon' }))
    assert.deepEqual(await fieldsOf({ ...drain, announce_before: twice }), ['announce_before.1.before_s'])
    await platform.setLimits(game, { lobby_count_max: 3 })
    const peak: Settings = { ...NIGHTLY, name: 'wrong', kind: 'idle_lobbies', duration_s: 60, count: 4 }
    assert.deepEqual(await fieldsOf(peak), ['count'])
    const { schedules } = await platform.client.call(listSchedules, { params: { game_id: game.game_id }, query: {} })
    assert.deepEqual(schedules, [])

    const first = await put(good)
    assert.deepEqual(await fieldsOf({ ...drain, name: 'wrong' }), ['kind'], 'a name has one kind')
    await platform.ctx.pool.query(
      `insert into schedules select gen_random_uuid(), game_id, namespace_id, 'copy-' || number, kind, cron, time_zone, settings,
        true, create_ts, handled_ts from schedules, generate_series(2, $1) as number where schedule_id = $2`,
      [SCHEDULES_MAX, first.schedule_id],
    )
    const full = await failureOf(put({ ...good, name: 'one-more' }))
    assert.deepEqual([full.code, full.metadata.limit], ['QUOTA_REACHED', SCHEDULES_MAX])
    assert.equal(
      (
        await failureOf(
          platform.client.call(runSchedule, { params: { game_id: game.game_id, schedule_id: game.game_id } }),
        )
      ).code,
      'SCHEDULE_NOT_FOUND',
    )
  })
})
