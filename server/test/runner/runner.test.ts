import assert from 'node:assert'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gameModeId, newId } from '../../src/ids.ts'
import { openDatabase } from '../matchmaker/writers.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import { openRunner, type RunnerFixture } from './runner-fixture.ts'

const SERVER = {
  'server.mjs': `
    const { createServer } = process.getBuiltinModule('node:http')
    process.on('SIGTERM', () => process.exit(0))
    createServer((_, answer) => answer.end(JSON.stringify(process.env))).listen(Number(process.env.PORT_GAME_PORT), '127.0.0.1')`,
}
const MODE = { args: ['node', 'server.mjs'], ports: { 'game-port': { protocol: 'http' as const } } }
const isStarted = (row: { start_ts: Date | null }): boolean => row.start_ts !== null
const isEnded = (row: { exit_ts: Date | null }): boolean => row.exit_ts !== null

async function environmentOf(fixture: RunnerFixture, lobby_id: string): Promise<Record<string, string>> {
  const { ports } = await fixture.run(lobby_id, 'the run starts', isStarted)
  const { hostname, port } = ports['game-port'] ?? { hostname: '', port: 0 }
  return until('the lobby answers', async () => {
    try {
      return (await (await fetch(`http://${hostname}:${port}/`)).json()) as Record<string, string>
    } catch (error) {
      if (error instanceof TypeError) return null
      throw error
    }
  })
}

test('a wanted lobby runs with the documented environment, and ends when it is no longer wanted', async (t) => {
  const fixture = await openRunner(t, 'available')
  await fixture.start()
  const version_id = await fixture.version(SERVER, {
    ...MODE,
    env: { MOTD: 'hello', PLATFORM_TOKEN: 'mine', PORT_GAME_PORT: '1', PATH: '/mine' },
  })
  const lobby_id = await fixture.lobby(version_id, {
    lobby_config: '{"seed":9007199254740993}',
    tags: { mode: 'fast' },
  })
  const env = await environmentOf(fixture, lobby_id)
  const { game_id } = await fixture.ctx.db.selectFrom('versions').select('game_id').executeTakeFirstOrThrow()
  const row = await fixture.run(lobby_id, 'the run starts', isStarted)
  const { PWD, PLATFORM_TOKEN = '', PATH, HOME, TMPDIR, ...rest } = env
  assert.ok(PATH !== undefined && HOME !== undefined && TMPDIR !== undefined && PATH !== '/mine')
  assert.deepStrictEqual(rest, {
    MOTD: 'hello',
    PLATFORM_API_URL: `http://${row.handle.network?.services ?? '127.0.0.1'}:8082`,
    PLATFORM_LOBBY_ID: lobby_id,
    PLATFORM_GAME_MODE_ID: gameModeId(game_id, 'default'),
    PLATFORM_GAME_MODE_NAME: 'default',
    PLATFORM_NAMESPACE_ID: version_id,
    PLATFORM_NAMESPACE_NAME: version_id.slice(-12),
    PLATFORM_VERSION_ID: version_id,
    PLATFORM_VERSION_NAME: version_id,
    PLATFORM_REGION_ID: 'local',
    PLATFORM_REGION_NAME: 'Local',
    PLATFORM_MAX_PLAYERS_NORMAL: '3',
    PLATFORM_MAX_PLAYERS_DIRECT: '4',
    PLATFORM_MAX_PLAYERS_PARTY: '5',
    PLATFORM_CPU: '500',
    PLATFORM_MEMORY: String(300 * 1024 ** 2),
    PLATFORM_LOBBY_CONFIG: '{"seed":9007199254740993}',
    PLATFORM_LOBBY_TAGS: '{"mode":"fast"}',
    PORT: String(row.ports['game-port']?.port),
    HOST: '127.0.0.1',
    PORT_GAME_PORT: String(row.ports['game-port']?.port),
    PUBLIC_HOST_GAME_PORT: `${lobby_id}-game-port.lobby.local.localhost`,
    PUBLIC_PORT_GAME_PORT: '80',
    PUBLIC_URL_GAME_PORT: `http://localhost/lobbies/${lobby_id}/game-port`,
  })
  const claims = fixture.ctx.keys.verify(PLATFORM_TOKEN, Date.now())
  assert.ok(claims.kind === 'lobby' && claims.lobby_id === lobby_id && claims.namespace_id === version_id)

  await fixture.unwant(lobby_id)
  const { exit_code, exit_reason } = await fixture.run(lobby_id, 'the run ends', isEnded)
  assert.deepStrictEqual({ exit_code, exit_reason }, { exit_code: 0, exit_reason: 'stopped' })
})

