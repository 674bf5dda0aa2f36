// Two machines: the api and the matchmaker on one, the runner on the other, each with a data folder of its own. They meet in
// the database; of the folders they share the keys and the objects.
import assert from 'node:assert/strict'
import { chmod, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { deleteMatchmakerLobby, getNamespaceLobby, writeLobbyInput } from '@musterhost/contract'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { failureOf } from '../../support/refusal.ts'
import { until } from '../../support/until.ts'
import { exportedLog, linesOf, logOf, say, talkingGame, talkingLobby, wholeLog } from './talking-server.ts'

/** Another machine, whose runner takes the lobbies of this platform. */
async function startFarRunner(t: TestContext, { ctx, data_dir }: Platform, former?: Platform): Promise<Platform> {
  const far_dir = former?.data_dir ?? (await mkdtemp(join(tmpdir(), 'muster-far-')))
  if (former === undefined) {
    await chmod(far_dir, 0o711)
    await cp(join(data_dir, 'keys'), join(far_dir, 'keys'), { recursive: true })
    await mkdir(join(data_dir, 'objects'), { recursive: true })
    await symlink(join(data_dir, 'objects'), join(far_dir, 'objects'))
  }
  const { config } = ctx
  const far = await startPlatform(t, {
    roles: 'runner',
    data_dir: far_dir,
    database_url: config.database_url!,
    env: { MUSTER_LOBBY_API_PORT: String(config.lobby_api_port) },
  })
  t.after(() => rm(far_dir, { recursive: true, force: true }))
  return far
}

const rowsLeft = async ({ ctx }: Platform): Promise<number> => {
  const { rows } = await ctx.pool.query<{ count: number }>(
    'select (select count(*) from log_questions) + (select count(*) from log_answers) as count',
  )
  return Number(rows[0]!.count)
}

test('a lobby of another machine is read like one of this: its lines, what follows them, the file, what it used', async (t) => {
  const platform = await startPlatform(t)
  await startFarRunner(t, platform)
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: Buffer.from('first\n\u009b31m\0\n') })
  const first = await until('the first lines', async () => {
    const answer = await logOf(platform, game, lobby_id)
    return answer.lines.length === 2 && answer
  })
  assert.deepEqual([linesOf(first), first.is_complete], [['first', '\u009b31m\0'], false])

  let is_answered = false
  const next = logOf(platform, game, lobby_id, 'std_out', first.watch.index).finally(() => {
    is_answered = true
  })
  await until('the runner has been asked', async () => (await rowsLeft(platform)) > 0)
  assert.equal(is_answered, false, 'there is nothing behind it yet')
  const said_ms = performance.now()
  await say(platform, lobby_id, 'line #\n', 100)
  const told = linesOf(await next)
  assert.ok(performance.now() - said_ms < 4_000, 'it is sent when it comes, not when the wait ends')
  let { watch } = await next
  while (told.length < 100) {
    const more = await logOf(platform, game, lobby_id, 'std_out', watch.index)
    assert.ok(more.lines.length > 0 && more.lines.length <= 64)
    told.push(...linesOf(more))
    watch = more.watch
  }
  const lines = Array.from({ length: 100 }, (_, count) => `line ${count}`)
  assert.deepEqual(told, lines)

  const { game_id, namespace_id } = game
  const tell = () => platform.client.call(getNamespaceLobby, { params: { game_id, namespace_id, lobby_id } })
  const { metrics } = await until('its usage has been measured', async () => {
    const answer = await tell()
    return answer.metrics !== undefined && answer
  })
  assert.ok(metrics!.memory[0]! > 1e6)

  await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  const whole = await wholeLog(platform, game, lobby_id)
  assert.deepEqual(linesOf(whole).slice(2), lines)
  const file = await (await exportedLog(platform, game, lobby_id, 'std_out')).text()
  assert.deepEqual(
    file.split('\n').map((line) => line.slice(25)),
    ['first', '\\x9b31m\\x00', ...lines, ''],
  )
  await until('nothing is left of the questions', async () => (await rowsLeft(platform)) === 0)
})

