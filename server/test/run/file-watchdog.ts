// Loaded before every test file. The process of a test file ends when nothing is open in it any more, and the runner waits
// for that without a limit: one server that a failed test left open would hold the whole run. This ends the process with
// exit code 1, so that the file counts as failed and is repeated, and writes what was open. The limits are EXIT_MS_MAX
// after the last test of the file, and FILE_MS_MAX for all of the file. run.ts ends a file whose event loop is blocked.
import { tracingChannel } from 'node:diagnostics_channel'
import { Server, Socket } from 'node:net'
import { relative } from 'node:path'
import { after } from 'node:test'
import { inspect } from 'node:util'
import { isMainThread } from 'node:worker_threads'
import { killDescendants } from '../support/process-tree.ts'
import { BATCH_END, isBatch } from './batches.ts'
import { EXIT_MS_MAX, FILE_MS_MAX } from './limits.ts'

const TEST_FILE = /\.test\.[cm]?[jt]s$/

/** What node:test publishes about each test. */
type TestMessage = { name: string; error?: unknown }

const file = relative('.', process.argv[1] ?? '')
/** The tests that have started and not ended, with the error of those that have failed and run their hooks. */
const under_way = new Map<string, unknown>()

// A process that a test forks inherits the variable and the flag that loads this file, and so does a thread.
if (process.env.NODE_TEST_CONTEXT === 'child-v8' && isMainThread && TEST_FILE.test(file)) watch()

function watch(): void {
  let exit: NodeJS.Timeout | undefined
  startTimer(FILE_MS_MAX, `has not ended within ${FILE_MS_MAX / 1000} s`)
  const onLastTest = (): void => {
    exit = startTimer(EXIT_MS_MAX, `has not ended within ${EXIT_MS_MAX / 1000} s after its last test`)
  }
  // The runner takes the first file of a batch for all of it.
  if (isBatch(file)) process.once(BATCH_END, onLastTest)
  else after(onLastTest)
  tracingChannel('node.test').subscribe({
    start(message) {
      exit?.refresh()
      under_way.set((message as TestMessage).name, null)
    },
    error(message) {
      const { name, error } = message as TestMessage
      under_way.set(name, error)
    },
    end(message) {
      exit?.refresh()
      under_way.delete((message as TestMessage).name)
    },
  })
}

/** The timer does not keep the process alive. */
function startTimer(ms: number, what: string): NodeJS.Timeout {
  return setTimeout(() => endProcess(what), ms).unref()
}

function endProcess(what: string): never {
  const lines = [
    `${file} ${what}.`,
    ...[...under_way].map(([name, error]) =>
      error === null ? `under way: "${name}"` : `in its hooks: "${name}", which failed with ${inspect(error)}`,
    ),
    ...openHandles(),
    ...killDescendants(process.pid),
  ]
  console.error(lines.join('\n  '))
  process.exit(1)
}

function openHandles(): string[] {
  const resources = Map.groupBy(process.getActiveResourcesInfo(), (name) => name)
  const counts = [...resources].map(([name, all]) => `${all.length} ${name}`)
  // Node has no documented way to the handles themselves.
  const { _getActiveHandles } = process as { _getActiveHandles?: () => unknown[] }
  const addresses = (_getActiveHandles?.() ?? []).flatMap((handle) => {
    if (handle instanceof Server) return [`server at ${inspect(handle.address(), { breakLength: Infinity })}`]
    if (!(handle instanceof Socket) || handle.remoteAddress === undefined) return []
    return [`socket from port ${handle.localPort} to ${handle.remoteAddress}:${handle.remotePort}`]
  })
  return [`open: ${counts.join(', ')}`, ...addresses]
}