test('optional variables are absent without a value', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const env = await environmentOf(fixture, await fixture.lobby(await fixture.version(SERVER, MODE)))
  assert.ok(!('PLATFORM_LOBBY_CONFIG' in env) && !('PLATFORM_LOBBY_TAGS' in env))
})

test('a lobby is started without a notification, and when it was wanted before the runner started', async (t) => {
  const fixture = await openRunner(t)
  const version_id = await fixture.version(SERVER, MODE)
  const before = await fixture.lobby(version_id, { is_awake: false })
  await fixture.start()
  await fixture.run(before, 'it starts', isStarted)
  await fixture.run(await fixture.lobby(version_id, { is_awake: false }), 'it starts', isStarted)
})

test('twenty lobbies at once get twenty processes, each with its own port', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version(SERVER, MODE)
  const ids = await Promise.all(Array.from({ length: 20 }, () => fixture.lobby(version_id)))
  const rows = await Promise.all(ids.map((id) => fixture.run(id, 'it starts', isStarted)))
  assert.strictEqual(new Set(rows.map(({ ports }) => ports['game-port']?.port)).size, 20)
  assert.strictEqual(new Set(rows.map(({ handle }) => handle.pid)).size, 20)
  assert.ok(rows.every(({ exit_ts }) => exit_ts === null))
})

test('the edge and the matchmaker are woken when a run starts and when it exits', async (t) => {
  const fixture = await openRunner(t)
  const heard: string[] = []
  fixture.ctx.listener.on('lobby_runs', (payload) => heard.push(payload))
  await until('listening', () => heard.includes(''))
  await fixture.start()
  const version_id = await fixture.version({ run: 'exec sleep 60' }, { args: ['sh', 'run'] })
  const lobby_id = await fixture.lobby(version_id)
  await until('notified of the start', () => heard.filter((payload) => payload === lobby_id).length === 1)
  await fixture.unwant(lobby_id)
  await until('notified of the exit', () => heard.filter((payload) => payload === lobby_id).length === 2)
})

test('a lobby that is no longer wanted during its start is ended, and not started again', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version({ run: 'exec sleep 60' }, { args: ['sh', 'run'] })
  for (let count = 0; count < 5; count++) {
    const lobby_id = await fixture.lobby(version_id)
    // The row is written before the process starts.
    await until('its start is under way', async () => (await fixture.row(lobby_id)) !== undefined)
    await fixture.unwant(lobby_id)
    const row = await fixture.run(lobby_id, 'the run ends', isEnded)
    assert.strictEqual(row.exit_reason, 'stopped')
    const pid = row.handle.pid
    await until('it is gone', () => pid === undefined || !existsSync(`/proc/${pid}/exe`))
  }
})

test('a lobby that exits is recorded with its code, and never started again', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version({ run: 'echo no map >&2; exit 3' }, { args: ['sh', 'run'] })
  const lobby_id = await fixture.lobby(version_id)
  const row = await fixture.run(lobby_id, 'the run ends', isEnded)
  assert.deepStrictEqual([row.exit_code, row.exit_reason], [3, 'exit'])
  assert.strictEqual(
    row.cpu_ms !== null,
    Boolean(row.handle.group),
    'its processor time is known where a control group counted it',
  )
  await until('its last line is kept', async () => (await fixture.log(lobby_id, 'stderr')).includes('no map'))
  // Another lobby starts and ends after it, so the loop has passed again with the ended one still wanted.
  const daemon = await fixture.version({ run: '(sleep 600) & exit 0' }, { args: ['sh', 'run'] })
  const other = await fixture.lobby(daemon)
  await fixture.run(other, 'another one ends', isEnded)
  assert.match((await fixture.log(other, 'stderr')).join('\n'), /exit code 0.* must stay in the foreground/)
  assert.deepStrictEqual(await fixture.row(lobby_id), row)
})

