// The first start of a data folder compiles what the roles load before there are roles, while PostgreSQL makes its tables:
// once instead of four times at the same moment, and none of them keeps the compiler in memory.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'

const PROGRAM = fileURLToPath(new URL('../compile.ts', import.meta.url))
/** Roles start without it as well. It takes two seconds, and on a machine with much other load half a minute. */
const COMPILE_MS_MAX = 60_000

/** Resolves when the folder of `env.NODE_COMPILE_CACHE` is filled, or could not be. */
export async function compileOnce(
  env: Record<string, string>,
  { signal, log }: { signal: AbortSignal; log: Logger },
): Promise<void> {
  const folder = env.NODE_COMPILE_CACHE
  if (folder === undefined || existsSync(folder)) return
  const child = spawn(process.execPath, [PROGRAM], { env, stdio: 'ignore', timeout: COMPILE_MS_MAX })
  const kill = (): void => void child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  const failure = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, by) => resolve(code === 0 ? null : `it ended with ${by ?? `code ${code}`}`))
  })
  signal.removeEventListener('abort', kill)
  if (failure !== null && !signal.aborted)
    log.info({ failure }, 'the modules could not be compiled before the roles start')
}
