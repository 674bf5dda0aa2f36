// Commands of the platform (start, backup, doctor and others) load it when they run. It is a package of its own, which npm
// installs on Linux only. It also needs a newer Node than a game developer has: with an older one the command runs again,
// as a child process, under a Node that npm brings.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Failure } from './failure.ts'

/** The oldest major version that runs the platform. scripts/install/install.js names the same. */
const NODE_MAJOR_MIN = 24
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Exit codes of programs that a signal ended, as shells report them. */
const SIGNAL_EXIT_CODE = 128
const SYSTEMS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'macOS', win32: 'Windows' }

/** Runs `work` when this Node is new enough, otherwise the whole command again under a newer one. */
export async function onPlatformNode(env: NodeJS.ProcessEnv, work: () => Promise<void>): Promise<void> {
  requirePlatform()
  if (isNewEnough(process.versions.node)) return work()
  await runAgain(await findNode(env), env)
}

export function hasPlatform(): boolean {
  return isInstalled('@musterhost/server/supervisor')
}

/** Throws a Failure where the package of the platform is missing. */
export function requirePlatform(): void {
  if (!hasPlatform()) throw platformMissing(process.platform)
}

/** What leads to a platform on this system, as one sentence and two ways. */
function platformMissing(system: NodeJS.Platform): Failure {
  if (system === 'linux') {
    return new Failure('The package musterhost-platform is not installed here, and this command needs it.', {
      remedy:
        'npm installs it unless optional packages are left out: npm install --global musterhost --include=optional',
    })
  }
  const name = SYSTEMS[system] ?? system
  const wsl = system === 'win32' ? 'In WSL2 ("wsl --install") run: npx musterhost start\nOr run' : 'Run'
  return new Failure(`The platform runs on Linux only; this is ${name}. All other commands work here.`, {
    remedy:
      `${wsl} it in a container, with these two lines in a checkout of Muster:\n` +
      '  docker build -f deploy/Containerfile -t muster .\n' +
      '  docker run --publish 127.0.0.1:8000:8000 --volume muster-data:/var/lib/muster --hostname muster ' +
      '--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined muster',
  })
}

/** A Node that runs the platform: of a package beside this one, or fetched from npm. */
async function findNode(env: NodeJS.ProcessEnv): Promise<string> {
  const system = `${process.platform}-${process.arch}`
  const program = `node-${system}/bin/node`
  if (isInstalled(program)) return fileURLToPath(import.meta.resolve(program))
  const { fetchNode, readPinnedNode } = await import('./fetched-node.ts')
  const pinned = await readPinnedNode(system)
  if (pinned !== null) return fetchNode(pinned, env)
  throw new Failure(`The platform needs Node ${NODE_MAJOR_MIN} or newer; this is ${process.versions.node}.`, {
    remedy: `Install Node ${NODE_MAJOR_MIN} or newer, and run the command with it.`,
  })
}

function isInstalled(specifier: string): boolean {
  try {
    import.meta.resolve(specifier)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return false
    throw error
  }
}

function isNewEnough(version: string): boolean {
  return Number.parseInt(version, 10) >= NODE_MAJOR_MIN
}

async function runAgain(node: string, env: NodeJS.ProcessEnv): Promise<void> {
  // With this variable the child watches its parent, and stops the platform when this process is killed.
  const child_env = { npm_lifecycle_event: 'muster', ...env }
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit', env: child_env })
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal)
  for (const signal of FORWARDED) process.on(signal, forward)
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  for (const name of FORWARDED) process.off(name, forward)
  process.exitCode = signal === null ? (code ?? 1) : SIGNAL_EXIT_CODE + constants.signals[signal]
}
