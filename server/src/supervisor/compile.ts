// The first start of a data folder compiles the modules of all roles while PostgreSQL makes its tables. Otherwise the four
// roles would each compile them at the same moment and keep the compiler in memory.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'

export const COMPILE_PROGRAM = fileURLToPath(new URL('../compile.ts', import.meta.url))
/** Time limit. Roles start without it too. It takes two seconds, and half a minute on a loaded machine. */
const COMPILE_MS_MAX = 60_000

/** Resolves when the folder of `env.NODE_COMPILE_CACHE` is filled, or could not be. */
export async function compileOnce(
  env: Record<string, string>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  const folder = env.NODE_COMPILE_CACHE
  if (folder === undefined || existsSync(folder)) return
  await compile(env, { signal, log })
}

/** The same for a folder that has the modules of another version. */
export async function compile(
  env: NodeJS.ProcessEnv,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  const child = spawn(process.execPath, [COMPILE_PROGRAM], { env, stdio: 'ignore', timeout: COMPILE_MS_MAX })
  const kill = (): void => void child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  const failure = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, by) => resolve(code === 0 ? null : `it ended with ${by ?? `code ${code}`}`))
  })
  signal.removeEventListener('abort', kill)
  if (failure !== null && !signal.aborted) {
    log.info({ failure }, 'modules could not be compiled before the start of the roles')
  }
}
