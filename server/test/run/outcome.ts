// A reporter beside the one for people, for run.ts. It writes each event as a line of JSON as soon as it happens, so that
// a run that is ended early still shows which files had failed and which were under way. `sumUp` reads the lines.
// The runner counts a file as a test. Here a file is none, and neither is a test that was skipped.
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'
import { type EventFile, EventFiles } from '../support/event-files.ts'
import { isBatch } from './batches.ts'

const ERROR_LENGTH_MAX = 2_000
/** Characters of an error's message, and of its place, in the list of all failures. */
const BRIEF_LENGTH_MAX = 240

export type Outcome = {
  executed: number
  /** Paths of the test files in which anything failed. */
  failed_files: Set<string>
  /** Each test that failed, with its file and the beginning of its error. */
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
  const files = { at_once: new EventFiles(), in_order: new EventFiles() }
  for await (const event of events) {
    const { type, data } = event
    if (type === 'test:diagnostic' && data.file !== undefined) {
      diagnostics.set(data.file, [...(diagnostics.get(data.file) ?? []), data.message])
    }
    const lines = linesOf(event, diagnostics, files).map((line) => `${JSON.stringify(line)}\n`)
    // At once: a run that is ended between two writes would keep one line of an event without the other.
    if (lines.length > 0) yield lines.join('')
  }
}

/** For the two orders in which the runner reports: at once, and each file after those that started before it. */
type Files = { at_once: EventFiles; in_order: EventFiles }

function linesOf({ type, data }: TestEvent, diagnostics: ReadonlyMap<string, string[]>, files: Files): Line[] {
  switch (type) {
    case 'test:start':
      files.in_order.fileOf(data, true)
      return []
    case 'test:dequeue': {
      const { file, is_file } = files.at_once.fileOf(data, true)
      return is_file ? [{ event: 'file started', file }] : []
    }
    case 'test:complete':
      return completionOf(data, files.at_once)
    case 'test:pass':
    case 'test:fail': {
      // A process that died has not reported in order which file was under way.
      const order = isBatch(data.name) ? files.at_once : files.in_order
      return resultOf(type, data, order.fileOf(data, false), diagnostics)
    }
    default:
      return []
  }
}

type Completion = Extract<TestEvent, { type: 'test:complete' }>['data']

function completionOf(data: Completion, files: EventFiles): Line[] {
  // Its files have been completed.
  if (isBatch(data.name)) return []
  const { file, is_file } = files.fileOf(data, false)
  const { passed, duration_ms } = data.details
  const lines: Line[] = is_file ? [{ event: 'file ended', file, duration_ms }] : []
  if (passed || data.todo !== undefined) return lines
  if (hasReason(data.details, is_file)) {
    lines.push({ event: 'failure', file, name: data.name, error: errorOf(data.details) })
  }
  return [...lines, { event: 'failed', file }]
}

/** Whether the error says why. Of a test whose subtests failed it does not, and of a file only where it could not be imported. */
function hasReason({ type, error }: Completion['details'], is_file: boolean): boolean {
  if ((error as { failureType?: string } | undefined)?.failureType === 'subtestsFailed') return false
  return !is_file || type === 'suite'
}

function resultOf(
  type: 'test:pass' | 'test:fail',
  data: Result,
  { file, is_file }: EventFile,
  diagnostics: ReadonlyMap<string, string[]>,
): Line[] {
  const failed: Line = { event: 'failed', file }
  const is_process = is_file ? data.details.type !== 'suite' : isBatch(data.name)
  switch (type) {
    case 'test:pass':
      if (data.skip !== undefined) return [{ event: 'skipped', file, reason: reasonOf(data.skip) }]
      return is_process || !isExecuted(data) ? [] : [{ event: 'executed', file }]
    case 'test:fail':
      if (!is_process) return isExecuted(data) ? [{ event: 'executed', file }, failed] : [failed]
      return [failed, { event: 'bad end', file, how: howOf(data as Failure, diagnostics.get(data.file ?? '') ?? []) }]
  }
}

type Failure = Extract<TestEvent, { type: 'test:fail' }>['data']
type Result = Failure | Extract<TestEvent, { type: 'test:pass' }>['data']

function errorOf(details: { error?: Error }): string {
  return inspect(details.error?.cause ?? details.error).slice(0, ERROR_LENGTH_MAX)
}

/** The first lines of an error, and where the test was. */
function briefOf(error: string): string {
  const [message, ...frames] = error.split(/\n(?= +at )/)
  const frame = frames.find((line) => /\.test\.\w+/.test(line)) ?? frames[0] ?? ''
  return `${message!.slice(0, BRIEF_LENGTH_MAX)}\n${frame.slice(0, BRIEF_LENGTH_MAX)}`
    .replaceAll(/\s*\n\s*/g, '\n  ')
    .trimEnd()
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
        outcome.failures.push(`${line.file}: "${line.name}"\n  ${briefOf(line.error)}`)
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