test('a lobby that cannot be started is recorded with its reason, and explained in its log', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const good = await fixture.version({ data: 'x' }, { args: ['./nothing'] })
  const missing = await fixture.version({ data: 'x' }, { args: ['data'], image_id: newId(Date.now()) })
  for (const [lobby_id, reason, said] of [
    [await fixture.lobby(good), 'no_such_file', /"\.\/nothing"/],
    [await fixture.lobby(missing), 'no_build', /no such build/],
    [await fixture.lobby(good, { game_mode: 'without' }), 'no_build', /has no build/],
    [await fixture.lobby(good, { game_mode: 'unheard-of' }), 'no_build', /no such game mode|has no build/],
    [await fixture.lobby(newId(Date.now())), 'no_build', /./],
  ] as const) {
    const row = await fixture.run(lobby_id, 'the run ends', isEnded)
    assert.deepStrictEqual([row.exit_code, row.exit_reason, row.start_ts], [null, reason, null])
    const explained = async () => (await fixture.log(lobby_id, 'stderr')).find((line) => said.test(line))
    assert.match(await until('it is explained', explained), /^\[muster\] /)
  }
})

test('a build with an incomplete upload, or that is no archive, is never run', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const incomplete = await fixture.version({ run: 'exit 0' }, { args: ['sh', 'run'] })
  await fixture.ctx.db.updateTable('uploads').set({ complete_ts: null }).execute()
  const row = await fixture.run(await fixture.lobby(incomplete), 'the run ends', isEnded)
  assert.strictEqual(row.exit_reason, 'no_build')
  assert.deepStrictEqual(await readdir(join(fixture.ctx.config.data_dir, 'builds')), [])
})

test('a stopped runner leaves its lobbies running, and the next one takes them over', async (t) => {
  const fixture = await openRunner(t, 'available')
  const first = await fixture.start()
  const version_id = await fixture.version(SERVER, MODE)
  const lobby_id = await fixture.lobby(version_id)
  const env = await environmentOf(fixture, lobby_id)
  const before = await fixture.row(lobby_id)
  await first.stop({ end_lobbies: false })
  assert.deepStrictEqual(await environmentOf(fixture, lobby_id), env)
  // Under another host name.
  await fixture.ctx.pool.query('update lobby_runs set runner_id = $1', ['renamed'])

  await fixture.start()
  await fixture.run(lobby_id, 'it is taken over', (row) => row.runner_id === fixture.ctx.config.node_id)
  const after = await fixture.row(lobby_id)
  assert.deepStrictEqual(after, before)
  assert.deepStrictEqual(await environmentOf(fixture, lobby_id), env)
  const other = await fixture.run(await fixture.lobby(version_id), 'another one starts', isStarted)
  assert.notDeepStrictEqual(other.ports, after?.ports)
  await fixture.unwant(lobby_id)
  const { exit_code, exit_reason } = await fixture.run(lobby_id, 'the run ends', isEnded)
  assert.deepStrictEqual({ exit_code, exit_reason }, { exit_code: 0, exit_reason: 'stopped' })
})

