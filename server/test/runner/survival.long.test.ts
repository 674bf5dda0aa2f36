import assert from 'node:assert'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Handle } from '../../src/runner/drivers/driver.ts'
import { lacking } from '../run/optional-programs.ts'
import { until } from '../support/until.ts'
import {
  type DriverFixture,
  howOf,
  makeDataFolder,
  needsOf,
  openDriver,
  SANDBOXES,
  type Sandbox,
  writeBuild,
} from './driver-fixture.ts'

const run = promisify(execFile)
const STARTER = fileURLToPath(new URL('./starter.ts', import.meta.url))
/** Two files of 512 KiB and the excess of the last chunk, for each of two streams. */
const TICK_MS = 20
const LOG_BYTES_MAX = 4 * (512 + 128) * 1024

function promise(name: string, run: (t: TestContext, sandbox: Sandbox) => Promise<void>): void {
  for (const sandbox of SANDBOXES) {
    test(`${name} (${sandbox === 'off' ? 'without a sandbox' : 'in bubblewrap'})`, async (t) => {
      const missing = lacking(...needsOf(sandbox))
      return missing === null ? run(t, sandbox) : t.skip(missing)
    })
  }
}

const KEEPER = `
  let n = 0
  process.on('SIGTERM', () => process.exit(5))
  process.on('SIGUSR2', () => process.exit(6))
  setInterval(() => console.log('tick ' + n++), 20)`

