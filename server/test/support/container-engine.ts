// A container engine for tests, Docker or Podman: its images, containers and sockets are in a folder of the test, and it ends with the test.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { makePodmanFolder } from '../leftovers/clear.ts'
import type { Need } from '../run/optional-programs.ts'
import { outputOf } from './programs.ts'
import { until } from './until.ts'

const END_MS_MAX = 30_000
const OUTPUT_BYTES_MAX = 64 * 1024 ** 2
export type Engine = {
  socket: string
  /** The environment by which `docker` and `docker-compose` find this engine. */
  env: NodeJS.ProcessEnv
  /** Runs `docker` and returns what it printed. Throws with its output when it fails. */
  docker: (args: readonly string[], options?: { input?: Buffer }) => Promise<string>
  end: () => Promise<void>
  /** Of the engine itself, without the programs that it has started. */
  signal: (name: NodeJS.Signals) => void
}

/** What `docker` and a runner can talk to. */
export type EngineKind = 'docker' | 'podman'
export const ENGINES = ['docker', 'podman'] as const satisfies EngineKind[]

/** Without them an engine starts no container. */
export const ENGINE_NEEDS: Readonly<Record<EngineKind, readonly Need[]>> = {
  docker: ['root', 'dockerd', 'docker', 'docker-init'],
  // crun of Debian 12 refuses control groups of both versions side by side.
  podman: ['root', 'podman', 'docker', 'catatonit', 'runc', 'conmon'],
}

/**
 * `has_network`: the engine makes bridges and rules, so it must run in a network namespace of the test. Without it
 * containers have the network of the engine or none. `wrapper`: a command that becomes the engine. `settings`, `args`: more
 * of dockerd.
 */
type EngineOptions = {
  has_network: boolean
  kind?: EngineKind
  wrapper?: readonly string[]
  settings?: object
  args?: readonly string[]
}

export async function startEngine(t: TestContext, folder: string, options: EngineOptions): Promise<Engine> {
  mkdirSync(folder, { recursive: true })
  const socket = join(folder, 'docker.sock')
  const {
    program,
    args,
    env: program_env,
    run_folder,
  } = options.kind === 'podman' ? podman(folder, socket) : dockerd(folder, socket, options)
  const [command = '', ...before] = [...(options.wrapper ?? []), program]
  const child = spawn(command, [...before, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...program_env },
  })
  const output = outputOf(child)
  const ended = once(child, 'close')
  const env = { PATH: process.env.PATH, HOME: folder, DOCKER_HOST: `unix://${socket}`, DOCKER_BUILDKIT: '0' }
  const engine: Engine = {
    socket,
    env,
    docker: (args, { input } = {}) => run('docker', args, { env, input }),
    end,
    signal: (name) => void child.kill(name),
  }
  async function end(): Promise<void> {
    // The containers of Podman do not end with it.
    if (options.kind === 'podman' && child.exitCode === null && child.signalCode === null)
      await removeContainers(engine)
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      // It may be suspended.
      child.kill('SIGCONT')
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
    await ended
    clearTimeout(timer)
    leaveNoMount(folder)
    if (run_folder === null) return
    leaveNoMount(run_folder)
    rmSync(run_folder, { recursive: true, force: true })
  }
  t.after(end)
  await until('the engine to accept requests', async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended:\n${output()}`)
    return existsSync(socket) && (await engine.docker(['version']).then(Boolean, () => false))
  })
  return engine
}

/** `run_folder`: one of its own beside the folder of the test. */
type Program = { program: string; args: string[]; env: NodeJS.ProcessEnv; run_folder: string | null }

function dockerd(folder: string, socket: string, { has_network, settings, args: more = [] }: EngineOptions): Program {
  // As compose.yaml advises: no process for each published port.
  writeFileSync(join(folder, 'daemon.json'), JSON.stringify({ 'userland-proxy': false, ...settings }))
  const args = [
    ...['--host', `unix://${socket}`, '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec')],
    ...['--pidfile', join(folder, 'docker.pid'), '--config-file', join(folder, 'daemon.json')],
    ...(has_network ? [] : ['--bridge=none', '--iptables=false']),
    ...more,
  ]
  return { program: 'dockerd', args, env: {}, run_folder: null }
}

/** Its storage and its settings are those of the folder. */
function podman(folder: string, socket: string): Program {
  const run_folder = makePodmanFolder()
  const storage = `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/data"\nrunroot = "${run_folder}"\n`
  const engine = `[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "file"\ntmp_dir = "${folder}/tmp"\n`
  // Podman's own limits are above those of some machines, which root may not raise there.
  const containers = '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
  writeFileSync(join(folder, 'storage.conf'), storage)
  writeFileSync(join(folder, 'containers.conf'), `${engine}${containers}`)
  const env = {
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
  }
  return { program: 'podman', args: ['system', 'service', '--time', '0', `unix://${socket}`], env, run_folder }
}

async function removeContainers({ docker }: Engine): Promise<void> {
  const ids = (await docker(['ps', '--all', '--quiet'])).split('\n').filter((id) => id !== '')
  if (ids.length > 0) await docker(['rm', '--force', ...ids])
}

/** Returns the standard output. Throws with all output when the program fails. */
export async function run(
  program: string,
  args: readonly string[],
  options: { env: NodeJS.ProcessEnv; input?: Buffer | undefined; cwd?: string },
): Promise<string> {
  const { env, input, cwd } = options
  const running = promisify(execFile)(program, args, { env, maxBuffer: OUTPUT_BYTES_MAX, ...(cwd && { cwd }) })
  running.child.stdin?.on('error', () => undefined)
  running.child.stdin?.end(input)
  try {
    return (await running).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error })
  }
}

/** An engine that was killed leaves the mounts of its containers and of their networks. */
function leaveNoMount(folder: string): void {
  const mounts = execFileSync('cat', ['/proc/self/mounts'], { encoding: 'utf8' })
  const below = mounts.split('\n').flatMap((line) => line.split(' ')[1] ?? [])
  for (const path of below.filter((one) => one.startsWith(`${folder}/`)).reverse()) {
    try {
      execFileSync('umount', ['--lazy', path], { stdio: 'pipe' })
    } catch {
      // The engine has just removed it.
    }
  }
}
