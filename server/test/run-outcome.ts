// A reporter beside the one for people, for run.ts. It writes each event as a line of JSON as soon as it happens, so that
// a run that is ended early still shows which files had failed and which were under way. `sumUp` reads the lines.
// The runner counts a file as a test. Here a file is none, and neither is a test that was skipped.
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

const ERROR_LENGTH_MAX = 2_000

export type Outcome = {
  executed: number
  /** Paths of the test files in which anything failed. */
  failed_files: Set<string>
  /** Each test that failed, with its file and its error. */
  failures: string[]
  /** How the process of a file ended that failed after its tests had passed: by a signal, or by an error. */
  bad_ends: string[]
  /** Paths of the test files that have started and not ended. */
  under_way: Set<string>
  /** By the path of each test file that has ended. */
  durations_ms: Map<string, number>
  /** The reason of each test, or group of tests, that was skipped. */
  skips: string[]
}

type Line =
  | { event: 'executed' | 'failed' | 'file started'; file: string }
  | { event: 'file ended'; file: string; duration_ms: number }
  | { event: 'failure'; file: string; name: string; error: string }
  | { event: 'bad end'; file: string; how: string }
  | { event: 'skipped'; file: string; reason: string }

export default async function* writeLines(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const diagnostics = new Map<string, string[]>()
  for await (const event of events) {
    const { type, data } = event
    if (type === 'test:diagnostic' && data.file !== undefined) {
      diagnostics.set(data.file, [...(diagnostics.get(data.file) ?? []), data.message])
    }
    for (const line of linesOf(event, diagnostics)) yield `${JSON.stringify(line)}\n`
  }
}

function linesOf({ type, data }: TestEvent, diagnostics: ReadonlyMap<string, string[]>): Line[] {
  if (type !== 'test:dequeue' && type !== 'test:complete' && type !== 'test:pass' && type !== 'test:fail') return []
  if (data.file === undefined) return []
  // `file` is where a test is written, which may be a step that test files share. Node's types lack the other member,
  // which only the events of tests have: those of files do not.
  const { entryFile } = data as { entryFile?: string }
  const file = relative('.', entryFile ?? data.file)
  const is_file = entryFile === undefined
  const failed: Line = { event: 'failed', file }
  switch (type) {
    case 'test:dequeue':
      return is_file ? [{ event: 'file started', file }] : []
    // This event comes at once. The next two wait until the files that started before have ended.
    case 'test:complete': {
      const { passed, duration_ms } = data.details
      const lines: Line[] = is_file ? [{ event: 'file ended', file, duration_ms }] : []
      if (passed || data.todo !== undefined) return lines
      if (!is_file) lines.push({ event: 'failure', file, name: data.name, error: errorOf(data.details) })
      return [...lines, failed]
    }
    case 'test:pass':
      if (data.skip !== undefined) return [{ event: 'skipped', file, reason: reasonOf(data.skip) }]
      return is_file || !isExecuted(data) ? [] : [{ event: 'executed', file }]
    case 'test:fail':
      if (!is_file) return isExecuted(data) ? [{ event: 'executed', file }, failed] : [failed]
      return [failed, { event: 'bad end', file, how: howOf(data, diagnostics.get(data.file) ?? []) }]
  }
}

type Failure = Extract<TestEvent, { type: 'test:fail' }>['data']
type Result = Failure | Extract<TestEvent, { type: 'test:pass' }>['data']

function errorOf(details: { error?: Error }): string {
  return inspect(details.error?.cause ?? details.error).slice(0, ERROR_LENGTH_MAX)
}

function reasonOf(skip: string | boolean): string {
  return typeof skip === 'string' && skip !== '' ? skip : 'no reason given'
}

function isExecuted({ details, skip, todo }: Result): boolean {
  return details.type !== 'suite' && skip === undefined && todo === undefined
}

function howOf({ details }: Failure, diagnostics: readonly string[]): string {
  const { exitCode, signal } = details.error as { exitCode?: number | null; signal?: string | null }
  return [signal ? `by ${signal}` : `with exit code ${exitCode}`, ...diagnostics].join('\n  ')
}

export function sumUp(lines: string): Outcome {
  const outcome: Outcome = {
    executed: 0,
    failed_files: new Set(),
    failures: [],
    bad_ends: [],
    under_way: new Set(),
    durations_ms: new Map(),
    skips: [],
  }
  // What follows the last line break is a line that was being written.
  for (const text of lines.split('\n').slice(0, -1)) {
    const line = JSON.parse(text) as Line
    switch (line.event) {
      case 'executed':
        outcome.executed++
        break
      case 'failed':
        outcome.failed_files.add(line.file)
        break
      case 'failure':
        outcome.failures.push(`${line.file}: "${line.name}"\n${line.error}`)
        break
      case 'bad end':
        outcome.bad_ends.push(`${line.file} ended ${line.how}`)
        break
      case 'skipped':
        outcome.skips.push(line.reason)
        break
      case 'file started':
        outcome.under_way.add(line.file)
        break
      case 'file ended':
        outcome.under_way.delete(line.file)
        outcome.durations_ms.set(line.file, line.duration_ms)
    }
  }
  return outcome
}
