// All six thousand numbers of the edge's, in a network namespace, where nobody else needs one meanwhile.
import assert from 'node:assert'
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectionsMax } from '../../src/edge/limits.ts'
import { markedName } from '../leftovers/run.ts'
import { lacking } from '../run/optional-programs.ts'
import { createDatabase } from '../support/database.ts'

/** Each of them listens at two addresses. */
const PLACES_MIN = 8_000

function obstacle(): string | false {
  if (connectionsMax() < PLACES_MIN) return 'needs more descriptors for a process'
  return lacking('root', 'ip') ?? false
}

test('six thousand ports are given out once each, those of others are passed over, and the next is refused', {
  skip: obstacle(),
}, async (t) => {
  const name = markedName('ports')
  assert.strictEqual(spawnSync('ip', ['netns', 'add', name]).status, 0)
  t.after(() => spawnSync('ip', ['netns', 'delete', name]))
  const program = join(import.meta.dirname, 'all-ports-program.ts')
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, program], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, TEST_DATABASE: await createDatabase(t) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += String(bytes)))
  const code = await new Promise((resolve) => child.once('close', resolve))
  assert.strictEqual(code, 0, output)
})
