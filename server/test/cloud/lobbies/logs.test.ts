// What lobbies write is kept and told as they wrote it, while they run and afterwards; what people are shown of it drives
// no terminal. The lobbies are real ones.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { deleteMatchmakerLobby, getLobbyLogs, writeLobbyInput } from '@musterhost/contract'
import { KEPT_BYTES_BURST_MAX, LINE_BYTES_MAX } from '../../../src/runner/logs/lines.ts'
import { ROLE_PROGRAM } from '../../run/built-programs.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { failureOf } from '../../support/refusal.ts'
import { until } from '../../support/until.ts'
import { exportedLog, linesOf, logOf, say, talkingGame, talkingLobby, wholeLog } from './talking-server.ts'

const ROLES = 'api,matchmaker,runner'
const END_MS_MAX = 15_000
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

const HOSTILE = Buffer.concat([
  Buffer.from('\u001b[31mred\u001b[0m \u001b]52;c;ZXZpbA==\u0007 \u009b2J\n'),
  Buffer.from('gone\rnul \0 and \u0007bell\n'),
  Buffer.from([0xff, 0xfe, 0x80, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x0a]),
  Buffer.from('\u202egnp.exe\u2069\n'),
  Buffer.from('2026-01-01T00:00:00.000Z {"level":50,"msg":"no line of ours"}\n'),
  Buffer.from('\n'),
  Buffer.from(`${'x'.repeat(1024 * 1024)}\n`),
  Buffer.from('no end of a line'),
])

test('a log is what a person sees, whatever a server writes, and its text drives no terminal', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  // Beside the 16 KiB of a lobby config: the long line is made by the server itself.
  const script = HOSTILE.subarray(0, HOSTILE.indexOf('xxxx'))
  const lobby_id = await talkingLobby(platform, game, { std_out: script, std_err: script })
  await say(platform, lobby_id, 'name: ')
  await until(
    'the unfinished line is kept',
    async () => linesOf(await logOf(platform, game, lobby_id)).at(-1) === 'name: ',
  )
  await say(platform, lobby_id, 'x'.repeat(1024), 1024)
  await say(platform, lobby_id, '\nno end of a line')
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id } })

  const log = await wholeLog(platform, game, lobby_id)
  const written = HOSTILE.toString('latin1').split('\n')
  written[0] = Buffer.from('red  \u009b2J').toString('latin1')
  written[1] = 'nul \0 and \u0007bell'
  written.splice(-2, 0, 'name: ')
  const told = log.lines.map((line) => Buffer.from(line, 'base64').toString('latin1'))
  const cut = written.map((line) =>
    line.length > LINE_BYTES_MAX ? `${line.slice(0, LINE_BYTES_MAX)} [line cut]` : line,
  )
  assert.deepEqual(told, cut)
  assert.equal(log.timestamps.length, log.lines.length)
  assert.deepEqual(log.timestamps, log.timestamps.toSorted())
  assert.deepEqual(
    (await logOf(platform, game, lobby_id, 'std_err')).lines,
    log.lines.slice(0, written.indexOf('') + 1),
    'the other stream is its own',
  )

  const call = (query: object) =>
    platform.client.call(getLobbyLogs, {
      params: { game_id: game.game_id, lobby_id },
      query: { stream: 'std_out', ...query },
    })
  assert.deepEqual(await call({ format: 'base64' }), log)
  const in_text = await call({ format: 'text' })
  assert.deepEqual({ ...in_text, lines: log.lines }, log, 'only the lines differ')
  assert.doesNotMatch(in_text.lines.join('\n'), HARMFUL)
  assert.deepEqual(in_text.lines.slice(1, 3), [
    'nul \\x00 and \\x07bell',
    '\uFFFD\uFFFD\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFD',
  ])

  const file = await exportedLog(platform, game, lobby_id, 'std_out')
  assert.match(file.headers.get('content-type') ?? '', /^text\/plain/)
  assert.equal(file.headers.get('content-disposition'), 'attachment; filename="stdout.txt"')
  const text = await file.text()
  assert.deepEqual(
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => line.slice(line.indexOf(' ') + 1)),
    in_text.lines,
  )
  assert.doesNotMatch(text, HARMFUL)
  assert.equal(text.split('\n').length, told.length + 1)
  assert.match(text, /Z red {2}\\x9b2J\n/)
})

test('logs of servers that end at once are whole, also on the standard error', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  for (let count = 0; count < 3; count++) {
    const script = { std_out: `out ${count}\nlast`, std_err: `err ${count}\n`, exit_code: 3 }
    const lobby_id = await talkingLobby(platform, game, script)
    assert.deepEqual(linesOf(await wholeLog(platform, game, lobby_id)), [`out ${count}`, 'last'])
    assert.deepEqual(linesOf(await wholeLog(platform, game, lobby_id, 'std_err')), [`err ${count}`])
  }
})

