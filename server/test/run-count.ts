// A reporter beside the one for people: how many tests were really executed, for run.ts. A file counts as a test for
// the runner; here it does not, and neither does what was skipped.
import type { TestEvent } from 'node:test/reporters'

export default async function* count(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let executed = 0
  for await (const event of events) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const { data } = event
    if (data.details.type === 'suite' || data.name === data.file) continue
    if (data.skip === undefined && data.todo === undefined) executed++
  }
  yield `${executed}\n`
}
