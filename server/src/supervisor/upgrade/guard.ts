// Node loads this file before the next program of an upgrade (`--import`). It belongs to the program before. While the file of the
// way back exists, an end of the process does not end it: the program before replaces the one that did not start. `?file=`: the
// path of that file.
import { isMainThread } from 'node:worker_threads'
import { readWayBack, recordFailure } from './way-back.ts'

/** Time in which the next program must be ready: each role has a minute, and replaces a process that may take 25 s to stop. */
const TRIAL_MS_MAX = 240_000

const file = new URL(import.meta.url).searchParams.get('file')
if (file !== null && isMainThread) guard(file)

function guard(file: string): void {
  const env = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
  let error_text: string | null = null
  process.on('uncaughtExceptionMonitor', (error) => {
    error_text = String(error)
  })
  const overdue = setTimeout(() => {
    if (readWayBack(file) === null) return
    recordFailure(file, `it was not ready within ${TRIAL_MS_MAX / 1_000} s`)
    process.exit(1)
  }, TRIAL_MS_MAX)
  overdue.unref()
  process.on('exit', (code) => {
    if (readWayBack(file) === null) return
    recordFailure(file, error_text ?? `its supervisor ended with code ${code}`)
    const { exec_path, cli_path } = readWayBack(file)!
    process.execve?.(exec_path, [exec_path, cli_path, 'start'], env)
  })
}
