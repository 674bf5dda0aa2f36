// A real driver on a temporary data folder. It is closed with the test: running lobbies and the logger are ended.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pino from 'pino'
import { newId } from '../../src/ids.ts'
import type { Driver, Exit, Handle, RunSpec, Tier } from '../../src/runner/drivers/driver.ts'
import { openProcessDriver } from '../../src/runner/drivers/process.ts'
import { until } from '../until.ts'

export const TIER: Tier = { cpu_cores: 2, memory_bytes: 512 * 1024 ** 2, pids_max: 64, scratch_bytes: 1024 ** 2 }
export const SANDBOXES = ['required', 'off'] as const
export type Sandbox = (typeof SANDBOXES)[number]

export function hasBubblewrap(): boolean {
  try {
    execFileSync('bwrap', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export type DriverFixture = {
  driver: Driver
  data_dir: string
  /** Writes files by path; content that begins with `#!` is executable. Returns the folder. */
  build(files: Record<string, string>): string
  /** Starts a lobby and returns its handle. Fails the test when the start is refused. */
  start(spec: Partial<RunSpec> & Pick<RunSpec, 'args' | 'build_folder'>): Promise<Handle>
  /** Waits for the end. */
  ended(handle: Handle): Promise<Exit>
  /** Waits for a line of stdout that matches, and returns its groups. */
  line(handle: Handle, pattern: RegExp): Promise<RegExpExecArray>
}

/** The exit without usage and times, which differ from run to run. */
export function howOf(exit: Exit | null): Omit<Exit, 'cpu_ms' | 'ran'> | null {
  return exit === null ? null : { exit_code: exit.exit_code, reason: exit.reason }
}

/** The test that uses it removes it. */
export function makeDataFolder(): string {
  const data_dir = mkdtempSync(join(tmpdir(), 'muster-runner-'))
  chmodSync(data_dir, 0o711)
  return data_dir
}

export async function openDriver(
  t: TestContext,
  sandbox: Sandbox,
  data_dir: string = makeDataFolder(),
): Promise<DriverFixture> {
  const driver = await openProcessDriver({
    data_dir,
    sandbox,
    log: pino({ level: 'silent' }),
    network: null,
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  })
  t.after(async () => {
    for (const handle of await driver.list()) await driver.stop(handle, 0).then(() => driver.exit(handle))
    await driver.sweep()
    await driver.close({ logger: 'end' })
    rmSync(data_dir, { recursive: true, force: true })
  })
  return {
    driver,
    data_dir,
    build: (files) => writeBuild(data_dir, files),
    async start(spec) {
      const started = await driver.start({ lobby_id: newId(Date.now()), env: {}, tier: TIER, ...spec })
      if ('refused' in started) throw new Error(`${started.refused}: ${started.message}`)
      return started.handle
    },
    ended: (handle) => until('the lobby has ended', () => driver.exit(handle)),
    line: (handle, pattern) =>
      until(`stdout matches ${pattern}`, async () => {
        for (const { bytes } of await driver.logs(handle.lobby_id, 'stdout', 1_000)) {
          const match = pattern.exec(bytes.toString())
          if (match !== null) return match
        }
        return null
      }),
  }
}

export function writeBuild(data_dir: string, files: Record<string, string>): string {
  const folder = join(data_dir, 'builds', newId(Date.now()))
  mkdirSync(folder, { recursive: true })
  for (const [path, content] of Object.entries(files)) {
    writeFileSync(join(folder, path), content)
    chmodSync(join(folder, path), content.startsWith('#!') ? 0o755 : 0o644)
  }
  return folder
}
