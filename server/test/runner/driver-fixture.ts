// A real driver on a temporary data folder. It is closed with the test: running lobbies and the logger are ended.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import pino from 'pino'
import { newId } from '../../src/ids.ts'
import { openDockerDriver } from '../../src/runner/drivers/docker/docker.ts'
import type { Driver, Exit, Handle, RunSpec } from '../../src/runner/drivers/driver.ts'
import { openProcessDriver } from '../../src/runner/drivers/process.ts'
import {
  ENGINE_PROGRAMS,
  ENGINES,
  type Engine,
  type EngineKind,
  missingForEngine,
  startEngine,
} from '../container-engine.ts'
import { until } from '../until.ts'
import { BASE_IMAGE, importBaseImage } from './base-image.ts'
import { TIER } from './driver-limits.ts'

export { TIER }

export const SANDBOXES = ['required', 'off'] as const
export type Sandbox = (typeof SANDBOXES)[number]
/** What the tests of drivers run with: the process driver with and without bubblewrap, and the docker driver on each engine. */
export const VARIANTS = [...SANDBOXES, ...ENGINES] as const
export type Variant = (typeof VARIANTS)[number]

const engines = new Map<EngineKind, Promise<Engine>>()
const undo: (() => unknown)[] = []
// The end of the file, and not of the test that needed it first, ends the engine.
after(async () => {
  for (const step of undo.reverse()) await step()
})

/** One container engine of a kind for all tests of a file, with the base image. */
export function sharedEngine(kind: EngineKind): Promise<Engine> {
  const known = engines.get(kind)
  if (known !== undefined) return known
  const opening = openEngine(kind)
  engines.set(kind, opening)
  return opening
}

async function openEngine(kind: EngineKind): Promise<Engine> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-engine-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const file = { after: (step: () => unknown) => void undo.push(step) } as TestContext
  const started = await startEngine(file, folder, { has_network: false, kind })
  await importBaseImage(started, join(folder, 'image'))
  return started
}

/** Why the tests of a variant cannot run here; null when they can. */
export function missingFor(variant: Variant): string | null {
  if (isEngine(variant)) return missingForEngine(ENGINE_PROGRAMS[variant])
  return variant === 'required' && !hasBubblewrap() ? 'bubblewrap is not installed' : null
}

export function isEngine(variant: Variant): variant is EngineKind {
  return (ENGINES as readonly Variant[]).includes(variant)
}

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
  /** The processes or the running containers of a lobby. */
  processesOf(lobby_id: string): Promise<string[]>
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
  variant: Variant,
  data_dir: string = makeDataFolder(),
): Promise<DriverFixture> {
  const common = {
    data_dir,
    log: pino({ level: 'silent' }),
    network: null,
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  }
  const driver = isEngine(variant)
    ? await openDockerDriver({
        ...common,
        sandbox: 'available',
        docker: { socket: (await sharedEngine(variant)).socket, base_image: BASE_IMAGE },
      })
    : await openProcessDriver({ ...common, sandbox: variant })
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
    processesOf: (lobby_id) =>
      isEngine(variant) ? containersOf(variant, lobby_id) : Promise.resolve(monitorsOf(lobby_id)),
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

/** A second driver on the same data folder, as after a restart of the runner. It ends no lobby. */
export async function reopenDriver(t: TestContext, kind: EngineKind, data_dir: string): Promise<Driver> {
  const { socket } = await sharedEngine(kind)
  const driver = await openDockerDriver({
    data_dir,
    docker: { socket, base_image: BASE_IMAGE },
    log: pino({ level: 'silent' }),
    sandbox: 'available',
    network: null,
    now: Date.now,
    ended_kept_ms: null,
    ended_bytes_max: null,
  })
  t.after(() => driver.close({ logger: 'keep' }))
  return driver
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

export function commandLine(pid: string): string | null {
  const path = `/proc/${pid}/cmdline`
  try {
    return existsSync(path) ? readFileSync(path, 'latin1') : null
  } catch {
    return null
  }
}

/** Monitors have the lobby's id on their command line. */
function monitorsOf(lobby_id: string): string[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandLine(name)?.includes(lobby_id))
}

async function containersOf(kind: EngineKind, lobby_id: string): Promise<string[]> {
  const listed = await (await sharedEngine(kind)).docker(['ps', '--quiet', '--filter', `name=${lobby_id}`])
  return listed.split('\n').filter((line) => line !== '')
}