/** Starts a lobby from a process that is then killed with SIGKILL. `meanwhile` runs before another process takes over. */
async function survive(
  t: TestContext,
  sandbox: Sandbox,
  program: string,
  meanwhile: (handle: Handle, data_dir: string) => Promise<void> = async () => undefined,
): Promise<{ fixture: DriverFixture; handle: Handle }> {
  const data_dir = makeDataFolder()
  const build_folder = writeBuild(data_dir, { 'server.js': program })
  const starter = spawn(process.execPath, [STARTER, data_dir, sandbox, build_folder, 'node', 'server.js'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(starter, 'exit')
  try {
    const [line] = await Promise.race([
      once(createInterface(starter.stdout), 'line'),
      exit.then(([code]) => Promise.reject(new Error(`The starter ended with exit code ${code}.`))),
    ])
    const { handle } = JSON.parse(line) as { handle: Handle }
    await until('the lobby runs', () => statusOf(data_dir, handle).includes('child-pid'))
    await until('the lobby has written output', () => sizeOfLogs(data_dir, handle) > 0)
    starter.kill('SIGKILL')
    await exit
    await meanwhile(handle, data_dir)
    return { fixture: await openDriver(t, sandbox, data_dir), handle }
  } catch (error) {
    starter.kill('SIGKILL')
    await exit
    // With the test it ends the lobby, which outlives the starter.
    await openDriver(t, sandbox, data_dir)
    throw error
  }
}

promise(
  'a lobby outlives the killed process that started it, and the next one finds and ends it',
  async (t, sandbox) => {
    const { fixture, handle } = await survive(t, sandbox, KEEPER)
    assert.deepStrictEqual(await fixture.driver.list(), [handle])
    assert.strictEqual(await fixture.driver.exit(handle), null)
    await assert.rejects(fixture.start({ ...handle, build_folder: '/', args: ['node'] }), 'It is started once.')
    // Its log continues.
    const [, before = ''] = await fixture.line(handle, /^tick (\d+)$/)
    await fixture.line(handle, new RegExp(`^tick ${Number(before) + 20}$`))
    await fixture.driver.sweep()
    assert.strictEqual(await fixture.driver.exit(handle), null, 'A sweep spares what lives.')
    await fixture.driver.stop(handle, 10_000)
    assert.deepStrictEqual(howOf(await fixture.driver.exit(handle)), { exit_code: 5, reason: 'exit' })
    assert.deepStrictEqual(await fixture.driver.list(), [])
  },
)

promise('the standard input of a lobby outlives the process that started it', async (t, sandbox) => {
  const reader = `
    process.stdin.on('data', (bytes) => console.log('read ' + bytes.toString().trim()))
    process.stdin.on('end', () => console.log('end'))
    console.log('up')`
  const { fixture, handle } = await survive(t, sandbox, reader)
  assert.strictEqual(await fixture.driver.write(handle.lobby_id, 'hello', 'note'), 'written')
  await fixture.line(handle, /^read hello$/)
})

promise('exit code and time of a lobby that ended without a driver are read afterwards', async (t, sandbox) => {
  let [signalled_ms, ended_ms] = [0, 0]
  const { fixture, handle } = await survive(t, sandbox, KEEPER, async (handle, data_dir) => {
    const child = Number(/"child-pid": (\d+)/.exec(statusOf(data_dir, handle))?.[1])
    const program = sandbox === 'off' ? child : Number(readFileSync(`/proc/${child}/task/${child}/children`, 'utf8'))
    signalled_ms = Date.now()
    process.kill(program, 'SIGUSR2')
    await until('the exit code is written', () => statusOf(data_dir, handle).includes('exit-code'))
    ended_ms = Date.now()
  })
  await until('it is gone', async () => (await fixture.driver.list()).length === 0)
  const exit = await fixture.driver.exitOf(handle.lobby_id)
  assert.deepStrictEqual(howOf(exit), { exit_code: 6, reason: 'exit' })
  const { start_ts, end_ts } = exit.ran!
  assert.strictEqual(start_ts, handle.start_ts)
  // File times have the resolution of the kernel's tick.
  assert.ok(end_ts >= signalled_ms - TICK_MS && end_ts <= ended_ms, `${signalled_ms} ${end_ts} ${ended_ms}`)
})

promise('a killed monitor leaves no process behind, and its run is lost', async (t, sandbox) => {
  const { fixture, handle } = await survive(t, sandbox, KEEPER)
  const child = Number(/"child-pid": (\d+)/.exec(statusOf(fixture.data_dir, handle))?.[1])
  process.kill(handle.pid, 'SIGKILL')
  assert.deepStrictEqual(howOf(await fixture.ended(handle)), { exit_code: null, reason: 'lost' })
  await until('the program is gone', () => !isRunning(child))
})

promise('a run that ended together with its monitor lived until it was last seen alive', async (t, sandbox) => {
  let killed_ms = 0
  const { fixture, handle } = await survive(t, sandbox, KEEPER, async (handle) => {
    killed_ms = Date.now()
    process.kill(-handle.pid, 'SIGKILL')
    await until('the monitor is gone', () => !isRunning(handle.pid))
  })
  const exit = await fixture.driver.exitOf(handle.lobby_id)
  assert.strictEqual(exit.reason, 'lost')
  const { start_ts, end_ts } = exit.ran!
  assert.ok(
    end_ts >= start_ts && end_ts >= killed_ms - 2_000 && end_ts <= killed_ms,
    `${start_ts} ${end_ts} ${killed_ms}`,
  )
})

promise(
  'a process of another boot, or a later process of the same pid, is not taken for a lobby',
  async (t, sandbox) => {
    const { fixture, handle } = await survive(t, sandbox, KEEPER)
    for (const wrong of [{ boot_id: 'another' }, { start_time: '1' }]) {
      const other = { ...handle, ...wrong, group: null, lobby_id: '01890000-0000-7000-8000-000000000000' }
      await fixture.driver.stop(other, 0)
      assert.strictEqual((await fixture.driver.exit(other))?.reason, 'lost')
    }
    assert.strictEqual(await fixture.driver.exit(handle), null)
  },
)

promise('a flood of output is bounded on the disk and in memory, also while the runner is dead', async (t, sandbox) => {
  const flood = `
    const lines = ('x'.repeat(200) + '\\n').repeat(500)
    const pour = () => { while (process.stdout.write(lines)); process.stdout.once('drain', pour) }
    pour()`
  const { fixture, handle } = await survive(t, sandbox, flood, async (handle, data_dir) => {
    const folder = join(data_dir, 'lobbies', handle.lobby_id)
    const writtenBy = (): number => Number(/^wchar: (\d+)$/m.exec(ioOf(loggerOf(data_dir)))?.[1])
    const before = writtenBy()
    await until('the log continues', () => writtenBy() > before + 512 * 1024)
    assert.ok(sizeOfLogs(data_dir, handle) < LOG_BYTES_MAX)
    assert.ok(readdirSync(folder).length < 20)
    const [, resident_kb] =
      /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${loggerOf(data_dir)}/status`, 'utf8')) ?? []
    assert.ok(Number(resident_kb) < 200 * 1024)
  })
  await fixture.line(handle, /^\[muster\] \d+ lines dropped/)
})

promise('a lobby outlives a killed logger, and its log continues', async (t, sandbox) => {
  const { fixture, handle } = await survive(t, sandbox, KEEPER)
  const killed = loggerOf(fixture.data_dir)
  process.kill(killed, 'SIGKILL')
  await until('there is another logger', async () => {
    await fixture.driver.sweep()
    return loggerOf(fixture.data_dir) !== killed
  })
  const [, before = ''] = await fixture.line(handle, /^tick (\d+)$/)
  await fixture.line(handle, new RegExp(`^tick ${Number(before) + 50}$`))
  assert.strictEqual(await fixture.driver.exit(handle), null)
})

promise('reading every file of a running lobby consumes no line of its log', async (t, sandbox) => {
  const fixture = await openDriver(t, sandbox)
  const build_folder = fixture.build({ 'server.js': KEEPER })
  const handle = await fixture.start({ build_folder, args: ['node', 'server.js'] })
  await fixture.line(handle, /^tick 1$/)
  const folder = join(fixture.data_dir, 'lobbies', handle.lobby_id)
  const names = await readdir(folder)
  assert.ok(names.includes('stdout.1.log'), String(names))
  // As `grep -r` and `cat *` do. If a pipe were among the files, they would read it instead of the logger.
  const { stdout } = await run('grep', ['-r', '--devices=read', 'tick', folder], { timeout: 10_000 })
  assert.match(stdout, /stdout\.1\.log:.* tick 1\n/)
  await fixture.line(handle, /^tick 40$/)
  const lines = await fixture.driver.logs(handle.lobby_id, 'stdout', 1_000)
  assert.deepStrictEqual(
    lines.slice(0, 41).map(({ bytes }) => bytes.toString()),
    Array.from({ length: 41 }, (_, count) => `tick ${count}`),
  )
})

test('the logger ends when it is not needed', async (t) => {
  const fixture = await openDriver(t, 'off')
  await until('there is a logger', () => loggerOf(fixture.data_dir) > 0)
  const logger = loggerOf(fixture.data_dir)
  await fixture.driver.close({ logger: 'end' })
  await until('the logger has ended', () => !isRunning(logger))
})

function statusOf(data_dir: string, { lobby_id }: Handle): string {
  return readFileSync(join(data_dir, 'lobbies', lobby_id, 'status'), 'utf8')
}

function sizeOfLogs(data_dir: string, { lobby_id }: Handle): number {
  const folder = join(data_dir, 'lobbies', lobby_id)
  let bytes = 0
  for (const name of readdirSync(folder).filter((name) => name.includes('.log'))) {
    // The file may be removed between the two calls.
    bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}

function loggerOf(data_dir: string): number {
  try {
    return Number(readFileSync(join(data_dir, 'lobbies', '.platform', 'logger.pid'), 'utf8'))
  } catch {
    return 0
  }
}

function ioOf(pid: number): string {
  return readFileSync(`/proc/${pid}/io`, 'utf8')
}

/** False for a zombie. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