test('a developer writes to the standard input of a lobby of another machine, and the audit log records it', async (t) => {
  const platform = await startPlatform(t)
  await startFarRunner(t, platform)
  const game = await talkingGame(platform, { standard_input: true })
  const lobby_id = await talkingLobby(platform, game, { std_out: 'first\n' })
  const { game_id } = game
  const write = (text: string) =>
    platform.client.call(writeLobbyInput, { params: { game_id, lobby_id }, body: { text } })
  const hasLine = (pattern: RegExp, stream: 'std_out' | 'std_err' = 'std_out') =>
    until(`the log has ${pattern}`, async () =>
      linesOf(await logOf(platform, game, lobby_id, stream)).find((line) => pattern.test(line)),
    )
  assert.deepEqual(await write('say hello'), {})
  await hasLine(/^read say hello$/)
  await hasLine(/^\[muster\] input by administrator .+: say hello$/, 'std_err')

  const [event] = await platform.ctx.db
    .selectFrom('audit_events')
    .where('operation', '=', writeLobbyInput.id)
    .select(['outcome', 'changes'])
    .execute()
  assert.equal(event?.outcome, 'done')
  assert.match(JSON.stringify(event?.changes), /say hello/)

  const other = await talkingGame(platform)
  const other_id = await talkingLobby(platform, other, { std_out: 'first\n' })
  const call = { params: { game_id: other.game_id, lobby_id: other_id }, body: { text: 'line' } }
  assert.equal((await failureOf(platform.client.call(writeLobbyInput, call))).code, 'LOBBY_INPUT_DISABLED')

  await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await wholeLog(platform, game, lobby_id)
  assert.equal((await failureOf(write('too late'))).code, 'LOBBY_NOT_RUNNING')
})

test('while the machine that has a log does not answer, every reader gets that error, and then goes on at the same place', async (t) => {
  const platform = await startPlatform(t)
  const far = await startFarRunner(t, platform)
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: 'first\nsecond\n', exit_code: 3 })
  const { watch } = await wholeLog(platform, game, lobby_id)
  const { lines: none, is_complete } = await logOf(platform, game, lobby_id, 'std_out', watch.index)
  assert.deepEqual([none, is_complete], [[], true])
  await far.close()

  for (const asked of [logOf(platform, game, lobby_id), logOf(platform, game, lobby_id, 'std_out', '0.0')]) {
    const refusal = await failureOf(asked)
    assert.deepEqual([refusal.code, refusal.metadata], ['LOBBY_LOGS_NOT_REACHABLE', { region: 'local' }])
    assert.ok(refusal.retry_after_s! > 0)
  }
  const file = await exportedLog(platform, game, lobby_id, 'std_out')
  assert.equal(file.status, 503)
  assert.equal(((await file.json()) as { code: string }).code, 'LOBBY_LOGS_NOT_REACHABLE')
  const { game_id, namespace_id } = game
  const told = await platform.client.call(getNamespaceLobby, { params: { game_id, namespace_id, lobby_id } })
  assert.deepEqual([told.metrics, told.lobby.status.stopped?.exit_code], [undefined, 3])

  const again = await startFarRunner(t, platform, far)
  assert.deepEqual(linesOf(await logOf(platform, game, lobby_id)), ['first', 'second'])
  await rm(join(far.data_dir, 'lobbies', lobby_id), { recursive: true, force: true })
  assert.deepEqual((await logOf(platform, game, lobby_id)).lines, [], 'what is not kept any more is empty')
  await again.close()
})

test('the end of the api waits for no machine that is asked', async (t) => {
  const platform = await startPlatform(t)
  await startFarRunner(t, platform)
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: 'first\n' })
  const { watch } = await until('the first line', async () => {
    const answer = await logOf(platform, game, lobby_id)
    return answer.lines.length > 0 && answer
  })
  const waiting = logOf(platform, game, lobby_id, 'std_out', watch.index).catch(() => undefined)
  await until('the runner has been asked', async () => (await rowsLeft(platform)) > 0)
  const begun_ms = performance.now()
  await Promise.race([platform.close(), delay(10_000, undefined, { ref: false })])
  assert.ok(performance.now() - begun_ms < 4_000)
  await waiting
})
