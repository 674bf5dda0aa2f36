// A real driver on a temporary data folder. It is closed with the test: running lobbies and the logger are ended.
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
import type { Driver, Exit, Handle, RunSpec } from '../../src/runner/drivers/driver.ts'
import { openProcessDriver } from '../../src/runner/drivers/process/process.ts'
import type { Need } from '../run/optional-programs.ts'
import { ENGINE_NEEDS, ENGINES, type Engine, startEngine } from '../support/container-engine.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE, importBaseImage } from './base-image.ts'
import { TIER } from './driver-limits.ts'
import { openEngineDriver } from './engine-driver.ts'
import { type SwarmEngines, type SwarmRole, startSwarm } from './swarm-engines.ts'

export { TIER }

export const SANDBOXES = ['required', 'off'] as const
export type Sandbox = (typeof SANDBOXES)[number]
/** What runs lobbies in containers: the docker driver on each engine, and the swarm driver on two engines. */
export const CONTAINERS = [...ENGINES, 'swarm'] as const
export type ContainerKind = (typeof CONTAINERS)[number]
/** What the tests of drivers run with: also the process driver with and without bubblewrap. */
export const VARIANTS = [...SANDBOXES, ...CONTAINERS] as const
export type Variant = (typeof VARIANTS)[number]

/** As the grace of the platform, so that a machine that was cut off for a moment keeps its lobbies. */
const HEARTBEAT_S = 20
const engines = new Map<ContainerKind, Promise<Engine>>()
let swarm: Promise<SwarmEngines> | null = null
const undo: (() => unknown)[] = []
// The end of the file, and not of the test that needed it first, ends the engine.
after(async () => {
  for (const step of undo.reverse()) await step()
})

/**
 * One container engine of a kind for all tests of a file, with the base image. Of a Swarm it is both: `docker` runs on each,
 * and returns what both have printed.
 */
export function sharedEngine(kind: ContainerKind): Promise<Engine> {
  const known = engines.get(kind)
  if (known !== undefined) return known
  const opening = openEngine(kind)
  engines.set(kind, opening)
  return opening
}

/** The Swarm for all tests of a file. The first call says which machines it has beside the first manager. */
export function sharedSwarm(
  others: readonly SwarmRole[] = ['worker'],
  heartbeat_s: number = HEARTBEAT_S,
): Promise<SwarmEngines> {
  swarm ??= startSwarm(...ofFile(), heartbeat_s, others)
  return swarm
}

function ofFile(): [TestContext, string] {
  const folder = mkdtempSync(join(tmpdir(), 'muster-engine-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  return [{ after: (step: () => unknown) => void undo.push(step) } as TestContext, folder]
}

async function openEngine(kind: ContainerKind): Promise<Engine> {
  if (kind === 'swarm') return openBothEngines()
  const [file, folder] = ofFile()
  const started = await startEngine(file, folder, { has_network: false, kind })
  await importBaseImage(started, join(folder, 'image'))
  return started
}

/** Only the first machine has the base image. The other one gets it from the platform. */
async function openBothEngines(): Promise<Engine> {
  const { machines } = await sharedSwarm()
  const [first] = machines
  await importBaseImage(first!.engine, mkdtempSync(join(tmpdir(), 'muster-image-')))
  return {
    ...first!.engine,
    async docker(args, options) {
      const printed = await Promise.all(machines.map(({ engine }) => engine.docker(args, options)))
      return printed.join('')
    },
  }
}

/** What the tests of a variant need. */
export function needsOf(variant: Variant): readonly Need[] {
  if (variant === 'swarm') return [...ENGINE_NEEDS.docker, 'ip', 'iptables']
  if (variant === 'docker' || variant === 'podman') return ENGINE_NEEDS[variant]
  return variant === 'required' ? ['bwrap'] : []
}

export function isEngine(variant: Variant): variant is ContainerKind {
  return (CONTAINERS as readonly Variant[]).includes(variant)
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
    ? await openContainerDriver(variant, data_dir)
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
export async function reopenDriver(t: TestContext, kind: ContainerKind, data_dir: string): Promise<Driver> {
  const driver = await openContainerDriver(kind, data_dir)
  t.after(() => driver.close({ logger: 'keep' }))
  return driver
}

export async function openContainerDriver(
  kind: ContainerKind,
  data_dir: string,
  base_image: string | null = BASE_IMAGE,
): Promise<Driver> {
  const { socket } = await sharedEngine(kind)
  return openEngineDriver({
    data_dir,
    base_image,
    ...(kind === 'swarm' ? { swarm: await swarmSettings() } : { socket }),
  })
}

/** Plain JSON, which another process can be given. */
export async function swarmSettings(how: 'unix' | 'tcp' = 'unix'): Promise<Record<string, string>> {
  const { address, setting } = await sharedSwarm()
  return {
    MUSTER_DRIVER: 'swarm',
    MUSTER_SWARM_ENGINES: setting(how),
    MUSTER_SWARM_REGISTRY: `${address}:0`,
    MUSTER_INTERNAL_HOST: address,
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

async function containersOf(kind: ContainerKind, lobby_id: string): Promise<string[]> {
  const listed = await (await sharedEngine(kind)).docker(['ps', '--quiet', '--filter', `name=${lobby_id}`])
  return listed.split('\n').filter((line) => line !== '')
}