test('a row without a process ends as lost, and that of a run that ended meanwhile with its code', async (t) => {
  const fixture = await openRunner(t)
  const first = await fixture.start()
  const version_id = await fixture.version(SERVER, MODE)
  const ended = await fixture.lobby(version_id)
  await environmentOf(fixture, ended)
  const { handle } = await fixture.run(ended, 'it starts', isStarted)
  await first.stop({ end_lobbies: false })
  const folder = join(fixture.ctx.config.data_dir, 'lobbies', ended)
  const status = (await import('node:fs')).readFileSync(join(folder, 'status'), 'utf8')
  process.kill(Number(/"child-pid": (\d+)/.exec(status)?.[1]), 'SIGTERM')
  await until('it has ended', () => !existsSync(`/proc/${handle.pid}/exe`))
  const never = await fixture.lobby(version_id)
  await fixture.ctx.pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports) values ($1, $2, 'process', '{}', '{}')`,
    [never, fixture.ctx.config.node_id],
  )

  await fixture.start()
  const never_row = await fixture.run(never, 'its end is recorded', isEnded)
  assert.deepStrictEqual([never_row.exit_code, never_row.exit_reason], [null, 'lost'])
  const ended_row = await fixture.run(ended, 'its end is recorded', isEnded)
  assert.deepStrictEqual([ended_row.exit_code, ended_row.exit_reason], [0, 'exit'])
})

test('a run whose end was recorded after its row was read is counted once', async (t) => {
  const GATE = 4712
  const fixture = await openRunner(t)
  const { pool, metrics, config } = fixture.ctx
  const insertRun = async (): Promise<string> => {
    const lobby_id = newId(Date.now())
    await pool.query(
      `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports) values ($1, $2, 'process', '{}', '{}')`,
      [lobby_id, config.node_id],
    )
    return lobby_id
  }
  const recorded = await insertRun()
  const gate = await openDatabase(t, config.database_url!)
  // The call that records the end has read the row, and is paused before its write.
  await gate.query(`
    create function wait_at_gate() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${GATE}); return null; end $$;
    create trigger gate before update of exit_ts on lobby_runs execute function wait_at_gate();
    select pg_advisory_lock(${GATE})`)
  const starting = fixture.start()
  await until('the runner is paused', async () => {
    const { rows } = await gate.query(`select pid from pg_locks where locktype = 'advisory' and objid = ${GATE}
      and not granted and database = (select oid from pg_database where datname = current_database())`)
    return rows.length > 0
  })
  // The session that holds the lock may write.
  const end = `update lobby_runs set exit_ts = now(), exit_code = 0, exit_reason = 'exit' where lobby_id = $1`
  await gate.query(end, [recorded])
  await gate.query(`select pg_advisory_unlock(${GATE})`)
  await starting
  const unseen = await insertRun()
  await fixture.run(unseen, 'the other ends unseen', isEnded)
  assert.equal((await fixture.row(recorded))?.exit_reason, 'exit')
  await until('it is counted', async () => /_run_exits_total\{reason="lost"\} 1$/m.test((await metrics.text()).text))
})

test('runs that ended before the machine was renamed are recorded, and those of other machines are left alone', async (t) => {
  const fixture = await openRunner(t)
  const { pool } = fixture.ctx
  const first = await fixture.start('before')
  const version_id = await fixture.version(SERVER, MODE)
  const [ended, foreign] = [await fixture.lobby(version_id), await fixture.lobby(version_id)]
  const { handle } = await fixture.run(ended, 'it starts', isStarted)
  await fixture.run(foreign, 'it starts', isStarted)
  await first.stop({ end_lobbies: true })
  const told = (await fixture.row(ended))!
  await pool.query('update lobby_runs set start_ts = null, exit_ts = null, exit_code = null, exit_reason = null')
  await pool.query('update lobby_runs set runner_id = $1 where lobby_id = $2', ['elsewhere', foreign])
  // Written by the former runner, which crashed before the process started.
  const never = await fixture.lobby(version_id)
  await pool.query(
    `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports) values ($1, 'before', 'process', '{}', '{}')`,
    [never],
  )

  const second = await fixture.start('after')
  for (const lobby_id of [ended, never]) {
    const row = await fixture.run(lobby_id, 'its end is recorded', isEnded)
    assert.deepStrictEqual(row.runner_id, 'after')
  }
  assert.strictEqual((await fixture.row(never))?.exit_reason, 'lost')
  const { start_ts, exit_ts: end_ts } = (await fixture.row(ended))!
  assert.deepStrictEqual(
    { start_ts, end_ts },
    { start_ts: told.start_ts, end_ts: told.exit_ts },
    'in the row and in the folder',
  )
  assert.ok(!existsSync(`/proc/${handle.pid}/exe`))
  await second.stop({ end_lobbies: true })
  await fixture.start('once more')
  await fixture.run(await fixture.lobby(version_id), 'another one starts', isStarted)
  const { runner_id, exit_ts } = (await fixture.row(foreign))!
  assert.deepStrictEqual({ runner_id, exit_ts }, { runner_id: 'elsewhere', exit_ts: null })
})

test('a running lobby without a row is ended', async (t) => {
  const fixture = await openRunner(t)
  const first = await fixture.start()
  const lobby_id = await fixture.lobby(await fixture.version(SERVER, MODE))
  const { handle } = await fixture.run(lobby_id, 'it starts', isStarted)
  await first.stop({ end_lobbies: false })
  await fixture.ctx.pool.query('delete from lobby_runs')
  await fixture.ctx.pool.query('delete from lobbies')
  await fixture.start()
  await until('it is gone', () => !existsSync(`/proc/${handle.pid}/exe`))
})

test('a runner that ends its lobbies leaves no process, and records every end', async (t) => {
  const fixture = await openRunner(t, 'available')
  if (lacking('bwrap') !== null) t.diagnostic('without bubblewrap: plainly')
  const role = await fixture.start()
  const version_id = await fixture.version(SERVER, MODE)
  const ids = [await fixture.lobby(version_id), await fixture.lobby(version_id)]
  for (const id of ids) await environmentOf(fixture, id)
  await role.stop({ end_lobbies: true })
  for (const id of ids) {
    const row = await fixture.row(id)
    assert.deepStrictEqual([row?.exit_code, row?.exit_reason], [0, 'stopped'])
    assert.ok(!existsSync(`/proc/${row?.handle.pid}/exe`))
  }
})

test('an outage of the database delays the record of an exit, and loses none', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const lobby_id = await fixture.lobby(await fixture.version(SERVER, MODE))
  await environmentOf(fixture, lobby_id)
  const { handle } = await fixture.run(lobby_id, 'it starts', isStarted)
  await fixture.ctx.pool.query('alter table lobby_runs rename to lobby_runs_away')
  process.kill(-(handle.pid ?? 0), 'SIGKILL')
  await until('it is gone', () => !existsSync(`/proc/${handle.pid}/exe`))
  await fixture.ctx.pool.query('alter table lobby_runs_away rename to lobby_runs')
  const row = await fixture.run(lobby_id, 'the exit is recorded', isEnded)
  assert.strictEqual(row.exit_reason, 'lost')
})

test('a build is unpacked once for many lobbies that start at once', async (t) => {
  const fixture = await openRunner(t)
  await fixture.start()
  const version_id = await fixture.version(SERVER, MODE)
  const ids = await Promise.all(Array.from({ length: 5 }, () => fixture.lobby(version_id)))
  await Promise.all(ids.map((id) => environmentOf(fixture, id)))
  const builds = join(fixture.ctx.config.data_dir, 'builds')
  assert.strictEqual((await readdir(builds)).length, 1)
  // The archive is not read again, so it may be removed.
  await rm(join(fixture.ctx.config.data_dir, 'objects'), { recursive: true })
  await environmentOf(fixture, await fixture.lobby(version_id))
})

/** What a runtime knows of its memory. */
const LIMITED = `
  import { readdirSync } from 'node:fs'
  import { getHeapStatistics } from 'node:v8'
  const groups = readdirSync('/sys/fs/cgroup')
  console.log(JSON.stringify([process.constrainedMemory(), getHeapStatistics().heap_size_limit, groups]))
  setInterval(() => {}, 1_000)`

test('the control group of a lobby has the limits of its tier, and its runtime sees them', async (t) => {
  const fixture = await openRunner(t, 'available')
  await fixture.start()
  const seeing_id = await fixture.lobby(
    await fixture.version({ 'server.mjs': LIMITED }, { args: ['node', 'server.mjs'] }),
  )
  const lobby_id = await fixture.lobby(await fixture.version(SERVER, MODE))
  const { handle } = await fixture.run(lobby_id, 'the run starts', isStarted)
  const { group } = handle
  if (!group) return t.skip('needs writable control groups')
  const limitOf = (name: string): string | undefined => {
    const found = globSync(`/sys/fs/cgroup/**/${group}/${name}`)[0]
    return found === undefined ? undefined : readFileSync(found, 'utf8').trim()
  }
  assert.equal(limitOf('memory.limit_in_bytes') ?? limitOf('memory.max'), String(300 * 1024 ** 2))
  const version_1 = limitOf('cpu.cfs_quota_us')
  assert.equal(version_1 === undefined ? limitOf('cpu.max') : `${version_1} 100000`, '50000 100000')
  // A start may exceed the cores of its tier for a moment without being throttled. Kernels before 5.14 cannot do that.
  const burst = limitOf('cpu.cfs_burst_us') ?? limitOf('cpu.max.burst')
  if (burst !== undefined) assert.equal(burst, '50000')
  const [line] = await until('it has read its limits', async () => {
    const lines = await fixture.log(seeing_id, 'stdout')
    return lines.length > 0 && lines
  })
  const [memory, heap, groups] = JSON.parse(line!) as [number, number, string[]]
  assert.equal(memory, 300 * 1024 ** 2)
  assert.ok(heap < memory, `a heap of ${heap} bytes`)
  // Without it Java reads no limit of version 1.
  if (existsSync('/sys/fs/cgroup/cpuset')) assert.ok(groups.includes('cpuset'))
})
