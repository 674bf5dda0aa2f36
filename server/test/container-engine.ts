// A Docker engine for tests: its images, containers and sockets are in a folder of the test, and it ends with the test.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
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
}

/** Why a test that needs these programs, as root, cannot run; null when it can. */
export function missingForEngine(programs: readonly string[]): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a container engine needs Linux and root'
  const folders = (process.env.PATH ?? '').split(delimiter)
  const missing = programs.filter((program) => !folders.some((folder) => isExecutable(join(folder, program))))
  return missing.length === 0 ? null : `not installed: ${missing.join(', ')}`
}

/**
 * `has_network`: the engine makes bridges and rules, so it must run in a network namespace of the test. Without it
 * containers have the network of the engine or none. `wrapper`: a command that becomes the engine.
 */
export async function startEngine(
  t: TestContext,
  folder: string,
  options: { has_network: boolean; wrapper?: readonly string[] },
): Promise<Engine> {
  mkdirSync(folder, { recursive: true })
  const socket = join(folder, 'docker.sock')
  // As compose.yaml advises: no process for each published port.
  writeFileSync(join(folder, 'daemon.json'), JSON.stringify({ 'userland-proxy': false }))
  const args = [
    ...['--host', `unix://${socket}`, '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec')],
    ...['--pidfile', join(folder, 'docker.pid'), '--config-file', join(folder, 'daemon.json')],
    ...(options.has_network ? [] : ['--bridge=none', '--iptables=false']),
  ]
  const [program = '', ...before] = [...(options.wrapper ?? []), 'dockerd']
  const child = spawn(program, [...before, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = outputOf(child)
  const ended = once(child, 'close')
  async function end(): Promise<void> {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX)
    await ended
    clearTimeout(timer)
    leaveNoMount(folder)
  }
  t.after(end)
  const env = { PATH: process.env.PATH, HOME: folder, DOCKER_HOST: `unix://${socket}`, DOCKER_BUILDKIT: '0' }
  const engine: Engine = { socket, env, docker: (args, { input } = {}) => run('docker', args, { env, input }), end }
  await until('the engine to accept requests', async () => {
    if (child.exitCode !== null) throw new Error(`dockerd ended:\n${output()}`)
    return existsSync(socket) && (await engine.docker(['version']).then(Boolean, () => false))
  })
  return engine
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

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