test('before anything runs a log is empty, and there is no file of it', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const seat = game.find().catch(() => undefined)
  const lobby_id = await until('the lobby is wanted', async () => {
    const row = await platform.ctx.db.selectFrom('lobbies').select('lobby_id').executeTakeFirst()
    return row?.lobby_id
  })
  const answer = await logOf(platform, game, lobby_id)
  assert.deepEqual([answer.lines, answer.timestamps, answer.is_complete], [[], [], false])
  const refusal = await failureOf(exportedLog(platform, game, lobby_id, 'std_out'))
  assert.equal(refusal.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  await platform.close()
  await seat
})

test('a long poll waits for what comes next, 64 lines at a time, and returns each line once', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: 'first\n' })
  const first = await until('the first line', async () => {
    const answer = await logOf(platform, game, lobby_id)
    return answer.lines.length > 0 && answer
  })
  assert.deepEqual(linesOf(first), ['first'])

  let is_answered = false
  const next = logOf(platform, game, lobby_id, 'std_out', first.watch.index).finally(() => {
    is_answered = true
  })
  await logOf(platform, game, lobby_id)
  assert.equal(is_answered, false, 'there is nothing behind it yet')
  await say(platform, lobby_id, 'line #\n', 200)
  const told = linesOf(await next)
  let { watch } = await next
  while (told.length < 200) {
    const more = await logOf(platform, game, lobby_id, 'std_out', watch.index)
    assert.ok(more.lines.length > 0 && more.lines.length <= 64)
    told.push(...linesOf(more))
    watch = more.watch
  }
  assert.deepEqual(
    told,
    Array.from({ length: 200 }, (_, count) => `line ${count}`),
  )
  // An answer that was lost is asked for again.
  assert.equal(linesOf(await logOf(platform, game, lobby_id, 'std_out', first.watch.index))[0], 'line 0')
  assert.deepEqual(linesOf(await logOf(platform, game, lobby_id)).slice(0, 2), ['first', 'line 0'])

  const silent = logOf(platform, game, lobby_id, 'std_out', watch.index)
  await logOf(platform, game, lobby_id)
  platform.advance(40_000)
  assert.deepEqual(await silent, { lines: [], timestamps: [], watch, is_complete: false })

  for (const index of ['', 'x', '1', '1.-1', '1.1.1', '99999999999.1']) {
    assert.equal((await failureOf(logOf(platform, game, lobby_id, 'std_out', index))).code, 'VALIDATION_ERROR', index)
  }
  // Of another log, or made up: from the oldest on.
  assert.match(linesOf(await logOf(platform, game, lobby_id, 'std_out', '7.12'))[0]!, /no longer kept/)
})

test('a flood keeps to its cap, what is dropped is counted, and who is far behind hears that lines are missing', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game)
  const empty = await logOf(platform, game, lobby_id)
  await say(platform, lobby_id, 'first\n')
  const first = await until('the first line', async () => {
    const answer = await logOf(platform, game, lobby_id)
    return answer.lines.length > 0 && answer
  })
  await say(platform, lobby_id, `# ${'x'.repeat(1_000)}\n`, 10_000)
  const folder = join(platform.data_dir, 'lobbies', lobby_id)
  await until('the oldest lines are gone', async () => !(await readdir(folder)).includes('stdout.1.log'))
  const [gap, ...lines] = linesOf(await logOf(platform, game, lobby_id, 'std_out', first.watch.index))
  assert.match(gap!, /^\[muster\] lines before this one are no longer kept$/)
  assert.ok(Number.parseInt(lines[0]!, 10) > 0)
  const behind = await logOf(platform, game, lobby_id, 'std_out', empty.watch.index)
  assert.match(linesOf(behind)[0]!, /no longer kept/, 'also for who had seen nothing yet')
  await until('the dropped lines are counted', async () =>
    linesOf(await logOf(platform, game, lobby_id)).some((line) => /^\[muster\] [1-9]\d* lines dropped/.test(line)),
  )
  const last = await logOf(platform, game, lobby_id)
  assert.ok(last.lines.length <= 256)
  const text = await (await exportedLog(platform, game, lobby_id, 'std_out')).text()
  assert.ok(text.length < 3 * KEPT_BYTES_BURST_MAX)
})

