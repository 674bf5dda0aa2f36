// A reporter beside the one for people, for run.ts: how many tests were really executed, and why a file has failed whose
// tests have passed. A file counts as a test for the runner; here it does not, and neither does what was skipped.
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

export type Outcome = {
  executed: number
  /** A process that was ended by a signal, or by an error that came when no test was there for it any more. */
  failed_files: string[]
  /** Paths of the test files in which anything failed. */
  files_to_repeat: string[]
}

/** The test file; `file` is where a test is written, which may be a step that test files share. Node's types lack it. */
function entryFileOf(data: { file?: string | undefined; entryFile?: string }): string | undefined {
  return data.entryFile ?? data.file
}

export default async function* tellOutcome(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const outcome: Outcome = { executed: 0, failed_files: [], files_to_repeat: [] }
  const files_to_repeat = new Set<string>()
  const said = new Map<string, string[]>()
  for await (const { type, data } of events) {
    if (type === 'test:diagnostic' && data.file !== undefined) {
      said.set(data.file, [...(said.get(data.file) ?? []), data.message])
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (type === 'test:fail') {
      const file = entryFileOf(data)
      if (file !== undefined) files_to_repeat.add(relative('.', file))
    }
    if (data.details.type === 'suite') continue
    if (data.name !== data.file) {
      if (data.skip === undefined && data.todo === undefined) outcome.executed++
    } else if (type === 'test:fail') {
      const { exitCode, signal } = data.details.error as { exitCode?: number | null; signal?: string | null }
      const how = `${relative('.', data.file)} ended ${signal ? `by ${signal}` : `with exit code ${exitCode}`}`
      outcome.failed_files.push([how, ...(said.get(data.file) ?? [])].join('\n  '))
    }
  }
  yield JSON.stringify({ ...outcome, files_to_repeat: [...files_to_repeat].sort() })
}
