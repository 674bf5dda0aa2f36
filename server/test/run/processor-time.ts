// The processor time of each test file in a batch: of its own process, and of the processes that its tests started and that
// are below it or have ended. PostgreSQL and detached processes are missing. The entry of a batch calls `recordFile`.
import { appendFileSync } from 'node:fs'
import { readPageSize, usageOfTrees } from '../../src/node/procfs.ts'

/** The environment variable that names the file of lines. Names of settings begin otherwise, with MUSTER_. */
export const USE_VARIABLE = 'TEST_PROCESSOR_TIME'

let recorded_ms = 0

/** Appends the processor time since the last call to the file that USE_VARIABLE names. */
export function recordFile(file: string): void {
  const path = process.env[USE_VARIABLE]
  if (path === undefined || process.platform !== 'linux') return
  const { cpu_ms = 0 } = usageOfTrees([process.pid], readPageSize()).get(process.pid) ?? {}
  appendFileSync(path, `${JSON.stringify({ file, cpu_ms: cpu_ms - recorded_ms })}\n`)
  recorded_ms = cpu_ms
}

/** Milliseconds by the path of each file. */
export function readProcessorTimes(lines: string): Map<string, number> {
  const records = lines.split('\n').slice(0, -1)
  return new Map(records.map((line) => JSON.parse(line)).map(({ file, cpu_ms }) => [file, cpu_ms]))
}