test('a log goes on for who follows it over kill -9 of the runner and its next life, and stays when the lobby has ended', async (t) => {
  const platform = await startPlatform(t)
  const kill = await startRunnerProcess(t, platform)
  const game = await talkingGame(platform, { standard_input: true })
  const lobby_id = await talkingLobby(platform, game)
  const told: string[] = []
  let index: string | undefined
  const follow = async (): Promise<boolean> => {
    const answer = await logOf(platform, game, lobby_id, 'std_out', index)
    told.push(...linesOf(answer))
    index = answer.watch.index
    return answer.is_complete
  }
  await follow()
  await say(platform, lobby_id, 'before #\n', 3)
  await until('heard', async () => (await follow()) || told.length === 3)
  await kill()
  await say(platform, lobby_id, 'while it is dead #\n', 3)
  await until('heard', async () => (await follow()) || told.length === 6)
  const params = { game_id: game.game_id, lobby_id }
  const write = (text: string) => platform.client.call(writeLobbyInput, { params, body: { text } })
  const refusal = await failureOf(write('into the void'))
  assert.deepEqual([refusal.code, refusal.metadata], ['LOBBY_RUNNER_NOT_REACHABLE', { region: 'local' }])
  await startRunnerProcess(t, platform)
  await write('hello')
  await until('heard', async () => (await follow()) || told.length === 7)
  await say(platform, lobby_id, 'after #\n', 3)
  await until('heard', async () => (await follow()) || told.length === 10)
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id } })
  await until('its end is reported', follow)
  const said = (when: string) => [0, 1, 2].map((count) => `${when} ${count}`)
  // The input outlives the runner too, and a line that was refused is not written later.
  const expected = [...said('before'), ...said('while it is dead'), 'read hello', ...said('after')]
  assert.deepEqual(told, expected)
  const ended = join(platform.data_dir, 'lobbies', lobby_id)
  await until('its folder holds nothing but what is kept', async () => !(await readdir(ended)).includes('run.json'))
  assert.deepEqual(linesOf(await logOf(platform, game, lobby_id)), expected)
  assert.equal((await logOf(platform, game, lobby_id, 'std_out', index)).is_complete, true)
  await rm(ended, { recursive: true })
  assert.deepEqual((await logOf(platform, game, lobby_id)).lines, [], 'what is not kept any more is empty')
})

test('an address of a file is good for an hour and for that file only', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: 'out\n', exit_code: 0 })
  await wholeLog(platform, game, lobby_id)
  const file = await exportedLog(platform, game, lobby_id, 'std_out')
  assert.match(await file.text(), /Z out\n$/)
  const url = file.url
  for (const other of [
    url.replace('stdout', 'stderr'),
    url.replace(lobby_id, game.game_id),
    url.replace(/expires=(\d)/, 'expires=9$1'),
    url.replace(/(.)$/, (digit) => (digit === '0' ? '1' : '0')),
    `${url}&x=1`,
    url.split('&signature')[0]!,
    `${platform.api_url}/exports/`,
    `${platform.api_url}/exports/lobbies/../../admin-token`,
  ]) {
    const answer = await fetch(other)
    assert.ok(answer.status === 403 || answer.status === 404, other)
    await answer.body?.cancel()
  }
  platform.advance(60 * 60_000)
  assert.equal((await fetch(url)).status, 403)
})

test('a caller who hangs up does not stay a reader', async (t) => {
  const platform = await startPlatform(t, { roles: ROLES })
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game, { std_out: 'first\n' })
  const { watch } = await until('the first line', async () => {
    const answer = await logOf(platform, game, lobby_id)
    return answer.lines.length > 0 && answer
  })
  const leaving = new AbortController()
  const params = { game_id: game.game_id, lobby_id }
  const query = { stream: 'std_out' as const, watch_index: watch.index }
  const call = platform.client.call(getLobbyLogs, { params, query, signal: leaving.signal })
  await logOf(platform, game, lobby_id)
  leaving.abort()
  await assert.rejects(call)
  const started = performance.now()
  await platform.close()
  assert.ok(performance.now() - started < 4_000, 'the end of the role waits for nobody')
})

/** Starts a runner in a process of its own, and returns what kills it. */
async function startRunnerProcess(t: TestContext, { ctx, data_dir }: Platform): Promise<() => Promise<void>> {
  const { config } = ctx
  const child = spawn(process.execPath, [ROLE_PROGRAM], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH ?? '',
      MUSTER_DATA: data_dir,
      DATABASE_URL: config.database_url ?? '',
      MUSTER_ROLES: 'runner',
      MUSTER_LOBBY_API_PORT: String(config.lobby_api_port),
      MUSTER_LOG_LEVEL: 'info',
    },
  })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-10_000)
  })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGINT')
    await Promise.race([exited, delay(END_MS_MAX, undefined, { ref: false })])
    child.kill('SIGKILL')
    await exited
  })
  await until('the runner is ready', () => said.includes('"ready"'))
  return async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}
